"""The list of what stopped, in its sections: a stretch of each on the first page, the whole of one on its own."""

from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final
from uuid import UUID

from django.db.models import Count, QuerySet
from django.http import QueryDict
from django.urls import reverse

from approvals.models import Proposal
from common.links import same_list
from common.states_ui import StateUi
from repair.enums import PacketStatus
from repair.filters import PacketFilter
from repair.models import RepairPacket
from repair.selectors import SECTIONS, Packets, bare_commands, open_packets, packets, section_of, statuses_of
from repair.tables import SECTION_SAYS, SECTION_UI, StoppedRow, command_row, packet_row
from workflows.models import Command

FIRST_FEW: Final = 10
PAGE: Final = 50
CLOSED: Final = "closed"


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of stop; ``count`` is how many there are, ``rows`` those on this page."""

    name: str
    ui: StateUi
    says: str
    count: int
    rows: tuple[StoppedRow, ...]
    all_href: str


@dataclass(frozen=True, slots=True)
class Tab:
    word: str
    href: str
    count: int | None
    current: bool


@dataclass(frozen=True, slots=True)
class Stopped:
    """The whole page."""

    sections: tuple[Section, ...]
    closed: tuple[StoppedRow, ...]
    tabs: tuple[Tab, ...]
    view: str
    total: int
    filtered: bool
    unfiltered: str
    newest: str
    older: str


def stopped(tenant_id: UUID, filters: PacketFilter, query: QueryDict, now: datetime) -> Stopped:
    """The page that ``query`` asks for. Counts and rows share the filter's conditions."""
    view = query.get("view", "") if query.get("view", "") in (*SECTIONS, CLOSED) else ""
    found, bare = filters.qs, filters.bare(bare_commands(tenant_id))
    count = counts_of(found, bare)
    offset = offset_of(query)
    shown = (
        [view] if view in SECTIONS else [] if view == CLOSED else [name for name in SECTIONS if count[name]]
    )
    sections = tuple(section(name, found, bare, count[name], view, offset, query, now) for name in shown)
    closed, more_closed = closed_rows(tenant_id, offset, now) if view == CLOSED else ((), False)
    more = more_closed or any(view and part.count > offset + PAGE for part in sections)
    return Stopped(
        sections=sections, closed=closed, view=view, total=sum(count.values()), filtered=filters.is_active,
        tabs=tabs(view, count, query), unfiltered=address(QueryDict(), view=view),
        newest=address(query) if offset else "",
        older=address(query, offset=str(offset + PAGE)) if more else "",
    )  # fmt: skip


def base_packets(tenant_id: UUID) -> Packets:
    """What the filter narrows: everything that is open, the nearest deadline first."""
    return open_packets(tenant_id).order_by("waiting_until", "pk")


def counts_of(found: Packets, bare: QuerySet[Command]) -> dict[str, int]:
    count = dict.fromkeys(SECTIONS, 0)
    for name, number in found.order_by().values_list("section").annotate(n=Count("pk")):
        count[name] += number
    for status, number in bare.order_by().values_list("status").annotate(n=Count("pk")):
        count[section_of(Command(status=status))] += number
    return count


def section(
    name: str, found: Packets, bare: QuerySet[Command], count: int, view: str, offset: int,
    query: QueryDict, now: datetime,
) -> Section:  # fmt: skip
    """Packets first, then the commands without one."""
    start, size = (offset, PAGE) if view else (0, FIRST_FEW)
    rows = found.filter(section=name)
    listed = list(rows[start : start + size])
    left = size - len(listed)
    more: list[Command] = []
    if left and statuses_of(name):
        begin = max(0, start - rows.count()) if start else 0
        more = list(
            bare.filter(status__in=statuses_of(name)).order_by("created_at", "pk")[begin : begin + left]
        )
    return Section(
        name=name, ui=SECTION_UI[name], says=SECTION_SAYS[name], count=count,
        rows=(*rows_of(listed, now), *(command_row(command, now) for command in more)),
        all_href=address(query, view=name) if not view and count > FIRST_FEW else "",
    )  # fmt: skip


def closed_rows(tenant_id: UUID, offset: int, now: datetime) -> tuple[tuple[StoppedRow, ...], bool]:
    """Packets that are settled, newest first, and whether there are more."""
    found = packets(tenant_id).exclude(status__in=PacketStatus.open_states).order_by("-opened_at", "-pk")
    listed = list(found[offset : offset + PAGE + 1])
    return rows_of(listed[:PAGE], now), len(listed) > PAGE


def rows_of(listed: list[RepairPacket], now: datetime) -> tuple[StoppedRow, ...]:
    """The rows, each with the target of its proposal; one query for all of them."""
    ids = {packet.proposal_id for packet in listed if packet.proposal_id}
    asked = (
        Proposal.objects.filter(tenant_id=listed[0].tenant_id, pk__in=ids) if ids else Proposal.objects.none()
    )
    targets = dict(asked.values_list("pk", "target"))
    return tuple(
        packet_row(packet, targets.get(packet.proposal_id or packet.pk, ""), now) for packet in listed
    )


def tabs(view: str, count: dict[str, int], query: QueryDict) -> tuple[Tab, ...]:
    whole = Tab("All", address(query, view=""), sum(count.values()), not view)
    single = (
        Tab(SECTION_UI[name].word, address(query, view=name), count[name], view == name) for name in SECTIONS
    )
    return (whole, *single, Tab("Settled", address(query, view=CLOSED), None, view == CLOSED))


def offset_of(query: QueryDict) -> int:
    """What stopped is few and changes while it is worked on, so its pages are counted, not keyed."""
    digits = "".join(islice(query.get("offset", ""), 6))
    return int(digits) // PAGE * PAGE if digits.isascii() and digits.isdigit() else 0


def address(query: QueryDict, **changed: str) -> str:
    return same_list(reverse("repair:packets"), query, **changed)
