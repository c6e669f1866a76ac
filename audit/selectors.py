"""Reads of the history: filtered pages by keyset, and the state of a chain."""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet

from audit.models import Event, Head, Seal
from common.errors import InvalidInput

PAGE: Final = 50
LONGEST_PAGE: Final = 200


class BadCursor(InvalidInput):
    """This cursor was not given out by this list."""

    code = "bad_cursor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What is asked for; empty fields ask for nothing. ``kind`` may end in a point: ``proposal.`` means all of them."""

    since: datetime | None = None
    until: datetime | None = None
    actor: str = ""
    run_id: UUID | None = None
    subject_type: str = ""
    subject_id: UUID | None = None
    kind: str = ""
    digest: str = ""

    def condition(self) -> Q:
        wanted: dict[str, object] = {
            "at__gte": self.since, "at__lt": self.until, "run_id": self.run_id, "subject_type": self.subject_type,
            "subject_id": self.subject_id, "digest": self.digest,
            "kind__startswith" if self.kind.endswith(".") else "kind": self.kind,
        }  # fmt: skip
        found = Q(**{name: value for name, value in wanted.items() if value})
        return found & (Q(performed_by=self.actor) | Q(on_behalf_of=self.actor)) if self.actor else found


@dataclass(frozen=True, slots=True)
class Page:
    """Some events, newest first, and where the next page begins ("" after the last)."""

    events: list[Event]
    next_cursor: str


@dataclass(frozen=True, slots=True)
class ChainState:
    """How far a tenant's events are sealed. Says nothing about whether the chain holds: `audit.verify` does."""

    sealed: int
    head_hash: str
    unsealed: int
    sealed_at: datetime | None


def events(tenant_id: UUID, filters: Filters | None = None) -> QuerySet[Event]:
    """A tenant's events, newest first, each with its place in the chain as ``seq`` (None while unsealed)."""
    seals = Seal.objects.filter(event_id=OuterRef("id")).values("seq")
    found = Event.objects.filter(tenant_id=tenant_id).annotate(seq=seals[:1])
    return (found.filter(filters.condition()) if filters else found).order_by("-at", "-id")


def page(tenant_id: UUID, filters: Filters | None = None, *, cursor: str = "", size: int = PAGE) -> Page:
    """One page of `events`; the cursor is that of the page before. Raises BadCursor."""
    size = max(1, min(size, LONGEST_PAGE))
    found = events(tenant_id, filters)
    if cursor:
        at, event_id = _read_cursor(cursor)
        found = found.filter(Q(at__lt=at) | Q(at=at, id__lt=event_id), at__lte=at)
    rows = list(found[: size + 1])
    more = len(rows) > size
    return Page(rows[:size], cursor_of(rows[size - 1]) if more else "")


def chain_state(tenant_id: UUID) -> ChainState:
    """The tenant's sealed count, head, unsealed count and last sealing."""
    head = Head.objects.filter(tenant_id=tenant_id).first()
    total = Event.objects.filter(tenant_id=tenant_id).count()
    if head is None:
        return ChainState(0, "", total, None)
    return ChainState(head.seq, head.hash, max(0, total - head.seq), head.at)


def cursor_of(event: Event) -> str:
    """The place right behind an event, opaque to whoever gets it."""
    return base64.urlsafe_b64encode(f"{event.at.isoformat()} {event.id}".encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[datetime, UUID]:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        at, event_id = text.split(" ")
        instant = datetime.fromisoformat(at)
        if instant.tzinfo is None:
            raise BadCursor
        return instant, UUID(event_id)
    except (ValueError, binascii.Error) as error:
        raise BadCursor from error
