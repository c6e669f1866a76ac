"""A provider that writes down what really happened, and runs that stop in a dozen ways in front of it."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from approvals.actions import expire_due
from common.clock import db_clock
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, age
from tests.workflows.test_engine_waits import ASK
from tests.workflows.toy import NOTHING_CAME
from workflows.actions.overdue import handle_overdue
from workflows.authoring import Call, Done, Observation
from workflows.operations import Finding, Verdict
from workflows.worker.recover import void_lapsed

UNAUTHORIZED: Final = Observation(sent=True, status=401, code="unauthorized")
CLOSED: Final = Observation(sent=True, status=422, code="closed")


@dataclass
class Ledger:
    """The truth by order: which keys took effect. A known key is answered with its effect again, and adds none."""

    effects: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    later: list[tuple[float, Call[Any]]] = field(default_factory=list)
    """What takes its effect later, and when it came (seconds, monotonic): within the time to settle, as declared."""
    planned: dict[str, str] = field(default_factory=dict)
    """What goes wrong with an order's first request; the next one is answered as it should be."""
    blind: set[str] = field(default_factory=set)
    """Orders that no look-up finds anything out about."""

    def execute(self, call: Call[Any]) -> Observation:
        match self.planned.pop(call.arguments.order, ""):
            case "refuse":
                return CLOSED
            case "unauthorized":
                return UNAUTHORIZED
            case "lost":
                return NOTHING_CAME
            case "late":
                self.later.append((time.monotonic(), call))
                return NOTHING_CAME
            case "unheard":
                self._book(call)
                return NOTHING_CAME
        return Observation(sent=True, status=201, reference=self._book(call), body={})

    def reconcile(self, call: Call[Any]) -> Finding:
        order = call.arguments.order
        if order in self.blind:
            return Finding("no_answer")
        found = call.idempotency_key in self.effects[order]
        return Finding("happened", reference=f"re_{order}") if found else Finding("not_found")

    def land(self, *, after: timedelta = timedelta(0)) -> None:
        """What came that long ago takes its effect now."""
        due = [row for row in self.later if time.monotonic() - row[0] >= after.total_seconds()]
        self.later = [row for row in self.later if row not in due]
        for _, call in due:
            self._book(call)

    def _book(self, call: Call[Any]) -> str:
        keys = self.effects[call.arguments.order]
        if call.idempotency_key not in keys:
            keys.append(call.idempotency_key)
        return f"re_{call.arguments.order}"


def _sent(plan: str, *, blind: bool = False) -> Callable[[Desk, Ledger, str], UUID]:
    def drive(desk: Desk, ledger: Ledger, order: str) -> UUID:
        command = desk.approved(order=order)
        ledger.planned[order] = plan
        if blind:
            ledger.blind.add(order)
        desk.work()
        return command.run_id

    return drive


def _lapsed(desk: Desk, ledger: Ledger, order: str) -> UUID:
    command = desk.approved(order=order)
    age(command.run_id, 700, "approvals_proposal")
    void_lapsed(by=SWEEP, clock=db_clock)
    return command.run_id


def _record_changed(desk: Desk, ledger: Ledger, order: str) -> UUID:
    command = desk.approved(order=order)
    desk.till.tags[order] = "v2"
    desk.work()
    return command.run_id


def _stage_broke(desk: Desk, ledger: Ledger, order: str) -> UUID:
    desk.till.stages["read"] = lambda context: {}[order]  # a program's fault
    run = desk.start(order=order)
    desk.advance()
    del desk.till.stages["read"]
    return run.pk


def _undecided(desk: Desk, ledger: Ledger, order: str) -> UUID:
    proposal = desk.proposed(order=order)
    age(proposal.run_id, 5 * 3600, "approvals_proposal", "workflows_step", "workflows_run")
    expire_due(clock=db_clock)
    return proposal.run_id


def _not_supplied(desk: Desk, ledger: Ledger, order: str) -> UUID:
    desk.till.stages["judge"] = ASK
    run = desk.start(order=order)
    desk.advance()
    age(run.pk, 2 * 3600, "workflows_step", "workflows_run")
    handle_overdue(by=SWEEP, clock=db_clock)
    desk.till.stages["judge"] = lambda context: Done(dict(context.data))
    return run.pk


def _nobody(desk: Desk, ledger: Ledger, order: str) -> UUID:
    usual, desk.till.verdict = (
        desk.till.verdict,
        Verdict("ask_one", "toy.ask", "It is a toy.", group="Nobody"),
    )
    run = desk.start(order=order)
    desk.advance()
    desk.till.verdict = usual
    return run.pk


def _changes(desk: Desk, ledger: Ledger, order: str) -> UUID:
    proposal = desk.proposed(order=order)
    desk.decide(proposal, "request_changes", reason="smaller")
    return proposal.run_id


KINDS: Final[dict[str, Callable[[Desk, Ledger, str], UUID]]] = {
    "happened unheard": _sent("unheard"),
    "happened unheard, no look-up": _sent("unheard", blind=True),
    "never arrived": _sent("lost"),
    "never arrived, no look-up": _sent("lost", blind=True),
    "takes effect late, no look-up": _sent("late", blind=True),
    "refused": _sent("refuse"),
    "given up": _sent("unauthorized"),
    "not executed in time": _lapsed,
    "the record changed": _record_changed,
    "a stage broke": _stage_broke,
    "undecided": _undecided,
    "data not supplied": _not_supplied,
    "nobody eligible": _nobody,
    "changes wanted": _changes,
}
LATE: Final = timedelta(seconds=20)
"""So long the provider may take for what is late: less than the 30 s that the toy operation declares."""
SETTLED: Final = timedelta(seconds=45)
"""A little more than the toy provider's time to settle."""
