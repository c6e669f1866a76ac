"""Reads for screens and the API: runs by page, one run whole, and the execution envelope of the design's section 8."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet

from approvals.selectors_questions import open_questions
from common.content_errors import UNREAD_TEXTS
from common.errors import NotFound
from common.sealed import prefetch_keys
from workflows import registry
from workflows.definitions import OF_THE_PRODUCT
from workflows.enums import NextAction, RunStatus, StepKind, StepStatus, WaitingFor
from workflows.models import Attempt, Command, Run, Step

RETRY_AFTER_S = 5


class UnknownCommand(NotFound):
    """There is no such command."""


def get_run(tenant_id: UUID, run_id: UUID) -> Run:
    """Raises NotFound, for another tenant's run too."""
    run = Run.objects.filter(tenant_id=tenant_id, pk=run_id).first()
    if run is None:
        raise NotFound()
    return run


def get_command(tenant_id: UUID, command_id: UUID) -> Command:
    command = (
        Command.objects.select_related("proposal", "step").filter(tenant_id=tenant_id, pk=command_id).first()
    )
    if command is None:
        raise UnknownCommand()
    return command


def runs_newest_first(
    tenant_id: UUID, *, workflow: str = "", status: str = "", before: tuple[datetime, UUID] | None = None
) -> QuerySet[Run]:
    """Runs by (created_at, id), newest first; ``before`` continues after the last row of a page."""
    runs = Run.objects.filter(tenant_id=tenant_id).order_by("-created_at", "-id")
    if workflow:
        runs = runs.filter(workflow=workflow)
    if status:
        runs = runs.filter(status=status)
    if before is not None:
        at, pk = before
        runs = runs.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=pk))
    return runs


def steps_of(run: Run) -> list[Step]:
    return list(Step.objects.filter(run=run).order_by("position"))


def commands_of(run: Run) -> list[Command]:
    return list(_commands().filter(run=run))


def _commands() -> QuerySet[Command]:
    rows = Command.objects.select_related("step", "proposal").order_by("created_at", "id")
    return rows.defer("proposal__contract", "proposal__view", "proposal__volatile")


def attempts_of(command: Command) -> list[Attempt]:
    return list(Attempt.objects.filter(command=command).order_by("number"))


def tries_of(run: Run) -> int:
    """How many requests of this run may have reached a provider."""
    return sum(Command.objects.filter(run=run).values_list("tries", flat=True))


