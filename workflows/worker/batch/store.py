"""From sent to stored for several commands: the plain *yes* that leads on or to the end, in one transaction.

Every other answer, and every command around which anything is unusual (a wish to cancel, an open packet, a record whose
next event waits), is left as it is, for `workflows.worker.store.store_answer`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from approvals.actions import moved_event
from approvals.enums import ProposalStatus
from approvals.models import Proposal
from audit.actions import Entry, record_many
from audit.actors import Actor
from common.clock import Clock
from common.crashpoints import crashpoint
from common.deadline import Deadline
from common.pipelined import PLANNED_ONCE, ask_then_time
from common.strictjson import JsonRefused, canonicalize
from common.tx import action
from workflows.actions.decided import command_event
from workflows.actions.outbox import note_state
from workflows.actions.settle import next_step, run_event, step_event, take_status
from workflows.classify import Meaning, Observation, classify
from workflows.documents import unsaved
from workflows.doorbell import ring_on_commit
from workflows.endings import apply_ending
from workflows.enums import AttemptStatus, CommandStatus, SettledBy, StepStatus
from workflows.hooks import open_stops
from workflows.models import Attempt, Command, Document, Run, Step
from workflows.waits import wait_for_person
from workflows.worker.batch import rows
from workflows.worker.batch.saving import Kept, save_together
from workflows.worker.claim import Claim


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from one call."""

    claim: Claim
    seen: Observation
    lease: Deadline
    """How long the token surely is the row's, on this machine's own clock."""


@dataclass(slots=True)
class _Case:
    """One command and all rows around it, locked, with what is to be stored as its result."""

    seen: Observation
    proposal: Proposal
    command: Command
    attempt: Attempt
    run: Run
    step: Step
    steps: Sequence[Step]
    others: Sequence[Command]
    result: bytes


@action
def store_together(answers: Sequence[Answer], *, by: Actor, clock: Clock) -> set[UUID]:
    """Store those of the answers that are a plain *yes*; returns the ids of their commands.

    Locks: proposals, commands by token, runs. Raises RowsChanged, and then nothing is stored. After an exception from
    the commit nobody knows: read again by id.
    """
    plain = [answer for answer in answers if _is_plain(answer)]
    cases, now = _lock(plain, clock) if plain else ([], None)
    if now is not None and cases:
        _confirm(cases, by, now)
    return {case.command.pk for case in cases}


def _is_plain(answer: Answer) -> bool:
    return classify(answer.seen, answer.claim.operation.outcomes) is Meaning.CONFIRMED


# -- which of them are plain, all around -----------------------------------------------------------------------


@dataclass(slots=True)
class _Around:
    """What was locked and read for a batch. A run is given away once: its second command goes alone."""

    proposals: Mapping[UUID, Proposal]
    commands: Mapping[UUID, Command]
    attempts: Mapping[UUID, Attempt]
    runs: dict[UUID, Run]
    steps: Mapping[UUID, Sequence[Step]]
    commands_of: Mapping[UUID, Sequence[Command]]

    def case(self, answer: Answer) -> _Case | None:
        claim = answer.claim
        command, proposal = self.commands.get(claim.command_id), self.proposals.get(claim.proposal_id)
        attempt = self.attempts.get(claim.command_id)
        if command is None or proposal is None or attempt is None or command.run_id not in self.runs:
            return None
        steps, result = self.steps[command.run_id], _result(answer.seen)
        step = next(step for step in steps if step.pk == command.step_id)
        others = [other for other in self.commands_of[command.run_id] if other.pk != command.pk]
        if result is None or not _goes_on_or_ends(proposal, step, steps, others):
            return None
        run = self.runs.pop(command.run_id)
        return _Case(answer.seen, proposal, command, attempt, run, step, steps, others, result)


