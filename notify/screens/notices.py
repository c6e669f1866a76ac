"""What a person's list shows: each notice with how its subject stands at this moment."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from notify.actions.checking import Subject, standings
from notify.hooks import Standing
from notify.kinds import kind_of
from notify.models import Message, Notice
from notify.texts import grouped


@dataclass(frozen=True, slots=True)
class Row:
    """``ended``: how the subject ended, where nothing is asked any more; ``at``: when."""

    id: UUID
    title: str
    lead: str
    digest: str
    facts: Sequence[tuple[str, str]]
    created_at: datetime
    until: datetime | None
    href: str
    unread: bool
    asks: bool
    ended: str
    at: datetime | None


def rows_of(notices: Collection[Notice], now: datetime) -> list[Row]:
    """In their order, with one question for each kind of subject."""
    known = standings(notice.message for notice in notices)
    return [_row(notice, standing_in(known, notice.message), now) for notice in notices]


def standing_in(known: Mapping[Subject, Standing], message: Message) -> Standing:
    return known[message.tenant_id, message.subject_type, message.subject_id]


def _row(notice: Notice, standing: Standing, now: datetime) -> Row:
    told, asks = notice.message, kind_of(notice.message.kind).asks
    over = asks and not standing.waits
    return Row(
        id=notice.pk, title=kind_of(told.kind).title, lead=told.lead, digest=grouped(told.digest),
        facts=[(label, text) for label, text in told.facts], created_at=notice.created_at,
        until=told.until if asks and not over else None, href=told.href,
        unread=notice.read_at is None and notice.over_at is None and not over, asks=asks and not over,
        ended=(standing.says or "It asks for nothing any more.") if over else "", at=standing.at if over else None,
    )  # fmt: skip
