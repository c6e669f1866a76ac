"""What a proposal's end means for its run. Called by `approvals` inside the deciding transaction, proposal locked.

Locks follow the one order: proposals (held), commands, run.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from approvals.enums import Mode, ProposalStatus
from approvals.models import Proposal
from approvals.refusals import ActionInProgress
from audit.actions import Entry, record, record_many
from audit.actors import Actor
from audit.bound import ROW, row_digest, utc_text
from common import prepared
from common.clock import Clock
from common.crashpoints import crashpoint
from common.errors import Refused
from common.ids import new_id
from workflows import registry
from workflows.actions.replaying import check_may_act
from workflows.actions.settle import (
    end_by_expiry,
    lock_run,
    make_wait,
    move_step,
    settle_run,
    steps_of,
    stop_step,
)
from workflows.bound import of_command
from workflows.definitions import ONLY_PROPOSED_TELL
from workflows.doorbell import ring_on_commit
from workflows.enums import AttemptStatus, CommandStatus, StepStatus, VoidReason, WaitingFor
from workflows.hooks import settled
from workflows.models import Attempt, Command, Run, Step
from workflows.waits import StepWait

S = ProposalStatus


class TooLate(Refused):
    """Too late: the action was already sent, or nobody knows whether it was."""

    code = "too_late"


class OperationGone(Refused):
    """This version of the operation is not installed here any more, so nothing could carry it out. A new version of the
    proposal is needed.
    """

    code = "operation_gone"


def proposal_ended(proposal: Proposal, how: str, *, by: Actor, clock: Clock) -> UUID | None:
    """Carry the end of a proposal over to its run; returns the command's id when one was written."""
    now = clock()
    if how == S.APPROVED and proposal.mode == Mode.LIVE:
        return _execute(proposal, by=by, now=now)
    if how == S.WITHDRAWN:
        _stop_command(proposal, VoidReason.WITHDRAWN, by=by, now=now)
    run = lock_run(proposal.tenant_id, proposal.run_id)
    steps = steps_of(run)
    step = next(step for step in steps if step.key == proposal.step)
    if step.status not in StepStatus.final_states and step.proposal_id == proposal.pk:
        settled(run, step.key, how, by=by, at=now)
        _ENDS[S(how)](run, step, proposal, steps, by, now)
    settle_run(run, by=by, now=now, steps=steps)
    return None


def _execute(proposal: Proposal, *, by: Actor, now: datetime) -> UUID:
    command = _write_command(proposal, by=by, now=now)
    run = lock_run(proposal.tenant_id, proposal.run_id)
    check_may_act(run, command)
    assert proposal.execute_by is not None
    steps = steps_of(run)
    step = next(step for step in steps if step.key == proposal.step)
    make_wait(step, StepWait(WaitingFor.PROVIDER, proposal.execute_by), by=by, reason="approved")
    settled(run, step.key, "approved", by=by, at=now)
    settle_run(run, by=by, now=now, steps=steps)
    ring_on_commit()
    crashpoint("CP0")
    return command.pk


def _write_command(proposal: Proposal, *, by: Actor, now: datetime) -> Command:
    """The durable order. Raises ActionInProgress when another command holds the same business or idempotency key."""
    command = _new_command(proposal, now)
    # One statement that waits for another approval of the same thing, and says who was first: the unique indexes decide
    # it, so nothing is looked up before, and no savepoint is needed around an error.
    found = {"step_id": (_STEP_ID, [proposal.run_id, proposal.step]), "lane": (_LANE, [proposal.run_id])}
    if not prepared.insert(command, or_nothing=True, found=found):
        # Another command holds a key, perhaps of an approval in the same instant; by now that one may have ended too.
        _check_keys_free(proposal)
        prepared.insert(command, found=found)
    record(
        by=by, kind="command.ready", tenant_id=command.tenant_id, subject_type="command", subject_id=command.pk,
        run_id=command.run_id, to_state=command.status, digest=proposal.digest,
        body={
            "proposal_id": str(proposal.pk), "operation": command.operation, "key": command.idempotency_key,
            ROW: row_digest(of_command(vars(command))),
        },
    )  # fmt: skip
    return command


def _new_command(proposal: Proposal, now: datetime) -> Command:
    if not registry.knows(proposal.operation, proposal.operation_version):
        raise OperationGone(operation=proposal.operation, version=proposal.operation_version)
    operation = registry.operation(proposal.operation, proposal.operation_version)
    return Command(
        id=new_id(), tenant_id=proposal.tenant_id, proposal=proposal, run_id=proposal.run_id,
        operation=proposal.operation, operation_version=proposal.operation_version, provider=operation.provider,
        target=proposal.target, business_key=proposal.business_key, idempotency_key=proposal.idempotency_key,
        created_at=now, due_at=now,
    )  # fmt: skip


_STEP_ID = "(SELECT id FROM workflows_step WHERE run_id = %s AND key = %s)"
_LANE = "(SELECT lane FROM workflows_run WHERE id = %s)"


def _check_keys_free(proposal: Proposal) -> None:
    holds = Q(business_key=proposal.business_key, status__in=CommandStatus.live_states) | Q(
        idempotency_key=proposal.idempotency_key, status__in=CommandStatus.key_holding_states
    )
    taken = Command.objects.filter(holds, tenant_id=proposal.tenant_id).values_list("pk", flat=True).first()
    if taken is not None:
        raise ActionInProgress(command_id=taken)


