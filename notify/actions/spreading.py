"""Spreading: who a message concerns is worked out when it is due, and each of them gets a notice and their deliveries.

In one transaction for each message, with a number of statements that does not grow with the people.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from access.audience import Audience, Reached, reached
from access.enums import Role
from common.clock import Clock
from common.rounds import each
from common.tx import action
from notify import hooks, times
from notify.enums import Channel
from notify.kinds import Kind, kind_of
from notify.models import Destination, Dispatch, Message, Notice, Preference
from notify.times import Wishes

MOST: Final = 200
"""Messages that one look takes."""


def spread_due(*, clock: Clock) -> int:
    """Spread the messages that are due; returns how many."""
    due = Message.objects.filter(due_at__lte=clock()).order_by("due_at", "id")
    return each(
        list(due.values_list("pk", flat=True)[:MOST]), lambda pk: spread(pk, clock=clock), what="spread"
    )


@action
def spread(message_id: UUID, *, clock: Clock) -> bool:
    """Once for each message. What no longer waits concerns nobody."""
    rows = Message.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    message = rows.filter(pk=message_id, due_at__isnull=False).first()
    if message is None:
        return False
    now = clock()
    if message.due_at is not None and message.due_at > now:
        return False
    message.due_at = None
    message.save(update_fields=["due_at"])
    people = people_of(message, now)
    if people is None:
        return True
    notices = add_notices(message, people, now)
    add_mails(message, people, notices, now)
    _add_chats(message, now)
    return True


def people_of(message: Message, now: datetime) -> list[Reached] | None:
    """Whom it concerns at this moment; None where it is too late, or no longer asked."""
    if message.closed_at is not None or (message.until is not None and message.until <= now):
        return None
    standing = hooks.standings_of(message.tenant_id, message.subject_type, [message.subject_id])[
        message.subject_id
    ]
    kind = kind_of(message.kind)
    if kind.asks and not standing.waits:
        return None
    audience = Audience(
        group_id=message.group_id, role=message.role, people=message.people, without=message.without,
        done=standing.done if kind.asks else (),
    )  # fmt: skip
    return reached(message.tenant_id, audience)


def add_notices(message: Message, people: Sequence[Reached], now: datetime) -> dict[UUID, UUID]:
    """The notice of each person, those that were there before among them."""
    rows = [
        Notice(tenant_id=message.tenant_id, message=message, user_id=it.user_id, created_at=now)
        for it in people
    ]
    Notice.objects.bulk_create(rows, ignore_conflicts=True)
    return dict(Notice.objects.filter(message=message).values_list("user_id", "pk"))


def add_mails(
    message: Message,
    people: Sequence[Reached],
    notices: dict[UUID, UUID],
    now: datetime,
    *,
    anyway: bool = False,
) -> None:
    """A mail for each who has an address and wants one. ``anyway``: also for who hears of it elsewhere, as a rule.

    Who is away is not asked by mail; their list in the app has it.
    """
    kind = kind_of(message.kind)
    wishes = {
        row.user_id: row
        for row in Preference.objects.filter(
            tenant_id=message.tenant_id, user_id__in=[it.user_id for it in people]
        )
    }
    rows = [
        Dispatch(
            tenant_id=message.tenant_id, message=message, channel=Channel.MAIL, notice_id=notices[it.user_id],
            created_at=now, due_at=_due(kind, wishes.get(it.user_id), now, urgent=message.urgent),
        )
        for it in people
        if it.email and not (it.away and kind.asks) and (anyway or by_mail(kind, wishes.get(it.user_id)))
    ]  # fmt: skip
    Dispatch.objects.bulk_create(rows, ignore_conflicts=True)


def by_mail(kind: Kind, wishes: Preference | None) -> bool:
    return bool(wishes.mail.get(kind.name, kind.mail)) if wishes is not None and kind.chosen else kind.mail


def _due(kind: Kind, wishes: Preference | None, now: datetime, *, urgent: bool) -> datetime:
    if kind.at_once:
        return now
    return times.due_at(wishes.wishes if wishes is not None else Wishes(), now, urgent=urgent)


def _add_chats(message: Message, now: datetime) -> None:
    """Rooms of the group, and rooms that hear of everything; what names single people goes to no room."""
    if message.people is not None:
        return
    rooms = Destination.objects.filter(
        tenant_id=message.tenant_id, deactivated_at=None, kinds__contains=[message.kind]
    )
    rows = [
        Dispatch(
            tenant_id=message.tenant_id, message=message, channel=Channel.CHAT, destination=room, created_at=now,
            due_at=now,
        )
        for room in rooms if room.group_id is None or room.group_id == message.group_id
    ]  # fmt: skip
    Dispatch.objects.bulk_create(rows, ignore_conflicts=True)


def admins() -> Audience:
    return Audience(role=Role.ADMIN)


def spread_to_mail(message: Message, now: datetime) -> None:
    """The way out where a room could not be reached: its people get a mail, whatever they chose. Inside an action."""
    people = people_of(message, now)
    if people:
        add_mails(message, people, add_notices(message, people, now), now, anyway=True)