def envelopes(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Those of a page, with as many queries however many there are."""
    steps: dict[UUID, list[Step]] = {run.pk: [] for run in runs}
    commands: dict[UUID, list[Command]] = {run.pk: [] for run in runs}
    for step in Step.objects.filter(run__in=steps).order_by("position"):
        steps[step.run_id].append(step)
    for command in _commands().filter(run__in=commands):
        commands[command.run_id].append(command)
    questions = _questions(runs, [step for some in steps.values() for step in some])
    asking = [step for some in steps.values() for step in some if step.status == StepStatus.WAITING]
    prefetch_keys([*runs, *asking])
    return [_envelope(run, steps[run.pk], commands[run.pk], questions.get(run.pk, [])) for run in runs]


def envelope(run: Run) -> dict[str, Any]:
    """The public execution envelope. It points to protected storage; no content of a case stands in it."""
    steps = steps_of(run)
    return _envelope(run, steps, commands_of(run), _questions([run], steps).get(run.pk, []))


def _questions(runs: Sequence[Run], steps: Sequence[Step]) -> dict[UUID, list[dict[str, Any]]]:
    """What reviewers ask whoever asked for these runs, and wait for: ids and times, by run."""
    waiting = [
        step.proposal_id for step in steps
        if step.proposal_id is not None and step.waiting_for == WaitingFor.APPROVAL
    ]  # fmt: skip
    return open_questions(runs[0].tenant_id, waiting) if waiting else {}


ANSWERED: Final = "The answer is in the result of the last step."


def told_in_list(run: Run) -> str:
    """What the user is told, as it may stand in envelopes, callbacks and lists: sentences of the workflow's contract.

    What a stage wrote for one user may be personal, and is read where its result is.
    """
    contract, words = registry.contract_of(run.workflow), run.user_message
    ours = {contract.done_tell, contract.declined_tell, contract.stopped_tell, *OF_THE_PRODUCT}
    ours |= {case.tell for case in contract.exceptions} | UNREAD_TEXTS
    return words if not words or words in ours else ANSWERED


def _envelope(
    run: Run, steps: Sequence[Step], commands: Sequence[Command], questions: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    by_step = {command.step_id: command for command in commands}
    action = next_action(run)
    return {
        "run_id": str(run.pk), "kind": run.kind, "original_id": _text(run.original_id),
        "workflow": run.workflow, "workflow_version": run.workflow_version,
        "status": run.status, "outcome": run.corrected_outcome or run.outcome or None,
        "original_outcome": run.outcome if run.corrected_outcome else None,
        "message": told_in_list(run) or None, "waiting": _waiting(run, steps), "attempt": max(1, _attempts(steps)),
        "requested_by": run.requested_by, "request_ids": run.request_ids,
        "source": {"system": run.source_system, "event_id": run.source_event_id},
        "versions": _versions(commands, run), "input_refs": [str(run.input_ref)],
        "started_at": _iso(run.started_at), "finished_at": _iso(run.finished_at),
        "state_version": run.state_version, "cancel_requested": run.cancel_requested_at is not None,
        "steps": [_step(step, by_step.get(step.pk)) for step in steps], "questions": list(questions),
        "next_action": action, "retry_after": RETRY_AFTER_S if action == NextAction.WAIT else None,
    }  # fmt: skip


def public_part(run: Run) -> dict[str, Any]:
    """What of the envelope leaves with a callback: ids, states, times. Nothing of a case, nobody's name; nothing that
    is sealed is opened for it.
    """
    action, steps = next_action(run), steps_of(run)
    return {
        "run_id": str(run.pk), "kind": run.kind, "workflow": run.workflow, "workflow_version": run.workflow_version,
        "status": run.status, "outcome": run.corrected_outcome or run.outcome or None,
        "original_outcome": run.outcome if run.corrected_outcome else None, "waiting": _wait(run, steps),
        "questions": _questions([run], steps).get(run.pk, []),
        "started_at": _iso(run.started_at), "finished_at": _iso(run.finished_at),
        "state_version": run.state_version, "cancel_requested": run.cancel_requested_at is not None,
        "next_action": action, "retry_after": RETRY_AFTER_S if action == NextAction.WAIT else None,
    }  # fmt: skip


def next_action(run: Run) -> NextAction:
    """Exactly one thing to do next, by the run's status."""
    match RunStatus(run.status):
        case RunStatus.WAITING_FOR_DATA:
            return NextAction.PROVIDE_DATA
        case RunStatus.COMPLETED:
            return NextAction.FETCH_RESULT
        case RunStatus.FAILED:
            return NextAction.SUBMIT_NEW if run.may_submit_new else NextAction.STOP
        case RunStatus.CANCELLED:
            return NextAction.STOP
        case _:
            return NextAction.WAIT


def _attempts(steps: Sequence[Step]) -> int:
    return max((step.attempt for step in steps), default=1)


def _waiting(run: Run, steps: Sequence[Step]) -> dict[str, Any] | None:
    waiting, step = _wait(run, steps), _waiting_step(run, steps)
    return waiting | {"asks": step.asks} if waiting and step is not None and step.asks else waiting


def _wait(run: Run, steps: Sequence[Step]) -> dict[str, Any] | None:
    if run.waiting_until is None:
        return None
    step = _waiting_step(run, steps)
    return {
        "wait_id": str(run.wait_id), "for": step.waiting_for if step else run.status,
        "until": _iso(run.waiting_until), "on_expiry": run.on_expiry,
    }  # fmt: skip


def _waiting_step(run: Run, steps: Sequence[Step]) -> Step | None:
    return next((step for step in steps if step.wait_id is not None and step.wait_id == run.wait_id), None)


def _versions(commands: Sequence[Command], run: Run) -> dict[str, Any]:
    operations = {command.operation: command.operation_version for command in commands}
    policies = {command.proposal.policy["version"] for command in commands}
    return {
        "policy": max(policies, default=None),
        "model": None,
        "prompt": None,
        "operations": operations,
    } | (run.versions or {})


def _step(step: Step, command: Command | None) -> dict[str, Any]:
    return {
        "id": step.key, "kind": step.kind, "status": step.status, "waiting_for": step.waiting_for or None,
        "attempt": command.tries if command is not None else (0 if step.kind == StepKind.SIDE_EFFECT else step.attempt),
        "proposal_id": _text(step.proposal_id), "command_id": _text(command.pk if command else None),
        "command_status": command.status if command else None, "input_hash": step.input_hash or None,
        "result_ref": _text(step.result_ref), "failure_code": step.failure_code or None,
        "started_at": _iso(step.started_at), "finished_at": _iso(step.finished_at),
        "usage": {"input_tokens": 0, "output_tokens": 0, "cost": "0"} | step.usage,
    }  # fmt: skip


def _text(value: UUID | None) -> str | None:
    return str(value) if value is not None else None


def _iso(at: datetime | None) -> str | None:
    return at.isoformat().replace("+00:00", "Z") if at is not None else None
