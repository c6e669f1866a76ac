"""Cancel a run, and answer one that waits for data."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.db.models import QuerySet
from jsonschema import Draft202012Validator

from approvals.actions import lock_proposal, move_proposal
from approvals.enums import ProposalStatus
from approvals.models import Proposal
from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.errors import InvalidInput, Refused
from common.sealed import check_intact
from common.tx import action
from workflows.actions.correcting import correct
from workflows.actions.decided import end_claim, move_command
from workflows.actions.runs import make_due
from workflows.actions.settle import has_acted, lock_run, move_step, settle_run, steps_of
from workflows.documents import store_json
from workflows.enums import CommandStatus, RunStatus, SettledBy, StepKind, StepStatus, WaitingFor
from workflows.hooks import settled
from workflows.models import Command, Run, Step
from workflows.replays import HANDLED_OUTSIDE


class RunEnded(Refused):
    """The run has ended already."""

    code = "run_ended"


class WaitOver(Refused):
    """The run no longer waits for that: it was answered, its time ran out, or the run ended."""

    code = "wait_over"


class DataRefused(InvalidInput):
    """The data does not fit what was asked for."""

    code = "invalid_data"


def cancel_run(
    *,
    tenant_id: UUID,
    run_id: UUID,
    reason: str,
    by: Actor,
    clock: Clock,
    settled_by: SettledBy = SettledBy.CHECK,
) -> Literal["cancelled", "cancel_requested"]:
    """Stop a run. Before anything was sent it stops at once; after that, cancelling is a wish.

    ``settled_by`` a person: what was wanted has been seen to outside, which the outcome of a run that stops says too.
    Starts again when the run has got another proposal or command meanwhile; it makes only so many of them.
    Raises UnknownRun or RunEnded.
    """
    while True:
        answer = _cancel(tenant_id, run_id, reason, settled_by, by=by, clock=clock)
        if answer is not None:
            return answer


@action
def _cancel(
    tenant_id: UUID, run_id: UUID, reason: str, settled_by: SettledBy, *, by: Actor, clock: Clock
) -> Literal["cancelled", "cancel_requested"] | None:
    """The ids are read without a lock, then locked in the one order (proposals, commands, run) and checked again."""
    proposals = [lock_proposal(tenant_id, pk) for pk in _live_proposals(tenant_id, run_id)]
    commands = list(_live_commands(tenant_id, run_id).select_for_update(of=("self",), no_key=True))
    run = lock_run(tenant_id, run_id)
    now = clock()
    if run.status in RunStatus.final_states:
        if run.status == RunStatus.CANCELLED:
            return "cancelled"
        raise RunEnded(status=run.status)
    if not _are_all(run, proposals, commands):
        return None
    if run.cancel_requested_at is None:
        run.cancel_requested_at, run.cancel_reason = now, reason[:500]
    return _stop(run, proposals, commands, settled_by, by=by, now=now)


def _live_proposals(tenant_id: UUID, run_id: UUID) -> list[UUID]:
    live = Proposal.objects.filter(tenant_id=tenant_id, run_id=run_id, status__in=ProposalStatus.live_states)
    return list(live.order_by("pk").values_list("pk", flat=True))


def _live_commands(tenant_id: UUID, run_id: UUID) -> QuerySet[Command]:
    live = Command.objects.filter(tenant_id=tenant_id, run_id=run_id, status__in=CommandStatus.live_states)
    return live.order_by("pk")


def _are_all(run: Run, proposals: list[Proposal], commands: list[Command]) -> bool:
    """Whether, under the run's lock, no live proposal or command is there that was not locked before."""
    locked = {row.pk for row in (*proposals, *commands)}
    commanded = _live_commands(run.tenant_id, run.pk).values_list("pk", flat=True)
    return locked >= {*_live_proposals(run.tenant_id, run.pk), *commanded}


