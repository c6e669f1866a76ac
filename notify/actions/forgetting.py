"""What nobody needs to be told any more leaves the lists and the outbox. The history keeps that it was told."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from common.clock import Clock
from common.tx import action
from notify.kinds import all_kinds
from notify.models import Dispatch, Message, Notice
from notify.models.messages import SETTLED

PER_ROUND: Final = 500
LEAST_DAYS: Final = 1
"""The database keeps what has ended for a day at least."""


def forget_told(*, clock: Clock, limit: int = PER_ROUND) -> int:
    """Remove what was settled longer ago than PLACET_NOTICE_DAYS, at most ``limit`` of each sort; returns how many.

    Dispatches go once they have ended, notices once they are read or ask for nothing, and a message after the last of
    them. What is unread stays, and so does what still asks somebody for something.
    """
    before = clock() - timedelta(days=max(settings.PLACET_NOTICE_DAYS, LEAST_DAYS))
    return _forget_dispatches(before, limit) + _forget_notices(before, limit) + _forget_closed(before, limit)


@action
def _forget_dispatches(before: datetime, limit: int) -> int:
    rows = Dispatch.objects.select_for_update(of=("self",), skip_locked=True)
    found = list(rows.filter(ended_at__lt=before).order_by("ended_at", "id")[:limit])
    gone = _delete(Dispatch, [one.pk for one in found])
    return gone + _forget_messages({one.message_id for one in found}, before)


@action
def _forget_notices(before: datetime, limit: int) -> int:
    """Behind their dispatches: a mail that is still to be sent, or was not long ago, names its notice."""
    sent = Dispatch.objects.filter(notice=OuterRef("pk"))
    asking = Q(over_at=None, message__closed_at=None, message__kind__in=_asking())
    old = Notice.objects.annotate(settled=SETTLED).filter(settled__lt=before).exclude(asking)
    rows = old.exclude(Exists(sent)).select_for_update(of=("self",), skip_locked=True)
    found = list(rows.order_by("settled", "id")[:limit])
    gone = _delete(Notice, [one.pk for one in found])
    return gone + _forget_messages({one.message_id for one in found}, before)


@action
def _forget_closed(before: datetime, limit: int) -> int:
    """Those that were never spread to anybody, such as reminders of what was decided in time."""
    closed = _childless(Message.objects.filter(closed_at__lt=before))
    return _delete(Message, list(closed.order_by("closed_at", "id").values_list("pk", flat=True)[:limit]))


def _forget_messages(ids: Collection[UUID], before: datetime) -> int:
    """Those of which nothing is left. A message keeps its subject from being told twice: young ones stay."""
    told = Message.objects.filter(pk__in=ids, created_at__lt=before, due_at=None)
    over = told.exclude(closed_at=None, kind__in=_asking()) if ids else told.none()
    return _delete(Message, list(_childless(over).order_by("id").values_list("pk", flat=True)))


def _childless(messages: QuerySet[Message]) -> QuerySet[Message]:
    notices = Exists(Notice.objects.filter(message=OuterRef("pk")))
    dispatches = Exists(Dispatch.objects.filter(message=OuterRef("pk")))
    return messages.exclude(notices).exclude(dispatches).select_for_update(of=("self",), skip_locked=True)


def _delete(model: type[Dispatch] | type[Notice] | type[Message], ids: Collection[UUID]) -> int:
    return model.objects.filter(pk__in=ids).delete()[0] if ids else 0


def _asking() -> list[str]:
    return [kind.name for kind in all_kinds() if kind.asks]
