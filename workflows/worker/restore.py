"""After a backup was restored: the rows know nothing of what was done after the backup was made.

So every command that has not ended is in doubt, every question to people that is still open is asked anew, and no run
that was on its way acts by itself: all of it may have gone on, and been done, in the time that is lost. The reconciler
and people settle the rest.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals.actions import lock_proposal, move_proposal
from approvals.enums import Mode, ProposalStatus
from approvals.hooks import proposal_ended
from approvals.models import Proposal
from audit.actors import Actor
from common.clock import Clock
from common.rounds import each
from common.tx import action
from workflows.actions.decided import save_command
from workflows.actions.freezing import Scope, freeze
from workflows.actions.proposing import MODES
from workflows.actions.settle import lock_run, settle_run, steps_of, stop_step
from workflows.enums import AttemptStatus, CommandStatus, RunStatus, StepKind, StepStatus, WaitingFor
from workflows.models import Attempt, Command, Hold, Step
from workflows.worker.held import Held, hold, open_packet, report_unknown

WHY: Final = "a backup was restored: nothing is sent until it is known what was done after the backup"
RESTORED: Final = "restored"
ACTING_STAGES: Final = tuple(stage for stage, mode in MODES.items() if mode == Mode.LIVE)
"""The others only propose: of their runs nothing is ever sent."""
STILL_UNKNOWN: Final = (
    "Nobody knew what became of it, and then a backup was restored: it may have been sent again since."
)
MAY_BE_DONE: Final = (
    "A backup was restored. This may have been done after the backup was made; it does not go on."
)


class NotAllRestored(Exception):
    """Something could not be put in doubt or stopped. It would be sent: no worker may start until none is left."""

    def __init__(self, freeze: Hold, left: int) -> None:
        super().__init__(f"{left} left")
        self.freeze, self.left = freeze, left


@dataclass(frozen=True, slots=True)
class Restored:
    """What was found: the freeze, how many commands are in doubt now, how many questions are to be asked anew, and how
    many runs were stopped before they asked for their action.
    """

    freeze: Hold
    in_doubt: int
    asked_anew: int
    stopped: int


def after_restore(*, by: Actor, clock: Clock) -> Restored:
    """Freeze everything, then doubt, invalidate and stop all that has not ended, each in a transaction of its own.

    Run it before any worker starts. It may be run again: what it has seen to already stays as it is. What fails is
    tried once more; raises NotAllRestored when something is left all the same, and the freeze stays.
    """
    frozen = freeze(scope=Scope(None), why=WHY, by=by, clock=clock)
    found = _round(by=by, clock=clock)
    if _left():
        found = [sum(pair) for pair in zip(found, _round(by=by, clock=clock), strict=True)]
    left = _left()
    if left:
        raise NotAllRestored(frozen, left)
    return Restored(frozen, *found)


def _round(*, by: Actor, clock: Clock) -> list[int]:
    """Commands first: a run is stopped only where nothing that was approved is on its way."""
    rounds = (
        (_to_doubt().values_list("tenant_id", "proposal_id"), _doubt),
        (_to_ask_anew().values_list("tenant_id", "id"), _invalidate),
        (_to_stop().values_list("tenant_id", "run_id"), _stop),
    )
    return [
        each(list(dict.fromkeys(rows)), lambda row: do(*row, by=by, clock=clock), what="after_restore")  # noqa: B023
        for rows, do in rounds
    ]


def _left() -> int:
    return sum(rows.count() for rows in (_to_doubt(), _to_ask_anew(), _to_stop()))


# -- what has not ended ---------------------------------------------------------------------------------------------


def _to_doubt() -> QuerySet[Command]:
    """Also what was unknown in the backup: that it was not found then says nothing about a request made since."""
    on_its_way = Q(status__in=(*CommandStatus.stoppable_states, CommandStatus.SENT))
    unknown = Q(status=CommandStatus.UNKNOWN, restored=False)
    return Command.objects.filter(on_its_way | unknown).order_by("id")


def _to_ask_anew() -> QuerySet[Proposal]:
    return Proposal.objects.filter(status=ProposalStatus.PENDING, mode=Mode.LIVE).order_by("id")


def _to_stop() -> QuerySet[Step]:
    """Side effects not yet proposed, or waiting for a new version, of runs that may have gone on since."""
    live = Command.objects.filter(step_id=OuterRef("pk"), status__in=CommandStatus.live_states)
    return (
        Step.objects.filter(~Exists(live), kind=StepKind.SIDE_EFFECT, run__stage__in=ACTING_STAGES)
        .exclude(status__in=StepStatus.final_states)
        .exclude(run__status__in=RunStatus.final_states)
        .exclude(status=StepStatus.WAITING, waiting_for=WaitingFor.PERSON)
        .order_by("run_id", "position")
    )


# -- commands -------------------------------------------------------------------------------------------------------


@action
def _doubt(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> bool:
    held = hold(tenant_id, proposal_id, by=by, clock=clock)
    if held is None or not _to_doubt().filter(pk=held.command.pk).exists():
        return False
    for attempt in Attempt.objects.filter(command=held.command, ended_at__isnull=True):
        if attempt.status == AttemptStatus.SENT:
            attempt.no_answer(at=held.now, outcome=RESTORED, detail="a backup was restored")
        else:
            attempt.release(at=held.now, outcome=RESTORED)
        attempt.save()
    if held.command.status == CommandStatus.UNKNOWN:
        _doubt_once_more(held)
    else:
        held.move("doubt", RESTORED, at=held.now, code=RESTORED, restored=True)
        report_unknown(held)
    return True


def _doubt_once_more(held: Held) -> None:
    """It stays unknown; but its last request may have been made at any time until now, so *no* counts later."""
    command = held.command
    cause = "command_unknown"
    if command.failure_code == "key_reused":
        cause = "command_key_reused"  # and stays so: what is found under that key may be somebody else's
    else:
        command.failure_code = RESTORED
    command.restored, command.last_sent_at, command.due_at = True, held.now, held.now
    save_command(command, command.status, by=held.by, reason=RESTORED, digest=held.proposal.digest)
    run = lock_run(command.tenant_id, command.run_id)
    step = next(step for step in steps_of(run) if step.pk == command.step_id)
    # The same cause as before: a packet that waits for a second person's word waits for both again.
    open_packet(held, run, step, cause, STILL_UNKNOWN)
    settle_run(run, by=held.by, now=held.now)


# -- questions, and runs that had not asked yet ---------------------------------------------------------------------


@action
def _invalidate(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> bool:
    proposal = lock_proposal(tenant_id, proposal_id)
    if proposal.status != ProposalStatus.PENDING:
        return False
    move_proposal(proposal, "invalidate", by=by, at=clock(), reason=RESTORED)
    proposal_ended(proposal, ProposalStatus.INVALIDATED, by=by, clock=clock)
    return True


@action
def _stop(tenant_id: UUID, run_id: UUID, *, by: Actor, clock: Clock) -> bool:
    """A person looks before the run acts. Its earlier stages may run: they change nothing outside."""
    changes_wished = Proposal.objects.filter(
        tenant_id=tenant_id, run_id=run_id, mode=Mode.LIVE, status=ProposalStatus.CHANGES_REQUESTED
    )
    wished = [
        lock_proposal(tenant_id, pk) for pk in changes_wished.order_by("pk").values_list("pk", flat=True)
    ]
    run = lock_run(tenant_id, run_id)
    now = clock()
    steps = steps_of(run)
    to_stop = set(_to_stop().filter(run=run).values_list("pk", flat=True))
    for step in [step for step in steps if step.pk in to_stop]:
        for proposal in wished:
            if proposal.pk == step.proposal_id and proposal.status == ProposalStatus.CHANGES_REQUESTED:
                # Its proposer may send no new version any more, which a rule could approve.
                move_proposal(proposal, "expire", by=by, at=now, reason=RESTORED)
        stop_step(run, step, RESTORED, MAY_BE_DONE, by=by, now=now, proposal_id=step.proposal_id)
    settle_run(run, by=by, now=now, steps=steps)
    return bool(to_stop)
