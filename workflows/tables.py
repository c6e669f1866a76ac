"""Runs as rows of a table: formatting only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.urls import reverse

from common import spans
from common.display import visible
from workflows.enums import RunKind, RunStatus, StepStatus
from workflows.models import Run, Step
from workflows.screens.words import code_words, then, title_of, waits_for


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run. An ended one has its outcome where the others say what they wait for."""

    id: UUID
    href: str
    title: str
    about: str
    status: str
    ended: bool
    kind: str
    """Of what is no first run."""
    waits: str
    until: datetime | None
    then: str
    step: str
    age: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the rows of a page need beside the runs, by run."""

    steps: Mapping[UUID, Sequence[Step]]
    targets: Mapping[UUID, str]
    holds: Mapping[UUID, str]


def run_row(run: Run, facts: RunFacts, now: datetime) -> RunRow:
    steps = facts.steps.get(run.pk, ())
    ended = run.status in RunStatus.final_states
    current = next((step for step in steps if step.status not in StepStatus.final_states), None)
    waits = outcome_words(run) if ended else waits_for(run, current, facts.holds.get(run.pk, ""))
    return RunRow(
        id=run.pk, href=reverse("workflows:run", args=[run.pk]), title=title_of(run.workflow),
        about=about(run, facts.targets.get(run.pk, "")), status=run.status, ended=ended,
        kind=RunKind(run.kind).label if run.original_id is not None else "", waits=waits,
        until=run.finished_at if ended else run.waiting_until,
        then="" if ended or not run.on_expiry else then(run.on_expiry), step=step_count(steps),
        age=spans.span((now - run.created_at).total_seconds()), created_at=run.created_at,
    )  # fmt: skip


def about(run: Run, target: str) -> str:
    """What a run is about: the target of its action, else its source event."""
    return visible(target or f"{run.source_system} {run.source_event_id}")


def outcome_words(run: Run) -> str:
    """How it ended for the user; a correction stands beside what it corrects."""
    if run.corrected_outcome and run.outcome:
        return f"{code_words(run.corrected_outcome)} (first: {code_words(run.outcome)})"
    return code_words(run.corrected_outcome or run.outcome)


def step_count(steps: Sequence[Step]) -> str:
    done = sum(step.status in StepStatus.final_states for step in steps)
    return f"{done} of {len(steps)}" if steps else "–"
