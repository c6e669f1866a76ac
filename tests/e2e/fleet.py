"""Refunds that are approved, and the real processes that make them: workers, sweep, provider, Valkey.

The oracle is the provider's own journal: it knows what really happened, whatever our database believes.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from subprocess import Popen
from typing import Any

from access.models import User
from approvals.actions import Submission, decide
from approvals.models import Proposal
from approvals.receipts import issue
from approvals.shown import view_of
from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from common.ids import new_id
from common.models import Tenant
from examples.refunds.provider.seed import customer_of, generated_order
from tests.examples.refunds.conftest import RunningProvider
from tests.processes import Processes
from workflows.actions.outside import OutsideProposal, propose_from_outside
from workflows.actions.runs import Source
from workflows.enums import CommandStatus
from workflows.models import Command

AGENT = Actor("api:agent", Via.TOKEN, Owner.AUTOMATION)


@dataclass
class Fleet:
    """One tenant whose refunds are made by real processes."""

    tenant: Tenant
    reviewer: User
    provider: RunningProvider
    processes: Processes
    orders: int = 0
    workers: list[Popen[bytes]] = field(default_factory=list)

    # -- approved refunds -------------------------------------------------------------------------------------

    def approve(self, count: int) -> list[Command]:
        """That many refunds of as many orders, each proposed by an agent and approved by a person."""
        return [self._approved() for _ in range(count)]

    def _approved(self) -> Command:
        proposal = self.proposed()
        decide(
            tenant_id=self.tenant.pk, proposal_id=proposal.pk, submission=self._yes(proposal), clock=db_clock,
            by=Actor(f"user:{self.reviewer.pk}", Via.SESSION, Owner.PERSON, user_id=self.reviewer.pk),
        )  # fmt: skip
        return Command.objects.get(proposal=proposal)

    def proposed(self) -> Proposal:
        """One refund of an order of its own, which waits for a person."""
        request = OutsideProposal(
            workflow="refund-desk-agent", source=Source("agent", str(new_id()), key="1"), operation="refunds.issue",
            arguments=self.arguments(), reason="The parcel was damaged.",
        )  # fmt: skip
        return propose_from_outside(tenant=self.tenant, request=request, by=AGENT, clock=db_clock).proposal

    def arguments(self) -> dict[str, Any]:
        """Of a refund of the next order."""
        order = generated_order(self.orders)
        self.orders += 1
        return {
            "order": order["id"], "amount": _small(order), "currency": order["currency"], "reason": "damaged",
            "receipt_to": f"{customer_of(self.orders - 1)}@example.com",
        }  # fmt: skip

    def _yes(self, proposal: Proposal) -> Submission:
        view = view_of(proposal)
        receipts = tuple(
            issue(
                user_id=self.reviewer.pk, proposal_id=proposal.pk, digest=proposal.digest,
                view_digest=proposal.view_digest, part=part, at=db_clock(),
            )
            for part in view.parts
        )  # fmt: skip
        return Submission(
            "approve", proposal.digest, proposal.view_digest, receipts, tuple(view.to_acknowledge)
        )

    # -- processes --------------------------------------------------------------------------------------------

    def start_worker(self) -> None:
        self.workers.append(self.processes.worker())

    def kill_a_worker(self) -> None:
        """SIGKILL to the oldest worker and its children, and a new one in its place."""
        self.processes.kill(self.workers.pop(0))
        self.start_worker()

    def replace_ended_workers(self) -> None:
        """A Celery worker exits when its broker dies; something must start it again, here as in production."""
        for worker in [worker for worker in self.workers if worker.poll() is not None]:
            self.workers.remove(worker)
            self.start_worker()

    def crashing(self, point: str, how: str = "kill") -> Popen[bytes]:
        """A sweep process that dies, or stops, at this place."""
        self.processes.env["PLACET_CRASHPOINT"] = f"{point}:{how}"
        process = self.processes.sweep("--every", "0.2")
        del self.processes.env["PLACET_CRASHPOINT"]
        return process

    # -- what came of it --------------------------------------------------------------------------------------

    def effects(self) -> Counter[str]:
        """How often each key took effect, in the provider's own journal."""
        return Counter(row["key"] for row in self.arrivals() if row["effect"])

    def arrivals(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        after = 0
        while True:
            page = self.provider.call("GET", f"/_admin/journal?after={after}").json
            if not page["arrivals"]:
                return rows
            rows += page["arrivals"]
            after = page["arrivals"][-1]["seq"]

    def each_took_effect_once(self, commands: list[Command]) -> None:
        """None lost, none twice, none for something else, and all of them confirmed."""
        effects = self.effects()
        assert {key: count for key, count in effects.items() if count > 1} == {}
        assert set(effects) == {command.idempotency_key for command in commands}
        ended = Command.objects.filter(pk__in=[command.pk for command in commands])
        assert Counter(ended.values_list("status", flat=True)) == {"confirmed": len(commands)}

    def wait_until_ended(
        self, commands: list[Command], *, seconds: float, between: Callable[[], Any]
    ) -> None:
        open_ = Command.objects.filter(pk__in=[command.pk for command in commands]).exclude(
            status__in=CommandStatus.final_states
        )
        eventually(lambda: not open_.exists(), seconds=seconds, between=between, what=lambda: list(
            open_.values_list("status", "claims", "tries", "lookups", "failure_code")))  # fmt: skip


def _small(order: dict[str, Any]) -> str:
    """A part of the payment that one person may approve."""
    scale = {"JPY": 0, "KWD": 3}.get(order["currency"], 2)
    return f"{Decimal(order['paid']) / 2:.{scale}f}"


def eventually(
    done: Callable[[], bool],
    *,
    seconds: float,
    what: Callable[[], Any] = str,
    between: Callable[[], Any] = bool,
) -> None:
    """``seconds`` on a machine with nothing else to do; a busy one gets twice that."""
    end = time.monotonic() + 2 * seconds
    while not done():
        assert time.monotonic() < end, what()
        between()
        time.sleep(0.1)


def is_stopped(process: Popen[bytes]) -> bool:
    """Whether SIGSTOP has taken it."""
    with open(f"/proc/{process.pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


def go_on(process: Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGCONT)
