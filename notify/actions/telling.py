"""Telling: what other code calls. One row is written, in the caller's transaction; people are looked for later."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from access.audience import Audience
from common import prepared
from common.disclosure import Recipient, disclosed
from common.tx import require_transaction
from notify.kinds import Kind
from notify.models import Message, Notice
from notify.texts import one_line


@dataclass(frozen=True, slots=True)
class Fact:
    """A line under the lead. What may not leave is replaced before it is stored."""

    label: str
    text: str
    data_class: str = "business"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One thing to be told.

    ``lead`` is the effect in one line, without personal values. ``href`` is a path on this installation. ``until``:
    the time by which something is to be done; after it nothing of this is told any more. ``due_at``: not before.
    """

    kind: Kind
    tenant_id: UUID
    subject_type: str
    subject_id: UUID
    version: int = 1
    lead: str
    href: str
    audience: Audience
    digest: str = ""
    facts: Sequence[Fact] = field(default_factory=tuple)
    until: datetime | None = None
    urgent: bool = False
    due_at: datetime | None = None


def tell(told: Told, *, now: datetime) -> bool:
    """Write it down, once for this kind, subject and version; False where it was told before. One statement."""
    require_transaction()
    return prepared.insert(_row(told, now), or_nothing=True)


def _row(told: Told, now: datetime) -> Message:
    who, to = told.audience, Recipient(told.tenant_id)
    facts = [[one_line(it.label, 60), one_line(disclosed(it.text, it.data_class, to))] for it in told.facts]
    return Message(
        tenant_id=told.tenant_id, kind=told.kind.name, subject_type=told.subject_type, subject_id=told.subject_id,
        version=told.version, lead=one_line(told.lead), digest=told.digest.rpartition(":")[2][:64], facts=facts,
        until=told.until, href=told.href, urgent=told.urgent, group_id=who.group_id, role=who.role,
        people=None if who.people is None else list(who.people), without=list(who.without), created_at=now,
        due_at=told.due_at or now,
    )  # fmt: skip


def close(
    *, tenant_id: UUID, subject_type: str, subject_ids: Collection[UUID], kinds: Sequence[Kind], now: datetime
) -> int:
    """Nobody needs to do anything about these subjects any more: what asked for it is unread no longer.

    What was to leave later does not; the sender finds that out by itself. Two statements, however many people.
    """
    require_transaction()
    asking = [kind.name for kind in kinds if kind.asks]
    found = Message.objects.filter(
        tenant_id=tenant_id,
        subject_type=subject_type,
        subject_id__in=subject_ids,
        kind__in=asking,
        closed_at=None,
    )
    ids = list(found.values_list("pk", flat=True))
    Message.objects.filter(pk__in=ids).update(closed_at=now, due_at=None)
    return Notice.objects.filter(message_id__in=ids, over_at=None).update(over_at=now)
