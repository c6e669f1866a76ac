"""An incident as pages: what it is, the runs that it touched with counters and lists, and what was done about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, F
from django.http import QueryDict
from django.urls import reverse

from access.models import Membership
from access.policies import can_role
from audit.names import names_of
from common import cursors
from common.cursors import BadCursor
from common.display import visible
from common.links import same_list
from common.sealed import prefetch_keys
from common.states_ui import StateUi
from repair.choices.case import REPAIRERS
from repair.enums import IncidentStatus, Mark, NoteKind, PacketStatus
from repair.incidents.criteria import Criteria
from repair.incidents.finding import Found
from repair.incidents.freezing import freezes_of, unfrozen
from repair.incidents.report import notes_of, unfinished
from repair.incidents.traces import Trace, targets_of, traces_of
from repair.models import RepairPacket
from repair.models_incidents import Incident, IncidentRun
from workflows.models import Run
from workflows.screens.holds import HoldRow, hold_row
from workflows.screens.words import title_of
from workflows.selectors_holds import held_counts
from workflows.tables import about, outcome_words

PAGE: Final = 50
MARKS: Final[Mapping[str, StateUi]] = {
    Mark.UNLOOKED: StateUi("wait", "hourglass", "Not looked at"),
    Mark.FINE: StateUi("ok", "check-circle", "Looked at, fine"),
    Mark.REPAIRED: StateUi("act", "wrench", "Repaired"),
    Mark.HANDLED_OUTSIDE: StateUi("mute", "undo", "Handled outside"),
}


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A run as the lists of incidents show it."""

    id: UUID
    href: str
    title: str
    about: str
    status: str
    outcome: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AffectedRow:
    """A run of an incident: what a person found, and the value that names what was seen."""

    run: FoundRow
    item: str
    mark: StateUi
    words: str
    who: str
    marked_at: datetime | None
    packet_href: str


@dataclass(frozen=True, slots=True)
class Tab:
    word: str
    href: str
    count: int
    current: bool


@dataclass(frozen=True, slots=True)
class NoteRow:
    word: str
    who: str
    at: datetime
    words: str
    href: str


@dataclass(frozen=True, slots=True)
class IncidentScreen:
    """The page of one incident."""

    id: UUID
    trouble: str
    status: str
    live: bool
    open: bool
    opened_at: datetime
    opened_by: str
    owner: str
    contained_at: datetime | None
    closed_at: datetime | None
    cause: str
    criteria: tuple[tuple[str, str], ...]
    again_href: str
    thoughts: tuple[tuple[str, str], ...]
    total: int
    more: bool
    looked_at: datetime
    tabs: tuple[Tab, ...]
    rows: tuple[AffectedRow, ...]
    newest: str
    older: str
    freezes: tuple[HoldRow, ...]
    unfrozen: int
    traces: tuple[Trace, ...]
    compare: tuple[tuple[str, str], ...]
    notes: tuple[NoteRow, ...]
    unfinished: tuple[str, ...]
    may_act: bool
    seen: int


def incident_screen(incident: Incident, membership: Membership, query: QueryDict) -> IncidentScreen:
    """The page for this reader, with one part of its runs."""
    view = query.get("mark", "") if query.get("mark", "") in Mark.values else ""
    listed, newest, older = _listed(incident, view, query)
    criteria, holds, traces = Criteria.from_json(incident.criteria), freezes_of(incident), traces_of(incident)
    counts, names = counts_of(incident), names_of({hold.placed_by for hold in holds})
    held = held_counts(incident.tenant_id, holds)
    return IncidentScreen(
        id=incident.pk, trouble=visible(incident.trouble), status=incident.status,
        live=incident.status in IncidentStatus.live_states, open=incident.status == IncidentStatus.OPEN,
        opened_at=incident.opened_at, opened_by=visible(str(incident.opened_by)), owner=visible(str(incident.owner)),
        contained_at=incident.contained_at, closed_at=incident.closed_at,
        cause=visible(incident.root_cause.title) if incident.root_cause else "",
        criteria=tuple(criteria.words()), again_href=criteria.address(), thoughts=_thoughts(incident),
        total=sum(counts.values()), more=incident.more, looked_at=incident.looked_at,
        tabs=_tabs(incident, counts, view, query), rows=_rows(incident, listed), newest=newest, older=older,
        freezes=tuple(hold_row(hold, names, held) for hold in holds),
        unfrozen=len(unfrozen(incident)), traces=traces, compare=_compare(incident, traces),
        notes=_notes(incident), unfinished=tuple(unfinished(incident, holds)),
        may_act=can_role(membership, *REPAIRERS), seen=incident.state_version,
    )  # fmt: skip


def _thoughts(incident: Incident) -> tuple[tuple[str, str], ...]:
    said = (
        ("Hypothesis", incident.hypothesis), ("What is changed", incident.remedy), ("Signal", incident.signal),
    )  # fmt: skip
    return tuple((name, visible(text)) for name, text in said if text)


# -- the runs that it touched -------------------------------------------------------------------------------------


def counts_of(incident: Incident) -> dict[str, int]:
    """How many stand under each mark: the lengths of the lists."""
    rows = (
        IncidentRun.objects.filter(incident=incident).order_by().values_list("mark").annotate(n=Count("pk"))
    )
    return dict.fromkeys(Mark.values, 0) | dict(rows)


