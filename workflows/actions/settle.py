"""After a step or a command has moved: the run's status follows, in the same transaction."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from audit.actions import Entry, record_many
from audit.actors import Actor
from common import prepared
from common.db import lock_name
from common.errors import NotFound
from common.ids import new_id
from common.prepared import Reading
from common.tx import require_transaction
from workflows import registry
from workflows.actions.outbox import note_state
from workflows.definitions import (
    COMPENSATED_IN_PART,
    IN_PART,
    IN_PART_TELL,
    UNDONE_IN_PART_TELL,
    Contract,
    ExceptionCase,
)
from workflows.doorbell import ring_on_commit
from workflows.enums import Effect, OnExpiry, RunKind, RunStatus, StepStatus
from workflows.hooks import Stop, settled, stopped
from workflows.models import Command, Run, Step
from workflows.replays import DRY_RUN, is_dry, is_replay
from workflows.status import run_status, run_wait
from workflows.taken_back import Word, words_after
from workflows.waits import StepWait, wait_for_person


class UnknownRun(NotFound):
    """There is no such run."""


def lock_run(tenant_id: UUID, run_id: UUID) -> Run:
    """The run, locked until the end of the transaction; its lock covers its steps. Last in the lock order.

    With it the lock of its record, where it has one: a run that ends makes the next one's first step due, which must
    not wait for somebody who holds that step and waits for the record.
    """
    require_transaction()
    for row in _LOCKED.rows(tenant_id, run_id):
        if row.source_record:
            lock_record(row.tenant_id, row.workflow, row.source_system, row.source_record)
        return row
    raise UnknownRun()


_LOCKED = Reading(Run, "WHERE r.tenant_id = %s AND r.id = %s FOR NO KEY UPDATE")
_STEPS = Reading(Step, "WHERE r.run_id = %s ORDER BY r.position")
_COMMANDS = Reading(Command, "WHERE r.tenant_id = %s AND r.run_id = %s", only=("status", "effect"))


def steps_of(run: Run) -> list[Step]:
    steps = _STEPS.rows(run.pk)
    for step in steps:
        step.run = run
    return steps


def settle_run(run: Run, *, by: Actor, now: datetime, steps: Sequence[Step] | None = None) -> None:
    """Make the next step due, then store the status that follows from steps and commands. For a locked run."""
    require_transaction()
    rows = list(steps) if steps is not None else steps_of(run)
    if is_replay(run) and any(step.status == StepStatus.FAILED for step in rows):
        skip_rest(rows, by=by, now=now)
    _schedule_next(run, rows, now)
    before = run.status
    if take_status(run, rows, _commands_of(run, rows), now):
        settled(run, "", run.outcome, by=by, at=now)
        _wake_next_of_record(run, now)
        if run.is_follow_up:
            _correct_words(run, rows[0].key, by=by, now=now)
    prepared.update(run, _SETTLED_FIELDS)
    if run.status != before:
        record_many([run_event(run, before, by=by)])
        note_state(run, now)


def take_status(run: Run, steps: Sequence[Step], commands: Collection[Command], now: datetime) -> bool:
    """Give a locked run, in memory, the status and clock that follow from its steps and commands.

    True: it has ended just now. It reads the database only for a run that was cancelled.
    """
    status = run_status(steps, commands)
    if status != run.status:
        run.settle(status)
    _take_clock(run, steps, now)
    ended = status in RunStatus.final_states and run.finished_at is None
    if ended:
        in_part = any(command.effect == Effect.PARTIAL for command in commands)
        _finish(run, status, now=now, in_part=in_part)
    run.state_version += 1
    return ended


def run_event(run: Run, before: str, *, by: Actor) -> Entry:
    """What is recorded of a run whose status was ``before``."""
    return Entry(
        by=by, kind=f"run.{run.status}", tenant_id=run.tenant_id, subject_type="run", subject_id=run.pk,
        run_id=run.pk, from_state=before, to_state=run.status, reason=run.failure_code,
        body={"outcome": run.outcome} if run.outcome else {},
    )  # fmt: skip


def _commands_of(run: Run, steps: Sequence[Step]) -> Collection[Command]:
    """Only a step that has had a proposal can have a command."""
    if not any(step.proposal_id for step in steps):
        return ()
    return _COMMANDS.rows(run.tenant_id, run.pk)


_SETTLED_FIELDS = [
    "status", "outcome", "user_message", "failure_code", "may_submit_new", "wait_id", "waiting_until", "on_expiry",
    "cancel_requested_at", "cancel_reason", "started_at", "finished_at", "state_version", "confidence", "versions",
]  # fmt: skip


def _schedule_next(run: Run, steps: Sequence[Step], now: datetime) -> None:
    """The first step that has not ended is due, if it was not started and nothing else made it wait."""
    step = next_step(steps)
    if step is None or step.due_at is not None:
        return
    step.due_at = now
    prepared.update(step, ["due_at"])
    ring_on_commit()


def next_step(steps: Sequence[Step]) -> Step | None:
    """The first step that has not ended, if it is one to be started by itself.

    The first step of all is made due by whoever starts the run: an earlier event of its record may go first.
    """
    step = next((step for step in steps if step.status not in StepStatus.final_states), None)
    waits = step is None or step.status != StepStatus.PENDING or step.position == 0
    return None if waits or any(other.status == StepStatus.FAILED for other in steps) else step


def _take_clock(run: Run, steps: Sequence[Step], now: datetime) -> None:
    status = RunStatus(run.status)
    wait = run_wait(status, steps, now)
    if wait is None:
        if status != RunStatus.QUEUED:
            run.wait_id, run.waiting_until, run.on_expiry = None, None, ""
        return
    run.wait_id = wait.wait_id or run.wait_id or new_id()
    run.waiting_until, run.on_expiry = wait.until, wait.on_expiry


def _finish(run: Run, status: str, *, now: datetime, in_part: bool) -> None:
    contract = registry.promised(run)
    run.finished_at = now
    if in_part and status == RunStatus.COMPLETED and not run.outcome:
        # Nobody is told that all of it was done.
        run.outcome = COMPENSATED_IN_PART if run.kind == RunKind.UNDO else IN_PART
        contract = replace(
            contract, done_tell=UNDONE_IN_PART_TELL if run.kind == RunKind.UNDO else IN_PART_TELL
        )
    if not run.outcome:
        halfway = status == RunStatus.CANCELLED and has_acted(run)
        run.outcome = (
            contract.done_outcome if status == RunStatus.COMPLETED else IN_PART if halfway else status
        )
    if run.user_message in ("", contract.stopped_tell):
        run.user_message = contract.done_tell if status == RunStatus.COMPLETED else ""
    if is_dry(run):
        run.outcome, run.user_message = DRY_RUN, ""


def has_acted(run: Run) -> bool:
    """Whether a command of this run has had an effect: then *cancelled* alone would not be true."""
    happened = (Effect.HAPPENED, Effect.PARTIAL)
    return Command.objects.filter(tenant_id=run.tenant_id, run=run, effect__in=happened).exists()


def _correct_words(follower: Run, key: str, *, by: Actor, now: datetime) -> None:
    """A run whose effect was taken back keeps what it said first; beside it stands what its user has now.

    Its lock comes after that of the run that took the effect back. Nobody takes the two the other way round: who starts
    from the first run only writes new ones.
    """
    for word in sorted(words_after(follower, key), key=lambda word: word.run_id):
        _correct_word(word, follower, key, by=by, now=now)


def _correct_word(word: Word, follower: Run, key: str, *, by: Actor, now: datetime) -> None:
    run = lock_run(follower.tenant_id, word.run_id)
    before = run.corrected_outcome or run.outcome
    if run.corrected_outcome == word.outcome:
        return
    run.corrected_outcome, run.correction_reason = word.outcome, ""
    run.state_version += 1
    run.save(update_fields=["corrected_outcome", "correction_reason", "state_version"])
    record_many([Entry(
        by=by, kind="run.outcome_corrected", tenant_id=run.tenant_id, subject_type="run", subject_id=run.pk,
        run_id=run.pk, from_state=before, to_state=run.corrected_outcome or run.outcome, reason="taken back",
        body={"run": str(follower.pk), "step": key},
    )])  # fmt: skip
    note_state(run, now)


def _wake_next_of_record(run: Run, now: datetime) -> None:
    """The next event of the same record was waiting for this run to end; unless another one is still worked on."""
    if not run.source_record:
        return
    lock_record(run.tenant_id, run.workflow, run.source_system, run.source_record)
    first = Step.objects.filter(
        tenant_id=run.tenant_id, position=0, run__workflow=run.workflow, run__source_system=run.source_system,
        run__source_record=run.source_record,
    ).exclude(run_id=run.pk).exclude(run__status__in=RunStatus.final_states)  # fmt: skip
    waits = Q(status=StepStatus.PENDING, due_at__isnull=True, run__status=RunStatus.QUEUED)
    waiting = first.filter(waits).order_by("run__source_sequence", "run_id").first()
    if waiting is not None and not first.exclude(waits).exists():
        # No lock on the other run: only its due time is set, and only while nobody has taken it.
        Step.objects.filter(pk=waiting.pk, status=StepStatus.PENDING, due_at__isnull=True).update(due_at=now)
        ring_on_commit()


def lock_record(tenant_id: UUID, workflow: str, system: str, record_: str) -> None:
    """Events of one record take turns: without this, a new event and the end of the run before it miss each other."""
    lock_name(f"record/{tenant_id}/{workflow}/{system}/{record_}")


# -- moves of a step, each with its event ---------------------------------------------------------------------


def save_step(step: Step, before: str, *, by: Actor, reason: str = "") -> None:
    """Save a moved step and write its event. For a step of a locked run."""
    prepared.update(step)
    record_many([step_event(step, before, by=by, reason=reason)])


def step_event(step: Step, before: str, *, by: Actor, reason: str = "") -> Entry:
    """What is recorded of a step that has moved from ``before``."""
    return Entry(
        by=by, kind=f"step.{step.status}", tenant_id=step.tenant_id, subject_type="step", subject_id=step.pk,
        run_id=step.run_id, from_state=before, to_state=step.status, reason=reason or step.failure_code,
        body={"key": step.key, "attempt": step.attempt} | ({"for": step.waiting_for} if step.waiting_for else {}),
    )  # fmt: skip


def move_step(step: Step, move: str, actor: Actor, why: str = "", /, **arguments: Any) -> None:
    """Make one transition of a step of a locked run, save it and write its event."""
    before = step.status
    getattr(step, move)(**arguments)
    save_step(step, before, by=actor, reason=why)


def make_wait(
    step: Step, wait: StepWait, *, by: Actor, reason: str = "", due_at: datetime | None = None
) -> None:
    move_step(
        step,
        "wait",
        by,
        reason,
        for_=wait.for_,
        wait_id=wait.wait_id,
        until=wait.until,
        on_expiry=wait.on_expiry,
        due_at=due_at,
    )


def stop_step(
    run: Run, step: Step, cause: str, summary: str, *, by: Actor, now: datetime,
    command_id: UUID | None = None, proposal_id: UUID | None = None, owner: str = "",
) -> None:  # fmt: skip
    """The step waits for a person, and a repair packet says why. Does not settle the run: the caller does.

    A dry replay ends there instead: nobody waits for it, and whoever made it reads on its page how far it came.
    """
    if is_dry(run):
        run.failure_code = cause
        fail_step(step, cause, by=by, now=now)
        return
    make_wait(step, wait_for_person(now), by=by, reason=cause)
    contract = registry.contract_of(run.workflow)
    run.user_message, owner = run.user_message or contract.stopped_tell, owner or contract.owner
    stopped(Stop(run, step.key, cause, summary, owner, command_id, proposal_id), by=by, at=now)


def fail_step(step: Step, code: str, *, by: Actor, now: datetime) -> None:
    move_step(step, "fail", by, code, at=now, code=code)


def skip_rest(steps: Sequence[Step], *, by: Actor, now: datetime) -> None:
    for step in steps:
        if step.status in (StepStatus.PENDING, StepStatus.WAITING):
            move_step(step, "skip", by, at=now)


def end_by_case(
    run: Run, step: Step, case: ExceptionCase, steps: Sequence[Step], *, by: Actor, now: datetime
) -> None:
    """Do what a row of the exception table says: the run ends as it states, or a person takes over."""
    run.user_message, run.may_submit_new = case.tell, case.may_submit_new
    if case.state == "manual_repair":
        stop_step(
            run, step, case.case, case.tell, by=by, now=now, owner=case.owner, proposal_id=step.proposal_id
        )
        return
    run.outcome, run.failure_code = case.outcome, "" if case.state == "completed" else case.case
    before = step.status
    if case.state == "completed":
        step.complete(at=now, result_ref=None)
    elif case.state == "cancelled":
        step.cancel(at=now)
    else:
        step.fail(at=now, code=case.case)
    save_step(step, before, by=by, reason=case.case)
    skip_rest([other for other in steps if other.pk != step.pk], by=by, now=now)
    settled(run, step.key, case.case, by=by, at=now)


def end_by_expiry(
    run: Run, step: Step, code: str, summary: str, steps: Sequence[Step], *, by: Actor, now: datetime,
    proposal_id: UUID | None = None,
) -> None:  # fmt: skip
    """A wait of ``step`` is over: what the exception table says of ``code``, else what the wait itself says.

    It fails or is cancelled together with all that would come after it; by default a person looks.
    """
    case = case_or_none(registry.promised(run), code)
    if case is not None:
        end_by_case(run, step, case, steps, by=by, now=now)
    elif step.on_expiry == OnExpiry.FAIL:
        run.failure_code = code
        fail_step(step, code, by=by, now=now)
        skip_rest(steps, by=by, now=now)
    elif step.on_expiry == OnExpiry.CANCEL:
        run.failure_code = code
        for other in steps:
            if other.status not in StepStatus.final_states:
                move_step(other, "cancel", by, code, at=now)
    else:
        stop_step(run, step, code, summary, by=by, now=now, proposal_id=proposal_id)


def case_or_none(contract: Contract, code: str) -> ExceptionCase | None:
    return next((row for row in contract.exceptions if row.case == code), None)