def _stop_command(proposal: Proposal, reason: VoidReason, *, by: Actor, now: datetime) -> None:
    """End the command of a proposal that was approved before, if nothing was sent. Raises TooLate."""
    command = lock_command_of(proposal)
    if command is None:
        return
    if command.status not in CommandStatus.stoppable_states:
        raise TooLate(command_id=str(command.pk))
    end_claim(command, at=now, outcome=reason)
    move_command(command, "make_void", by, reason, at=now, reason=reason)


def end_claim(command: Command, *, at: datetime, outcome: str) -> None:
    """The command is taken from the worker that holds it: nothing was sent in that try, and nothing will be."""
    for attempt in Attempt.objects.filter(command=command, status=AttemptStatus.CLAIMED):
        attempt.release(at=at, outcome=outcome)
        attempt.save()


def lock_command_of(proposal: Proposal) -> Command | None:
    return (
        Command.objects.select_for_update(of=("self",), no_key=True)
        .filter(tenant_id=proposal.tenant_id, proposal=proposal).first()
    )  # fmt: skip


def move_command(
    command: Command, move: str, actor: Actor, why: str = "", /, *, digest: str = "", **arguments: Any
) -> None:
    """Make one transition of a locked command, save it and write its event."""
    before = command.status
    getattr(command, move)(**arguments)
    save_command(command, before, by=actor, reason=why, digest=digest)


def save_command(command: Command, before: str, *, by: Actor, reason: str = "", digest: str = "") -> None:
    """Save a moved command and write its event."""
    command.state_version += 1
    command.save()
    record_many([command_event(command, before, by=by, reason=reason, digest=digest)])


def command_event(command: Command, before: str, *, by: Actor, reason: str = "", digest: str = "") -> Entry:
    """What is recorded of a command that has moved from ``before``."""
    return Entry(
        by=by, kind=f"command.{command.status}", tenant_id=command.tenant_id, subject_type="command",
        subject_id=command.pk, run_id=command.run_id, from_state=before, to_state=command.status, reason=reason,
        digest=digest, body={
            "effect": command.effect, "settled_by": command.settled_by, "tries": command.tries,
            "provider_reference": command.provider_reference, "code": command.failure_code,
        } | ({"hold": str(command.hold_id)} if command.hold_id else {}) | _sent_at(command),
    )  # fmt: skip


def _sent_at(command: Command) -> dict[str, str]:
    """When its request left, which the try says too."""
    sent = command.status == CommandStatus.SENT and command.last_sent_at is not None
    return {"sent_at": utc_text(command.last_sent_at)} if sent and command.last_sent_at else {}


# -- what each end means for the step ------------------------------------------------------------------------


def _approved_without_sending(
    run: Run, step: Step, proposal: Proposal, steps: list[Step], by: Actor, now: datetime
) -> None:
    """Shadow, draft, canary: the decision is all there is, and nobody is told that anything was done."""
    move_step(step, "complete", by, at=now, result_ref=None)
    run.outcome, run.user_message = "no_action", ONLY_PROPOSED_TELL


def _rejected(run: Run, step: Step, proposal: Proposal, steps: list[Step], by: Actor, now: datetime) -> None:
    """The step is skipped, later stages run, and the run completes as *declined*."""
    move_step(step, "skip", by, at=now)
    run.outcome, run.user_message = "declined", registry.promised(run).declined_tell


def _changes_requested(
    run: Run, step: Step, proposal: Proposal, steps: list[Step], by: Actor, now: datetime
) -> None:
    """An outside proposer sends the new version; a workflow's own case goes to a person, who makes it."""
    flow = registry.installed(run.workflow)
    if flow is None or not flow.accepts_proposals or run.is_follow_up:
        summary = "A reviewer asked for changes: a new version must be proposed."
        stop_step(run, step, "changes_requested", summary, by=by, now=now, proposal_id=proposal.pk)


def _expired(run: Run, step: Step, proposal: Proposal, steps: list[Step], by: Actor, now: datetime) -> None:
    """Nobody decided in time. What then happens, the contract says; approval it never is."""
    summary = "Nobody decided in time. To ask again takes a new proposal."
    end_by_expiry(run, step, "approval_expired", summary, steps, by=by, now=now, proposal_id=proposal.pk)


def _withdrawn(run: Run, step: Step, proposal: Proposal, steps: list[Step], by: Actor, now: datetime) -> None:
    move_step(step, "skip", by, at=now)
    run.outcome = run.outcome or "withdrawn"


def _invalidated(
    run: Run, step: Step, proposal: Proposal, steps: list[Step], by: Actor, now: datetime
) -> None:
    summary = "The proposal is no longer valid. To ask again takes a new one."
    stop_step(run, step, "proposal_invalidated", summary, by=by, now=now, proposal_id=proposal.pk)


_ENDS = {
    S.APPROVED: _approved_without_sending,
    S.REJECTED: _rejected,
    S.CHANGES_REQUESTED: _changes_requested,
    S.EXPIRED: _expired,
    S.WITHDRAWN: _withdrawn,
    S.INVALIDATED: _invalidated,
}
