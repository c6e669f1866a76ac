"""What nobody needs to be told any more leaves the lists and the outbox, and nothing else does."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError

from access.models import User
from common.clock import db_clock
from notify.actions.forgetting import forget_told
from notify.models import Dispatch, Message, Notice
from tests.notify.rows import chat_row, destination_row, mail_row, message_row, notice_row
from tests.rows import now
from tests.workflows.conftest import Desk
from workflows import sweep

pytestmark = pytest.mark.django_db


def ago(days: int) -> datetime:
    return now() - timedelta(days=days)


def make_told(desk: Desk, days: int, *, kind: str = "outcome", **fields: Any) -> Message:
    """A message that was made so long ago."""
    made = message_row(desk.tenant, kind=kind, created_at=ago(days), **fields)
    made.save()
    return made


def make_notice(message: Message, user: User, **fields: Any) -> Notice:
    made = notice_row(message, user, created_at=message.created_at, **fields)
    made.save()
    return made


def make_mail(notice: Notice, *, ended: int | None = None, status: str = "delivered") -> Dispatch:
    """A mail that ended so many days ago, or is due."""
    made = mail_row(notice, created_at=notice.created_at)
    made.save()
    if ended is not None:
        Dispatch.objects.filter(pk=made.pk).update(status=status, due_at=None, ended_at=ago(ended))
    return made


def forget() -> int:
    return forget_told(clock=db_clock)


def left() -> tuple[int, int, int]:
    return Message.objects.count(), Notice.objects.count(), Dispatch.objects.count()


@pytest.mark.parametrize("settled", ["read_at", "over_at"])
def test_what_is_read_or_over_goes_after_a_while_with_all_of_it(
    desk: Desk, settings: Any, settled: str
) -> None:
    settings.PLACET_NOTICE_DAYS = 30
    message = make_told(desk, 40)
    make_mail(make_notice(message, desk.ada, **{settled: ago(31)}), ended=39)
    make_mail(make_notice(message, desk.ben, **{settled: ago(29)}), ended=39)
    forget()
    assert left() == (1, 1, 0), "ben's is not old enough"
    settings.PLACET_NOTICE_DAYS = 0  # a day at least, as the database has it
    forget()
    assert left() == (0, 0, 0)
    assert forget() == 0


def test_what_is_unread_stays_and_so_does_its_message(desk: Desk) -> None:
    message = make_told(desk, 400)
    make_mail(make_notice(message, desk.ada), ended=399)
    make_notice(message, desk.ben, read_at=ago(399))
    forget()
    assert left() == (1, 1, 0)
    assert Notice.objects.get().user == desk.ada


def test_what_still_asks_stays_though_it_was_read(desk: Desk) -> None:
    message = make_told(desk, 400, kind="asked")
    make_notice(message, desk.ada, read_at=ago(399))
    assert forget() == 0
    Message.objects.filter(pk=message.pk).update(closed_at=ago(91))
    Notice.objects.update(over_at=ago(91))
    forget()
    assert left() == (0, 0, 0)


def test_a_notice_stays_as_long_as_a_mail_names_it(desk: Desk) -> None:
    message = make_told(desk, 400)
    due = make_mail(make_notice(message, desk.ada, read_at=ago(399)))
    make_mail(make_notice(message, desk.ben, read_at=ago(399)), ended=2, status="dead")
    assert forget() == 0
    Dispatch.objects.filter(pk=due.pk).update(status="delivered", due_at=None, ended_at=ago(95))
    forget()
    assert left() == (1, 1, 1), "the one that was given up the day before yesterday can be sent again"


@pytest.mark.parametrize("status", ["delivered", "moot", "dead"])
def test_dispatches_to_rooms_go_and_their_message_with_the_last(desk: Desk, status: str) -> None:
    rooms = [destination_row(desk.tenant), destination_row(desk.tenant)]
    message = make_told(desk, 100)
    for room, days in zip(rooms, (91, 89), strict=True):
        room.save()
        chat_row(message, room, created_at=ago(100)).save()
        Dispatch.objects.filter(destination=room).update(status=status, due_at=None, ended_at=ago(days))
    forget()
    assert left() == (1, 0, 1)


def test_a_reminder_that_nobody_needed_goes(desk: Desk) -> None:
    make_told(desk, 100, kind="expiring", closed_at=ago(91))
    make_told(desk, 100, kind="expiring", closed_at=ago(89))
    make_told(desk, 100, kind="expiring", due_at=now() + timedelta(days=1))
    assert forget() == 1
    assert left() == (2, 0, 0)


def test_so_many_at_a_time(desk: Desk) -> None:
    for _ in range(3):
        make_notice(make_told(desk, 100), desk.ada, read_at=ago(95))
    assert forget_told(clock=db_clock, limit=2) == 4, "two notices and their messages"
    assert forget_told(clock=db_clock, limit=2) == 2


def test_the_sweep_does_it(desk: Desk) -> None:
    make_notice(make_told(desk, 100), desk.ada, read_at=ago(91))
    sweep.look_around()
    assert left() == (0, 0, 0)


def test_what_ended_today_or_waits_is_deleted_by_nobody(desk: Desk) -> None:
    notice = make_notice(make_told(desk, 0), desk.ada)
    make_mail(notice)
    for rows in (Dispatch.objects.all(), Message.objects.all()):
        with pytest.raises(DatabaseError, match="not deleted"):
            rows._raw_delete("default")  # past Django's own look at what refers to it