def _lock(answers: Sequence[Answer], clock: Clock) -> tuple[list[_Case], datetime]:
    claims = [answer.claim for answer in answers]
    (_, proposals, commands, runs, attempts, steps, others, *stops), now = ask_then_time(
        clock, PLANNED_ONCE, rows.lock_proposals(claims), rows.lock_commands(claims, CommandStatus.SENT),
        rows.lock_runs(claims), rows.attempts_of(claims, AttemptStatus.SENT), rows.steps_of_runs(claims),
        rows.commands_of_runs(claims), *open_stops({claim.run_id for claim in claims}),
    )  # fmt: skip
    stopped = set[UUID]().union(*stops)
    plain = {key: run for key, run in runs.items() if key not in stopped and _is_alone(run)}
    around = _Around(proposals, commands, attempts, plain, steps, others)
    cases = [around.case(answer) for answer in answers]
    return [case for case in cases if case is not None], now


def _is_alone(run: Run) -> bool:
    """The end of a run of a record may wake the next event's, that of a compensation corrects another run, and where a
    cancel is wished other rules apply.
    """
    return not run.source_record and run.cancel_requested_at is None and not run.is_follow_up


def _goes_on_or_ends(
    proposal: Proposal, step: Step, steps: Sequence[Step], others: Sequence[Command]
) -> bool:
    """Around it nothing is unusual: after this command the run's next step is due, or the run is completed."""
    rest = {other.status for other in steps if other.pk != step.pk}
    return (
        proposal.status == ProposalStatus.APPROVED
        and step.status == StepStatus.WAITING
        and rest <= {StepStatus.PENDING, StepStatus.COMPLETED, StepStatus.SKIPPED}
        and all(other.status in CommandStatus.final_states for other in others)
    )


def _result(seen: Observation) -> bytes | None:
    """The document that is kept; None for an answer that is no JSON, and is kept as far as it can be, alone."""
    try:
        return canonicalize({
            "reference": seen.reference, "settled_by": SettledBy.ANSWER.value, "answer": dict(seen.body),
        })  # fmt: skip
    except JsonRefused:
        return None


# -- the moves: in memory, by the transitions that the slow way uses too; then saved, table by table ---------------


def _confirm(cases: Sequence[_Case], by: Actor, now: datetime) -> None:
    attempts, commands = Kept(case.attempt for case in cases), Kept(case.command for case in cases)
    proposals, runs = Kept(case.proposal for case in cases), Kept(case.run for case in cases)
    steps = Kept(step for case in cases for step in case.steps)
    documents = [_confirm_command(case, now) for case in cases]
    events = [event for case in cases for event in _carry_over(case, by, now)]
    record_many(events)
    save_together(attempts, proposals, commands, steps, runs, new=documents)
    crashpoint("CP9")


def _confirm_command(case: _Case, now: datetime) -> Document:
    command, seen = case.command, case.seen
    document = unsaved(command.tenant_id, command.run_id, "result.command", case.result, now)
    case.attempt.answer(at=now, outcome=Meaning.CONFIRMED.value, http_status=seen.status, detail=seen.detail)
    command.result_ref, command.used_attempt_id = document.pk, case.attempt.pk
    command.confirm(at=now, by=SettledBy.ANSWER, reference=seen.reference)
    command.state_version += 1
    return document


def _carry_over(case: _Case, by: Actor, now: datetime) -> list[Entry]:
    """The end of the command, carried over to proposal, step and run; returns the events of all of them."""
    proposal, step, run = case.proposal, case.step, case.run
    before = (proposal.status, step.status, run.status)
    apply_ending(case.command, proposal, step, at=now, wait=wait_for_person(now))
    proposal.state_version += 1
    due = next_step(case.steps)
    if due is not None and due.due_at is None:
        due.due_at = now
        ring_on_commit()
    take_status(run, case.steps, [case.command, *case.others], now)
    if run.status != before[2]:
        note_state(run, now)
    return [
        command_event(case.command, CommandStatus.SENT, by=by, digest=proposal.digest),
        moved_event(proposal, before[0], by=by, reason=proposal.end_reason),
        step_event(step, before[1], by=by, reason=proposal.end_reason),
        *([run_event(run, before[2], by=by)] if run.status != before[2] else []),
    ]
