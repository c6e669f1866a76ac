"""The list of runs: newest first, its views with their counts, and the places of its pages."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Count, Q, QuerySet
from django.http import QueryDict
from django.urls import reverse

from approvals.models import Proposal
from common import cursors
from common.cursors import BadCursor
from common.links import same_list
from workflows.enums import CommandStatus, RunStatus
from workflows.models import Command, Run, Step
from workflows.tables import RunFacts, RunRow, run_row

OPEN: Final = ~Q(status__in=RunStatus.final_states)
VIEWS: Final = {
    "": ("All", Q()),
    "open": ("Open", OPEN),
    "unknown": ("Outcome unknown", Q(status=RunStatus.UNKNOWN)),
    "stopped": ("Needs a person", Q(status=RunStatus.MANUAL_REPAIR)),
    "held": ("Held", Q(status=RunStatus.DEGRADED)),
    "ended": ("Ended", ~OPEN),
}
COUNTED: Final = ("open", "unknown", "stopped", "held")


@dataclass(frozen=True, slots=True)
class Tab:
    """One view of the list; ``count`` is None where counting would read every row there ever was."""

    word: str
    href: str
    count: int | None
    current: bool


@dataclass(frozen=True, slots=True)
class RunList:
    """One page of the list."""

    rows: tuple[RunRow, ...]
    tabs: tuple[Tab, ...]
    view: str
    older: str
    newest: str
    unfiltered: str
    filtered: bool


def run_list(
    *, tenant_id: UUID, runs: QuerySet[Run], query: QueryDict, filtered: bool, now: datetime
) -> RunList:
    """Shape the filtered ``runs`` into the page that ``query`` asks for. Counts and rows share their conditions."""
    view = query.get("view", "") if query.get("view", "") in VIEWS else ""
    counts = runs.filter(OPEN).aggregate(**{name: Count("pk", filter=VIEWS[name][1]) for name in COUNTED})
    cursor = query.get("cursor", "")
    listed = runs.filter(VIEWS[view][1])
    try:
        page = cursors.page(listed, list_name="runs", cursor=cursor)
    except BadCursor:
        cursor, page = "", cursors.page(listed, list_name="runs")
    facts = facts_of(tenant_id, page.rows)
    return RunList(
        rows=tuple(run_row(run, facts, now) for run in page.rows), view=view, filtered=filtered,
        tabs=tuple(
            Tab(word, address(query, view=name), counts.get(name), name == view) for name, (word, _) in VIEWS.items()
        ),
        older=address(query, cursor=page.next_cursor) if page.next_cursor else "",
        newest=address(query) if cursor else "", unfiltered=address(QueryDict(), view=view),
    )  # fmt: skip


def address(query: QueryDict, **changed: str) -> str:
    return same_list(reverse("workflows:runs"), query, **changed)


def facts_of(tenant_id: UUID, runs: Sequence[Run]) -> RunFacts:
    """Steps, targets and holds of a page's runs: three queries, however many runs there are."""
    ids = [run.pk for run in runs]
    steps: dict[UUID, list[Step]] = defaultdict(list)
    for step in Step.objects.filter(tenant_id=tenant_id, run_id__in=ids).order_by("run_id", "position"):
        steps[step.run_id].append(step)
    proposals = Proposal.objects.filter(tenant_id=tenant_id, run_id__in=ids).order_by("created_at", "pk")
    held = Command.objects.filter(tenant_id=tenant_id, run_id__in=ids, status=CommandStatus.HELD).order_by(
        "pk"
    )
    return RunFacts(
        steps=steps, targets=dict(proposals.values_list("run_id", "target")),
        holds=dict(held.values_list("run_id", "hold_reason")),
    )  # fmt: skip
