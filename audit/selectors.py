"""Reads of the history: filtered pages by keyset, and the state of a chain."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import F, OuterRef, Q, QuerySet

from audit.chain import SELECT_CONTENT, Content, content_of
from audit.kinds import KINDS
from audit.models import Event, Head, Seal
from common import cursors


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What is asked for; empty fields ask for nothing. ``kind`` may end in a point: ``proposal.`` means all of them."""

    since: datetime | None = None
    until: datetime | None = None
    actor: str = ""
    through: str = ""
    run_id: UUID | None = None
    subject_type: str = ""
    subject_id: UUID | None = None
    kind: str = ""
    digest: str = ""

    def condition(self) -> Q:
        wanted: dict[str, object] = {
            "at__gte": self.since, "at__lt": self.until, "run_id": self.run_id, "subject_type": self.subject_type,
            "subject_id": self.subject_id, "digest": self.digest, "through": self.through,
        }  # fmt: skip
        if self.kind.endswith("."):
            wanted |= _of_group(self.kind)
        elif self.kind:
            wanted["kind"] = self.kind
        found = Q(**{name: value for name, value in wanted.items() if value})
        return found & (Q(performed_by=self.actor) | Q(on_behalf_of=self.actor)) if self.actor else found


def _of_group(group: str) -> dict[str, object]:
    """All kinds that begin so. Known ones are named one by one: an index finds words, and no beginnings of them."""
    known = [f"{group}{what}" for what in KINDS.get(group.removesuffix("."), ())]
    return {"kind__in": known} if known else {"kind__startswith": group}


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


def page(
    tenant_id: UUID, filters: Filters | None = None, *, cursor: str = "", size: int = cursors.PAGE
) -> cursors.Page[Event]:
    """One page of `events`; the cursor is that of the page before. Raises BadCursor."""
    found = events(tenant_id, filters).annotate(created_at=F("at"))
    return cursors.page(found, list_name="events", cursor=cursor, size=size)


def chain_state(tenant_id: UUID) -> ChainState:
    """The tenant's sealed count, head, unsealed count and last sealing."""
    head = Head.objects.filter(tenant_id=tenant_id).first()
    total = Event.objects.filter(tenant_id=tenant_id).count()
    if head is None:
        return ChainState(0, "", total, None)
    return ChainState(head.seq, head.hash, max(0, total - head.seq), head.at)


def stored_content(event_id: UUID) -> Content:
    """What the chain covers of an event that is there."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {SELECT_CONTENT} FROM audit_event e WHERE e.id = %s", [event_id])  # noqa: S608
        found = content_of(cursor.fetchone())
    assert found is not None  # the caller has just read the row
    return found
