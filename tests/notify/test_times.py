"""Quiet hours and rhythms in the reader's zone: half-open, over midnight, and on the days on which clocks change."""

from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify import times
from notify.enums import Rhythm
from notify.times import Wishes, due_at

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT: dict[str, Any] = {"zone": "Europe/Berlin", "quiet_from": time(22), "quiet_to": time(7)}


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "due"),
    [
        ("2026-01-15T20:59:59", "2026-01-15T20:59:59"),  # 21:59:59: not yet
        ("2026-01-15T21:00:00", "2026-01-16T06:00:00"),  # 22:00 exactly is quiet
        ("2026-01-15T23:30:00", "2026-01-16T06:00:00"),  # over midnight
        ("2026-01-16T05:59:59", "2026-01-16T06:00:00"),
        ("2026-01-16T06:00:00", "2026-01-16T06:00:00"),  # 07:00 exactly is not
        ("2026-07-15T20:00:00", "2026-07-16T05:00:00"),  # in summer the same wall is another instant
        ("2026-03-28T23:30:00", "2026-03-29T05:00:00"),  # the night of 23 hours
        ("2026-10-24T23:30:00", "2026-10-25T06:00:00"),  # the night of 25 hours
    ],
)
def test_quiet_hours(now: str, due: str) -> None:
    assert due_at(Wishes(**NIGHT), utc(now), urgent=False) == utc(due)


def test_a_quiet_hour_that_comes_twice_is_quiet_twice() -> None:
    wishes = Wishes(zone="Europe/Berlin", quiet_from=time(2, 15), quiet_to=time(2, 45))
    first, second = utc("2026-10-25T00:20:00"), utc("2026-10-25T01:20:00")  # both 02:20
    end = utc("2026-10-25T01:45:00")
    assert [due_at(wishes, one, urgent=False) for one in (first, second)] == [end, end]
    assert due_at(wishes, utc("2026-10-25T00:14:59"), urgent=False) == utc("2026-10-25T00:14:59")


def test_a_quiet_hour_that_never_comes_holds_nothing_for_long() -> None:
    wishes = Wishes(zone="Europe/Berlin", quiet_from=time(2, 15), quiet_to=time(2, 45))
    now = utc("2026-03-29T00:50:00")  # 01:50, and then 03:00
    assert due_at(wishes, now, urgent=False) - now <= timedelta(hours=1)


def test_urgent_ones_pass_only_where_the_person_says_so() -> None:
    now = utc("2026-01-15T23:00:00")
    assert due_at(Wishes(**NIGHT), now, urgent=True) > now
    assert due_at(Wishes(**NIGHT, urgent_anyway=True), now, urgent=True) == now
    assert due_at(Wishes(**NIGHT, urgent_anyway=True), now, urgent=False) > now


def test_collected_once_an_hour_and_once_a_day() -> None:
    hourly = Wishes(rhythm=Rhythm.HOURLY, zone="Asia/Kolkata")
    assert due_at(hourly, utc("2026-01-15T10:31:00"), urgent=False) == utc("2026-01-15T11:30:00")
    assert due_at(hourly, utc("2026-01-15T10:30:00"), urgent=False) == utc("2026-01-15T10:30:00")
    daily = Wishes(rhythm=Rhythm.DAILY, zone="Europe/Berlin", daily_at=time(8))
    assert due_at(daily, utc("2026-03-28T08:00:00"), urgent=False) == utc("2026-03-29T06:00:00")
    assert due_at(daily, utc("2026-03-29T06:00:00"), urgent=False) == utc("2026-03-29T06:00:00")
    assert due_at(daily, utc("2026-10-24T06:00:01"), urgent=False) == utc("2026-10-25T07:00:00")


WALL = st.times().map(lambda at: at.replace(microsecond=0, second=0))


@given(
    st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)), WALL, WALL,
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
    st.sampled_from(list(Rhythm)),
)  # fmt: skip
def test_nothing_is_due_in_quiet_hours_nor_before_now(
    now: datetime, start: time, stop: time, zone: str, rhythm: Rhythm
) -> None:
    wishes = Wishes(zone=zone, quiet_from=start, quiet_to=stop, rhythm=rhythm)
    due = due_at(wishes, now, urgent=False)
    assert now <= due <= now + timedelta(days=3)
    assert times.after_quiet(wishes, due) == due


def test_an_unknown_zone_is_read_as_utc() -> None:
    assert times.shown(utc("2026-01-15T10:30:00"), "Mars/Olympus").startswith("2026-01-15 10:30 ")
    assert times.zones()[0] == "UTC"
    assert "Europe/Berlin" in times.zones()
    assert BERLIN.key == "Europe/Berlin"