def _stop(
    run: Run,
    proposals: list[Proposal],
    commands: list[Command],
    settled_by: SettledBy,
    *,
    by: Actor,
    now: datetime,
) -> Literal["cancelled", "cancel_requested"]:
    in_flight = [command for command in commands if command.status in CommandStatus.in_flight_states]
    busy = {command.proposal_id for command in in_flight}
    for command in commands:
        if command not in in_flight:
            end_claim(command, at=now, outcome="cancelled")
            move_command(command, "cancel", by, "cancelled", at=now, by=settled_by)
    open_ = [proposal for proposal in proposals if proposal.pk not in busy and proposal.is_live]
    for proposal in open_:
        move_proposal(proposal, "withdraw", by=by, at=now, reason="run cancelled")
    steps = steps_of(run)
    acted = bool(in_flight) or has_acted(run)
    if acted:
        # What was sent may have happened: then the later stages still run, so that the requester is told.
        record(
            by=by, kind="run.cancel_requested", tenant_id=run.tenant_id, subject_type="run", subject_id=run.pk,
            run_id=run.pk,
        )  # fmt: skip
        asked = {proposal.pk for proposal in open_}
        # An action that waits for a person goes on by no other way: left so, the run would never end.
        stops = [
            step for step in steps
            if step.proposal_id in asked or (_is_stopped_action(step) and step.proposal_id not in busy)
        ]  # fmt: skip
        cancel_steps(stops, by=by, now=now)
    else:
        cancel_steps(steps, by=by, now=now)
    settle_run(run, by=by, now=now, steps=steps)
    if settled_by == SettledBy.PERSON and run.status == RunStatus.CANCELLED:
        correct(run, HANDLED_OUTSIDE, run.cancel_reason, by=by, now=now)
    return "cancel_requested" if acted else "cancelled"


def cancel_steps(steps: list[Step], *, by: Actor, now: datetime) -> None:
    """Cancel what has not ended. For the steps of a locked run."""
    for step in steps:
        if step.status not in StepStatus.final_states:
            move_step(step, "cancel", by, "cancelled", at=now)


@action
def supply_data(
    *, tenant_id: UUID, run_id: UUID, wait_id: UUID, data: Mapping[str, Any], by: Actor, clock: Clock,
    side: Collection[UUID] = (), late: bool = False,
) -> Run:  # fmt: skip
    """Answer a step that waits for data; the answer must name the wait, so that a late one is told apart.

    ``side``: the people behind whoever answers. They do not decide on what is proposed from it. ``late``: by somebody
    of the repair desk, also when the time for it is over and the step waits for a person instead.
    """
    run = lock_run(tenant_id, run_id)
    now = clock()
    steps = steps_of(run)
    step = next((step for step in steps if step.wait_id == wait_id and _takes_data(step, now, late)), None)
    if step is None:
        raise WaitOver(status=run.status)
    _check_data(step, data)
    document = store_json(tenant_id, run_id, f"data.{step.key}", dict(data), now)
    record(
        by=by, kind="run.data_supplied", tenant_id=tenant_id, subject_type="step", subject_id=step.pk,
        run_id=run.pk, body={"wait_id": str(wait_id), "document": str(document.pk), "side": sorted(map(str, side))},
    )  # fmt: skip
    move_step(step, "resume", by, "data supplied", at=now)
    make_due(step, now)
    settled(run, step.key, "data_supplied", by=by, at=now)
    settle_run(run, by=by, now=now, steps=steps)
    return run


def _takes_data(step: Step, now: datetime, late: bool) -> bool:
    in_time = step.waiting_until is not None and now < step.waiting_until
    return (in_time and _waits_for(step, WaitingFor.DATA)) or (
        late and _waits_for(step, WaitingFor.PERSON) and step.asks is not None
    )


def _is_stopped_action(step: Step) -> bool:
    return step.kind == StepKind.SIDE_EFFECT and _waits_for(step, WaitingFor.PERSON)


def _waits_for(step: Step, what: WaitingFor) -> bool:
    return step.status == StepStatus.WAITING and step.waiting_for == what


def _check_data(step: Step, data: Mapping[str, Any]) -> None:
    """Exactly what was asked for: the step's own JSON Schema, and no field beside it. The values stay unsaid."""
    check_intact(step, "asks")  # what was asked must not become *nothing*
    schema = {"type": "object", "additionalProperties": False} | (step.asks or {}).get("schema", {})
    errors = list(Draft202012Validator(schema).iter_errors(dict(data)))
    if not errors:
        return
    asked = schema.get("properties", {})
    raise DataRefused(
        unknown=sorted(set(data) - set(asked)), missing=sorted(set(schema.get("required", ())) - set(data)),
        invalid=sorted({str(error.absolute_path[0]) for error in errors if error.absolute_path}),
    )  # fmt: skip
