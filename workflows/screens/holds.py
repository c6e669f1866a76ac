"""Freezes and open circuits as a list: what holds now, and what held before."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import F
from django.http import QueryDict
from django.urls import reverse

from audit.names import names_of, spoken
from common import cursors
from common.cursors import BadCursor
from common.display import visible
from common.links import same_list
from common.states_ui import StateUi
from workflows.enums import HoldReason, HoldStatus
from workflows.models import Hold
from workflows.selectors_holds import freezes_in_force, held_counts, holds_of, live_holds, narrowness

REASONS: Final = {
    HoldReason.FREEZE: StateUi("held", "snow", "Freeze"),
    HoldReason.CIRCUIT: StateUi("held", "pause", "Provider in trouble"),
}
LONGEST_WHY: Final = 140
"""Signs of a reason on the banner, which stands on every page; the freeze's own page has all of it."""


@dataclass(frozen=True, slots=True)
class HoldRow:
    """One freeze or circuit. ``drained``: whether it is proven that nobody was left who had not seen it."""

    href: str
    scope: str
    ui: StateUi
    status: str
    is_freeze: bool
    of_installation: bool
    why: str
    who: str
    since: datetime
    held: int
    drained_at: datetime | None
    until: datetime | None
    lifted_at: datetime | None
    lifted_by: str
    lift_why: str


@dataclass(frozen=True, slots=True)
class HoldList:
    """What holds now, and one page of what held before."""

    live: tuple[HoldRow, ...]
    past: tuple[HoldRow, ...]
    older: str
    newest: str


def hold_list(tenant_id: UUID, query: QueryDict) -> HoldList:
    """Four queries, however many rows there are; three where nobody is to be named."""
    live, cursor = live_holds(tenant_id), query.get("cursor", "")
    ended = holds_of(tenant_id).filter(status=HoldStatus.LIFTED).annotate(created_at=F("placed_at"))
    try:
        page = cursors.page(ended, list_name="holds", cursor=cursor)
    except BadCursor:
        cursor, page = "", cursors.page(ended, list_name="holds")
    names = names_of({actor for hold in (*live, *page.rows) for actor in (hold.placed_by, hold.lifted_by)})
    held, here = held_counts(tenant_id, live), reverse("workflows:holds")
    return HoldList(
        live=tuple(hold_row(hold, names, held) for hold in live),
        past=tuple(hold_row(hold, names, {}) for hold in page.rows),
        older=same_list(here, query, cursor=page.next_cursor) if page.next_cursor else "",
        newest=same_list(here, query) if cursor else "",
    )


def hold_row(hold: Hold, names: Mapping[str, str], held: Mapping[UUID, int]) -> HoldRow:
    return HoldRow(
        href=hold_href(hold.pk), scope=scope_words(hold), ui=REASONS[HoldReason(hold.reason)], status=hold.status,
        is_freeze=hold.reason == HoldReason.FREEZE, of_installation=hold.tenant_id is None, why=visible(hold.why),
        who=spoken(hold.placed_by, names), since=hold.placed_at, held=held.get(hold.pk, 0), drained_at=hold.drained_at,
        until=hold.until, lifted_at=hold.lifted_at,
        lifted_by=spoken(hold.lifted_by, names) if hold.lifted_by else "", lift_why=visible(hold.lift_why),
    )  # fmt: skip


def hold_href(hold_id: UUID) -> str:
    return reverse("workflows:hold", args=[hold_id])


def scope_words(hold: Hold) -> str:
    """What it holds, as text for the page."""
    return "everything on this installation" if hold.tenant_id is None else visible(hold.scope)


@dataclass(frozen=True, slots=True)
class Banner:
    """What every page says while something is frozen."""

    scope: str
    who: str
    why: str
    since: datetime
    whole: bool
    """Whether nothing at all is sent for the tenant."""
    more: int
    href: str


def banner(tenant_id: UUID) -> Banner | None:
    """The widest freeze in force, and how many there are beside it: one query where nothing is frozen."""
    freezes = freezes_in_force(tenant_id)
    if not freezes:
        return None
    widest = freezes[0]
    scope = scope_words(widest)
    why = widest.why if len(widest.why) <= LONGEST_WHY else f"{widest.why[:LONGEST_WHY].rstrip()}…"
    return Banner(
        scope=f"{scope[:1].upper()}{scope[1:]}", who=spoken(widest.placed_by, names_of([widest.placed_by])),
        why=visible(why).removesuffix("."), whole=narrowness(widest) <= 1, since=widest.placed_at,
        more=len(freezes) - 1, href=hold_href(widest.pk) if len(freezes) == 1 else reverse("workflows:holds"),
    )  # fmt: skip
