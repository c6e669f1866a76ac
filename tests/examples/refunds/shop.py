"""The refund shop of the scenario tests: the provider's process, tenants with people, and whole lives of a case."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from access.enums import Role
from access.models import User
from approvals.actions import Submission, decide, expire_due
from approvals.models import Proposal
from approvals.receipts import issue
from approvals.shown import view_of
from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from common.errors import Refused
from common.ids import new_id
from common.models import Tenant
from repair.models import RepairPacket
from tests.examples.refunds.conftest import RunningProvider
from tests.factories import make_group, make_tenant, make_user
from workflows import sweep
from workflows.actions.cancelling import supply_data
from workflows.actions.compensating import UNDOING, follow
from workflows.actions.runs import EventConflict, Source, start_run
from workflows.enums import RunStatus
from workflows.models import Command, Document, Run, Step

HELPDESK = Actor("api:helpdesk", Via.TOKEN, Owner.AUTOMATION)
KEYS = {"harbour": "demo-provider-key", "linden": "other-provider-key"}
MOVING = (
    RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.EXECUTING, RunStatus.WAITING_FOR_PROVIDER,
    RunStatus.WAITING_FOR_RETRY, RunStatus.UNKNOWN,
)  # fmt: skip


class Suggesting:
    """A classifier that says what the case wants it to say, as a bad model might."""

    name, version = "suggesting", 1
    says: dict[str, Any] = {}

    def classify(self, message: str, *, order: str) -> dict[str, Any]:
        return self.says


@dataclass
class Shop:
    """Everything that a case meets. ``seen`` are the states that its run went through."""

    provider: RunningProvider
    keys: Path
    settings: Any
    people: dict[tuple[str, str], User] = field(default_factory=dict)
    tenants: dict[str, Tenant] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    later: timedelta = timedelta(0)

    def open(self) -> None:
        self.keys.write_text(json.dumps(KEYS))
        self.settings.PLACET_REFUNDS_URL, self.settings.PLACET_REFUNDS_KEYS = (
            self.provider.url,
            str(self.keys),
        )
        self.settings.OUTGOING_TRUSTED_HOSTS = [f"127.0.0.1:{self.provider.port}"]
        for slug in KEYS:
            tenant = self.tenants[slug] = make_tenant(slug)
            groups = [make_group(tenant, name) for name in ("Refund desk", "Finance")]
            for name in ("one", "two"):
                self.people[slug, name] = make_user(
                    tenant, f"{slug}-{name}", roles=[Role.REVIEWER], groups=groups
                )

    def clock(self) -> datetime:
        return db_clock() + self.later

    # -- the world around the case --------------------------------------------------------------------------

    def arrange(self, changes: list[dict[str, Any]]) -> None:
        for change in changes:
            [(what, value)] = change.items()
            getattr(self, f"_arrange_{what}")(value)

    def _arrange_fault(self, rule: dict[str, Any]) -> None:
        assert self.provider.call("POST", "/_admin/switches", rule).status == 200

    def _arrange_order(self, order: dict[str, Any]) -> None:
        assert self.provider.call("POST", "/_admin/orders", order).status == 200

    def _arrange_customer(self, customer: dict[str, Any]) -> None:
        assert self.provider.call("POST", "/_admin/customers", customer).status == 200

    def _arrange_key(self, key: str) -> None:
        self.keys.write_text(json.dumps(KEYS | {"harbour": key}))

    def _arrange_classifier(self, says: dict[str, Any]) -> None:
        Suggesting.says = says
        self.settings.PLACET_REFUNDS_CLASSIFIER = "tests.examples.refunds.shop.Suggesting"

    def _arrange_hours_pass(self, hours: int) -> None:
        self.later = timedelta(hours=hours)
        expire_due(clock=self.clock)

    # -- the life of a case -----------------------------------------------------------------------------------

    def deliver(self, tenant: str, event_id: str, request: dict[str, Any]) -> tuple[Run, bool]:
        started = start_run(
            tenant_id=self.tenants[tenant].pk, workflow="refund-triage", source=Source("helpdesk", event_id),
            input=request, by=HELPDESK, clock=db_clock,
        )  # fmt: skip
        return started.run, started.created

    def conflict(self, tenant: str, event_id: str, request: dict[str, Any]) -> str:
        try:
            self.deliver(tenant, event_id, request)
        except EventConflict as refused:
            return refused.code
        return ""

    def advance(self, run: Run, *, rounds: int = 40) -> Run:
        """Let engine and worker run until the case rests; waits for a clock are made to be over at once."""
        for _ in range(rounds):
            sweep.drain()
            run = Run.objects.get(pk=run.pk)
            self.seen.add(run.status)
            if run.status not in MOVING:
                return run
            self._hurry(run.pk)
        raise AssertionError(f"the run is still {run.status}")

    def _hurry(self, run_id: UUID) -> None:
        now = db_clock()
        Step.objects.filter(run_id=run_id, due_at__gt=now).update(due_at=now)
        Command.objects.filter(run_id=run_id, due_at__gt=now).update(due_at=now)
        sweep.look_around()

    def answer(self, run: Run, data: dict[str, Any]) -> None:
        assert run.status == RunStatus.WAITING_FOR_DATA
        assert run.wait_id is not None
        supply_data(
            tenant_id=run.tenant_id,
            run_id=run.pk,
            wait_id=run.wait_id,
            data=data,
            by=HELPDESK,
            clock=db_clock,
        )

    def propose_undo(self, tenant: str, run: Run, reason: str) -> Run:
        """As an operator does; returns the run of the compensation, which waits for a decision."""
        name = f"{tenant}-operator"
        user = User.objects.filter(username=name).first()
        user = user or make_user(self.tenants[tenant], name, roles=[Role.OPERATOR])
        by = Actor(f"user:{user.pk}", Via.SESSION, Owner.PERSON, user_id=user.pk)
        proposal = follow(
            UNDOING,
            tenant_id=run.tenant_id,
            run_id=run.pk,
            key="refund",
            reason=reason,
            by=by,
            clock=db_clock,
        )
        return Run.objects.get(pk=proposal.run_id)

    def decide(self, tenant: str, run: Run, decision: dict[str, Any]) -> str:
        """Decide as that person, with real receipts for every part; returns the refusal's code, or nothing."""
        user, proposal = self.people[tenant, decision["by"]], Proposal.objects.get(run_id=run.pk)
        view = view_of(proposal)
        receipts = tuple(
            issue(
                user_id=user.pk, proposal_id=proposal.pk, digest=proposal.digest, view_digest=proposal.view_digest,
                part=part, at=db_clock(),
            )
            for part in view.parts
        )  # fmt: skip
        submission = Submission(
            decision["kind"], proposal.digest, proposal.view_digest, receipts,
            tuple(view.to_acknowledge) if decision.get("acknowledge", True) else (), reason=decision.get("reason", ""),
            confirmed=lambda digest: digest == proposal.digest,
        )  # fmt: skip
        by = Actor(f"user:{user.pk}", Via.SESSION, Owner.PERSON, user_id=user.pk)
        try:
            decide(
                tenant_id=run.tenant_id,
                proposal_id=proposal.pk,
                submission=submission,
                by=by,
                clock=self.clock,
            )
        except Refused as refused:
            return refused.code
        return ""

    # -- what came of it ----------------------------------------------------------------------------------------

    def last_arrival(self) -> int:
        arrivals = self._arrivals(0)
        return int(arrivals[-1]["seq"]) if arrivals else 0

    def effects_after(self, arrival: int) -> list[tuple[str, str]]:
        """(idempotency key, "EUR 49.90") of every refund that the provider has really made since; of one that it has
        called back "back EUR 49.90".
        """
        keys = [row["key"] for row in self._arrivals(arrival) if row["effect"]]
        return [(key, self._amount_of(key)) for key in keys]

    def _arrivals(self, after: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.provider.call("GET", f"/_admin/journal?after={after}").json[
            "arrivals"
        ]
        return found

    def _amount_of(self, key: str) -> str:
        for tenant_key in KEYS.values():
            for kind, word in (("refunds", ""), ("reversals", "back ")):
                made = self.provider.call("GET", f"/{kind}?key={key}", key=tenant_key).json[kind]
                if made:
                    assert len(made) == 1
                    return f"{word}{made[0]['currency']} {made[0]['amount']}"
        raise AssertionError("the provider does not know the key")

    def kept(self, run: Run) -> str:
        documents = Document.objects.filter(run_id=run.pk, kind__startswith="kept.")
        return "".join(bytes(document.content).decode() for document in documents)

    def packets(self, run: Run) -> list[RepairPacket]:
        return [packet for packet in RepairPacket.objects.filter(run=run) if packet.status == "open"]


def new_event() -> str:
    return f"ticket-{new_id()}"
