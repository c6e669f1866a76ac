"""Replays on pages: what a run is to its replays, its marks, and how two runs compare. Formatting only."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.urls import reverse

from access.models import Membership
from access.policies import can_role
from approvals.policies import SEES_PERSONAL
from common.disclosure import Recipient
from common.display import visible
from repair.comparing import Comparison, Difference, Weight, compare_runs
from repair.marks import MARK_WORDS, marks_of
from repair.replay.acting import REPLAYERS
from repair.replay.rules import Plan
from workflows.enums import RunKind, StepKind
from workflows.enums_replays import Effects, Versions
from workflows.models import Replay, Run
from workflows.screens.run import own_words
from workflows.screens.story import story_of
from workflows.screens.words import KINDS, code_words, step_words, title_of

MOST: Final = 50
WORDS: Final = {
    "workflow": "Workflow", "workflow_version": "Version of the workflow", "stage": "Stage of the workflow",
    "input": "Input", "outcome": "Outcome", "step": "Step", "kind": "Kind of step", "data": "Supplied data",
    "result": "Result", "confidence": "Confidence", "proposed": "Proposed", "operation": "Operation",
    "operation_version": "Version of the operation", "target": "Target", "argument": "Argument",
    "pin": "Version of the record", "evidence": "Evidence", "consequence": "Consequence",
    "policy_version": "Version of the policy", "test": "Test of the policy", "verdict": "Verdict", "rule": "Rule",
    "needed": "Approvals needed", "failure": "Case", "ending": "How it ended",
}  # fmt: skip
WEIGHTS: Final = {Weight.SUBSTANCE: "", Weight.VERSION: "version", Weight.CIRCUMSTANCE: "circumstance"}


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """One replay of a run."""

    href: str
    short: str
    status: str
    outcome: str
    says: str
    at: datetime
    compare_href: str


@dataclass(frozen=True, slots=True)
class ReplaysOfRun:
    """What the page of a run says about replays."""

    marks: tuple[str, ...]
    original_href: str
    original_short: str
    asked_by: str
    asked_at: datetime | None
    why: str
    says: str
    compare_href: str
    replays: tuple[ReplayRow, ...]
    may_href: str
    """Where this reader may replay it; empty for other roles, and for what has no stages of its own."""


def replays_of(run: Run, membership: Membership) -> ReplaysOfRun:
    found = Replay.objects.filter(tenant_id=run.tenant_id, run=run).select_related("asked_by").first()
    rows = Replay.objects.filter(tenant_id=run.tenant_id, run__original_id=run.pk).select_related("run")
    is_replay = run.kind == RunKind.REPLAY
    may = can_role(membership, *REPLAYERS) and run.kind in (RunKind.ORIGINAL, RunKind.REPLAY)
    whole = can_role(membership, *REPLAYERS, *SEES_PERSONAL)
    return ReplaysOfRun(
        marks=tuple(MARK_WORDS[mark] for mark in marks_of(story_of(run))),
        original_href=reverse("workflows:run", args=[run.original_id]) if is_replay else "",
        original_short=str(run.original_id)[:8] if is_replay else "",
        asked_by=visible(str(found.asked_by)) if found else "", asked_at=found.at if found else None,
        why=own_words(found.reason, whole) if found else "", says=says_of(found) if found else "",
        compare_href=compare_href(run) if is_replay else "",
        replays=tuple(_row(row) for row in rows.order_by("-at", "-pk")[:MOST]),
        may_href=reverse("repair:replay", args=[run.pk]) if may else "",
    )  # fmt: skip


def says_of(replay: Replay) -> str:
    return f"{Versions(replay.versions).label}. {Effects(replay.effects).label}."


def _row(replay: Replay) -> ReplayRow:
    run = replay.run
    return ReplayRow(
        href=reverse("workflows:run", args=[run.pk]), short=str(run.pk)[:8], status=run.status,
        outcome=code_words(run.outcome), says=says_of(replay), at=replay.at, compare_href=compare_href(run),
    )  # fmt: skip


def compare_href(run: Run) -> str:
    return reverse("repair:compare", args=[run.pk])


# -- what a replay would do -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepLine:
    """One step of a replay to be."""

    title: str
    kind: str
    says: str
    runs: bool
    because: str


def plan_lines(plan: Plan) -> tuple[StepLine, ...]:
    return tuple(
        StepLine(
            step_words(step.key),
            KINDS[StepKind(step.kind)],
            step.says,
            step.runs,
            step.found.words if step.found is not None else "",
        )
        for step in plan.steps
    )


# -- two runs beside each other -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    name: str
    left: str
    right: str
    weight: str
    first: bool


@dataclass(frozen=True, slots=True)
class StepRows:
    """The differences of one step; of the run as a whole where it has no key."""

    title: str
    rows: tuple[DifferenceRow, ...]


@dataclass(frozen=True, slots=True)
class ComparisonScreen:
    """Everything on the page of two runs."""

    title: str
    left: Run
    right: Run
    left_marks: str
    right_marks: str
    sentence: str
    first: DifferenceRow | None
    first_where: str
    same: bool
    groups: tuple[StepRows, ...]
    alike: tuple[str, ...]
    """Steps without any difference."""


def comparison_screen(left: Run, right: Run, membership: Membership) -> ComparisonScreen:
    to = Recipient(left.tenant_id, can_role(membership, *SEES_PERSONAL))
    found = compare_runs(left, right, reader=to)
    whole = StepRows("The run as a whole", _rows(found, ""))
    groups = (whole, *(StepRows(step_words(visible(key)), _rows(found, key)) for key in found.steps))
    first = found.first
    return ComparisonScreen(
        title=title_of(left.workflow), left=left, right=right, left_marks=_marks(left), right_marks=_marks(right),
        sentence=_sentence(found), first=_difference(first, found) if first else None,
        first_where=step_words(visible(first.step)) if first and first.step else "The run as a whole",
        same=found.same, groups=tuple(group for group in groups if group.rows),
        alike=tuple(group.title for group in groups[1:] if not group.rows),
    )  # fmt: skip


def _marks(run: Run) -> str:
    return ", ".join(MARK_WORDS[mark].lower() for mark in marks_of(story_of(run)))


def _sentence(found: Comparison) -> str:
    if found.first is None:
        return "Nothing differs that means anything, as far as both can be read."
    if found.same:
        return "Nothing of substance differs; they ran under other versions."
    return "They part here first:"


def _rows(found: Comparison, key: str) -> tuple[DifferenceRow, ...]:
    return tuple(_difference(it, found) for it in found.of_step(key))


def _difference(it: Difference, found: Comparison) -> DifferenceRow:
    word = WORDS.get(it.code, code_words(it.code).capitalize())
    name = f"{word}: {it.name}" if it.name else word
    return DifferenceRow(name, it.left, it.right, WEIGHTS[it.weight], it is found.first)