def _listed(incident: Incident, view: str, query: QueryDict) -> tuple[list[IncidentRun], str, str]:
    """One page, the newest run first; ids of runs grow with time."""
    found = (
        IncidentRun.objects.filter(incident=incident).select_related("run", "marked_by").order_by("-run_id")
    )
    found = found.filter(mark=view) if view else found
    here, after = reverse("repair:incident", args=[incident.pk]), _uuid(query.get("cursor", ""))
    rows = list((found.filter(run_id__lt=after) if after else found)[: PAGE + 1])
    older = same_list(here, query, cursor=str(rows[PAGE - 1].run_id)) if len(rows) > PAGE else ""
    prefetch_keys(rows[:PAGE])
    return rows[:PAGE], same_list(here, query) if after else "", older


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _rows(incident: Incident, listed: Sequence[IncidentRun]) -> tuple[AffectedRow, ...]:
    runs = found_rows([row.run for row in listed])
    packets = _packets(incident.tenant_id, [row.run_id for row in listed])
    return tuple(
        AffectedRow(
            run=run, item=f"{row.run_id}.{row.version}", mark=MARKS[row.mark], words=visible(row.words),
            who=visible(str(row.marked_by)) if row.marked_by else "", marked_at=row.marked_at,
            packet_href=packets.get(row.run_id, ""),
        )
        for row, run in zip(listed, runs, strict=True)
    )  # fmt: skip


def found_rows(runs: Sequence[Run]) -> tuple[FoundRow, ...]:
    """Rows of runs; one query for the targets of all of them."""
    targets = targets_of(runs)
    return tuple(
        FoundRow(
            run.pk, reverse("workflows:run", args=[run.pk]),
            f"{title_of(run.workflow)}, version {run.workflow_version}", about(run, targets.get(run.pk, "")),
            run.status, outcome_words(run) if run.outcome else "", run.created_at,
        )
        for run in runs
    )  # fmt: skip


def _packets(tenant_id: UUID, runs: Sequence[UUID]) -> dict[UUID, str]:
    """Of each run the address of its newest packet, an open one before all that are settled."""
    found = RepairPacket.objects.filter(tenant_id=tenant_id, run_id__in=runs).order_by("opened_at", "pk")
    rows = sorted(found, key=lambda packet: packet.status in PacketStatus.open_states)
    return {packet.run_id: reverse("repair:packet", args=[packet.pk]) for packet in rows}


def _tabs(incident: Incident, counts: Mapping[str, int], view: str, query: QueryDict) -> tuple[Tab, ...]:
    here = reverse("repair:incident", args=[incident.pk])
    whole = Tab("All", same_list(here, query, mark=""), sum(counts.values()), not view)
    each = (
        Tab(ui.word, same_list(here, query, mark=str(mark)), counts[mark], view == mark)
        for mark, ui in MARKS.items()
    )
    return (whole, *each)


# -- what was done ------------------------------------------------------------------------------------------------


def _compare(incident: Incident, traces: Sequence[Trace]) -> tuple[tuple[str, str], ...]:
    """(words, address) of each two of the runs that stand for the others."""
    known = [trace for trace in traces if trace.run is not None]
    pairs = [(one, other) for at, one in enumerate(known) for other in known[at + 1 :]]
    page = reverse("repair:compare_incident", args=[incident.pk])
    return tuple((f"{a.name} and {b.name}", f"{page}?left={a.name}&right={b.name}") for a, b in pairs)


def _notes(incident: Incident) -> tuple[NoteRow, ...]:
    notes = notes_of(incident)[::-1]
    return tuple(
        NoteRow(
            NoteKind(note.kind).label, visible(str(note.user)), note.at, visible(note.words),
            reverse("workflows:hold", args=[note.hold_id]) if note.hold_id else "",
        )
        for note in notes
    )  # fmt: skip


# -- the list of incidents, and what was found ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IncidentRow:
    href: str
    trouble: str
    status: str
    owner: str
    opened_at: datetime
    total: int
    unlooked: int


def incident_list(tenant_id: UUID, query: QueryDict) -> dict[str, Any]:
    """One page, the newest first, with how many runs each touched and how many nobody has looked at."""
    found = Incident.objects.filter(tenant_id=tenant_id).select_related("owner")
    found, cursor = found.annotate(created_at=F("opened_at")), query.get("cursor", "")
    try:
        page = cursors.page(found, list_name="incidents", cursor=cursor)
    except BadCursor:
        cursor, page = "", cursors.page(found, list_name="incidents")
    prefetch_keys(page.rows)
    counted = IncidentRun.objects.filter(incident__in=page.rows).order_by().values_list("incident", "mark")
    counts: dict[tuple[UUID, str], int] = {
        (incident, mark): number for incident, mark, number in counted.annotate(n=Count("pk"))
    }
    here = reverse("repair:incidents")
    return {
        "rows": [_incident_row(incident, counts) for incident in page.rows],
        "older": same_list(here, query, cursor=page.next_cursor) if page.next_cursor else "",
        "newest": same_list(here, query) if cursor else "",
    }


def _incident_row(incident: Incident, counts: Mapping[tuple[UUID, str], int]) -> IncidentRow:
    return IncidentRow(
        reverse("repair:incident", args=[incident.pk]), visible(incident.trouble), incident.status,
        visible(str(incident.owner)), incident.opened_at,
        sum(counts.get((incident.pk, mark), 0) for mark in Mark.values),
        counts.get((incident.pk, Mark.UNLOOKED), 0),
    )  # fmt: skip


def found_page(found: Found, query: QueryDict, here: str) -> dict[str, Any]:
    """One page of what was found."""
    cursor = query.get("cursor", "")
    try:
        page = cursors.page(found.runs, list_name="touched", cursor=cursor)
    except BadCursor:
        cursor, page = "", cursors.page(found.runs, list_name="touched")
    return {
        "rows": found_rows(page.rows), "says": found.says, "count": found.count, "more": found.more, "cut": found.cut,
        "older": same_list(here, query, cursor=page.next_cursor) if page.next_cursor else "",
        "newest": same_list(here, query) if cursor else "",
    }  # fmt: skip
