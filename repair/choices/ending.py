"""The end of a case: cancel what is left of the run, or close it as handled outside."""

from datetime import datetime
from typing import Final

from audit.actors import Actor
from common.clock import Clock
from repair.choices import rules
from repair.choices.case import Case
from repair.choices.declared import Choice, DryRun, Typed
from repair.choices.dry import late_until, title_of_order
from repair.models import RepairPacket
from workflows.actions.cancelling import cancel_run
from workflows.enums import CommandStatus, RunStatus, SettledBy
from workflows.replays import HANDLED_OUTSIDE


def _cancel(case: Case, typed: Typed, by: Actor, clock: Clock) -> str:
    result = cancel_run(
        tenant_id=case.tenant_id, run_id=case.run.pk, reason=typed["words"], by=by, clock=clock
    )
    if result == "cancelled":
        return "The run is cancelled."
    return "That it be cancelled is recorded: it ends as soon as it is settled what has happened."


def _cancelled(case: Case, typed: Typed | None) -> DryRun:
    until, says = late_until(case)
    flying = case.command is not None and case.command.status in CommandStatus.in_flight_states
    if flying:
        changes: tuple[str, ...] = (
            f"{title_of_order(case)} is on its way or in doubt, and is not called back: cancelling is a wish.",
            "If it did not happen, it is cancelled and not sent again. If it happened, that stands.",
        )
    else:
        changes = (
            "The run is cancelled: what waits for approval is withdrawn, what waits to be sent is cancelled.",
            "Steps that have not begun are cancelled with it.",
            "Where something of the run has happened, later steps still run, so that the requester is told.",
        )
    return DryRun(changes, until=until, until_says=says)


def _close(case: Case, typed: Typed, by: Actor, clock: Clock) -> str:
    """Ends what is left of the run; what happened late is not a question of how the run goes on."""
    if case.facts.cause != rules.LATE_EFFECT and case.run.status not in RunStatus.final_states:
        cancel_run(
            tenant_id=case.tenant_id, run_id=case.run.pk, reason=typed["words"], by=by, clock=clock,
            settled_by=SettledBy.PERSON,
        )  # fmt: skip
    return "Closed as handled outside."


def closed(packet: RepairPacket, now: datetime) -> None:
    """What `close` does to the packet itself, where nothing has closed it yet."""
    packet.resolve(at=now, how=HANDLED_OUTSIDE)


def _closed(case: Case, typed: Typed | None) -> DryRun:
    until, says = late_until(case)
    if case.facts.cause == rules.LATE_EFFECT or case.run.status in RunStatus.final_states:
        changes: tuple[str, ...] = (
            "Only this case is closed. The run, its outcome and its receipts stay as they are.",
        )
    else:
        changes = (
            "The case is closed, and what is left of the run is cancelled: nothing more of it is sent.",
            "The outcome of the run is corrected to “handled outside”, with your words beside it.",
        )
    return DryRun(changes, until=until, until_says=says)


CANCEL: Final = Choice(
    "cancel", "Cancel the run", "What has happened is not taken back.", "ban", rules.CANCEL, _cancelled, act=_cancel,
    needs=("a reason",), danger=True, resolves=True, in_bulk=True,
)  # fmt: skip
CLOSE: Final = Choice(
    "close", "Close it as handled outside", "Somebody saw to it in another way.", "check", rules.CLOSE, _closed,
    act=_close,
    finish=closed, needs=("what was done, and where",), danger=True, resolves=True, in_bulk=True, button="Close it",
)  # fmt: skip
FAMILY: Final = (CANCEL, CLOSE)
