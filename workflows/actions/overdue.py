"""Waits that are over: no queue is silent, so each has its own next move, and none of them approves."""

from datetime import datetime
from uuid import UUID

from django.db import connection

from approvals.enums import ProposalStatus
from approvals.models import Proposal
from audit.actors import Actor
from common.clock import Clock
from common.content_keys import known_names, locked
from common.rounds import each
from common.tx import action
from workflows import registry
from workflows.actions.settle import end_by_expiry, lock_run, move_step, settle_run, steps_of, stop_step
from workflows.enums import CommandStatus, OnExpiry, RunStatus, WaitingFor
from workflows.hooks import Stop, stopped
from workflows.models import Command, Run, Step
from workflows.waits import wait_for_person

_OVER = f"""
    SELECT tenant_id, id FROM workflows_run r
    WHERE waiting_until IS NOT NULL AND waiting_until < clock_timestamp() AND NOT {locked("r", "id")}
    ORDER BY waiting_until LIMIT %(limit)s
"""  # noqa: S608 - our own text


def handle_overdue(*, by: Actor, clock: Clock, limit: int = 100) -> int:
    """Act on every run whose wait is over, each in a transaction of its own; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(_OVER, {"limit": limit, "keys": known_names()})
        rows = cursor.fetchall()
    return each(rows, lambda row: _handle(*row, by=by, clock=clock), what="overdue")


@action
def _handle(tenant_id: UUID, run_id: UUID, *, by: Actor, clock: Clock) -> bool:
    run = lock_run(tenant_id, run_id)
    now = clock()
    if run.waiting_until is None or run.waiting_until >= now:
        return False  # it went on meanwhile
    steps = steps_of(run)
    if run.status == RunStatus.QUEUED:
        _its_turn_never_came(run, steps, by=by, now=now)
    elif _command_moves(run):
        _report_stalled(run, by=by, now=now)
    else:
        for step in steps:
            if step.waiting_until is not None and step.waiting_until <= now:
                _wait_is_over(run, step, steps, by=by, now=now)
    settle_run(run, by=by, now=now, steps=steps_of(run))
    return True


def _its_turn_never_came(run: Run, steps: list[Step], *, by: Actor, now: datetime) -> None:
    """The run of an earlier event of the record is still live: a person decides what goes first."""
    run.wait_id, run.waiting_until, run.on_expiry = None, None, ""
    if steps[0].due_at is None:
        summary = "An earlier event of the same record is still being worked on."
        stop_step(run, steps[0], "turn_never_came", summary, by=by, now=now)


def _command_moves(run: Run) -> bool:
    return Command.objects.filter(
        tenant_id=run.tenant_id, run=run, status__in=CommandStatus.live_states
    ).exists()


def _report_stalled(run: Run, *, by: Actor, now: datetime) -> None:
    """A command that should have moved has not. It keeps its own clocks; people are told."""
    command = (
        Command.objects.filter(run=run, status__in=CommandStatus.live_states).select_related("step").first()
    )
    if command is None:
        return
    owner = registry.contract_of(run.workflow).owner
    summary = (
        f"The action has been {CommandStatus(command.status).label.lower()} for longer than it should be."
    )
    stop = Stop(run, command.step.key, "stalled", summary, owner, command.pk, command.proposal_id)
    stopped(stop, by=by, at=now)


def _wait_is_over(run: Run, step: Step, steps: list[Step], *, by: Actor, now: datetime) -> None:
    if step.waiting_for == WaitingFor.PERSON:
        _escalate(run, step, by=by, now=now)
    elif step.waiting_for == WaitingFor.DATA:
        _not_supplied(run, step, steps, by=by, now=now)
    elif step.waiting_for in (WaitingFor.PROVIDER, WaitingFor.RETRY):
        if step.due_at is not None and step.due_at <= now:
            return  # a worker is about to try it once more
        summary = "It was tried for as long as this stage may wait."
        stop_step(run, step, "retries_exhausted", summary, by=by, now=now)
    elif step.waiting_for == WaitingFor.APPROVAL and not _is_asked(step):
        # A proposal's own expiry moves the step; this is for one that lost its proposal.
        summary = "It waits for an approval that nobody is asked for any more."
        stop_step(run, step, "approval_lost", summary, by=by, now=now, proposal_id=step.proposal_id)


def _is_asked(step: Step) -> bool:
    live = Proposal.objects.filter(tenant_id=step.tenant_id, status__in=ProposalStatus.live_states)
    return step.proposal_id is not None and live.filter(pk=step.proposal_id).exists()


def _escalate(run: Run, step: Step, *, by: Actor, now: datetime) -> None:
    """Nobody has looked: the packet is raised once more, and the clock starts again."""
    _extend(step, by=by, now=now)
    owner = registry.contract_of(run.workflow).owner
    summary = "Nobody has looked at it in time."
    stopped(Stop(run, step.key, "nobody_looked", summary, owner, None, step.proposal_id), by=by, at=now)


def _extend(step: Step, *, by: Actor, now: datetime) -> None:
    wait = wait_for_person(now)
    move_step(
        step, "wait", by, "escalated", for_=WaitingFor(step.waiting_for), wait_id=step.wait_id or wait.wait_id,
        until=wait.until, on_expiry=OnExpiry(step.on_expiry), due_at=step.due_at,
    )  # fmt: skip


def _not_supplied(run: Run, step: Step, steps: list[Step], *, by: Actor, now: datetime) -> None:
    summary = "The requester did not supply in time what was asked for."
    end_by_expiry(run, step, "data_not_supplied", summary, steps, by=by, now=now)
