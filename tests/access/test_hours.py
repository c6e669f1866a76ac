"""Working hours as stretches of time, with changes of clocks, nights and holidays."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from access import actions_hours
from access.actions_absence import UnknownZone
from access.actions_hours import BadWeek, clear_hours, set_hours
from access.hours import ALWAYS, Hours, instant_of, known_zone, without, zone_names
from access.models import WorkingHours
from access.policies import RoleMissing
from access.presence import hours_of
from audit.models import Event
from common.clock import db_clock
from tests import factories
from tests.access.people import INSTALLER
from tests.access.test_absences import in_session
from tests.walls import refused_by

BERLIN = ZoneInfo("Europe/Berlin")
OFFICE = ((540, 1020),) * 5 + (None, None)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_weekend_is_no_working_time() -> None:
    """# field report D11"""
    office = Hours(BERLIN, OFFICE)
    friday, monday = utc("2026-12-04T16:00"), utc("2026-12-07T08:00")
    assert list(office.stretches(friday, monday)) == []
    assert office.opens_after(friday) == monday
    assert list(office.stretches(friday, monday + timedelta(seconds=1))) == [
        (monday, monday + timedelta(seconds=1))
    ]


def test_both_ends_are_half_open() -> None:
    office = Hours(BERLIN, OFFICE)
    closes = utc("2026-12-04T16:00")
    assert list(office.stretches(closes - timedelta(hours=1), closes)) == [
        (closes - timedelta(hours=1), closes)
    ]
    assert list(office.stretches(closes, closes + timedelta(hours=1))) == []


@pytest.mark.parametrize(
    ("day", "opens", "closes"),
    [("2026-03-29", "00:00", "22:00"), ("2026-10-25", "22:00", "23:00"), ("2026-06-01", "22:00", "22:00")],
)
def test_on_a_day_with_a_change_of_clocks_the_clock_counts(day: str, opens: str, closes: str) -> None:
    """A whole day has 23, 25 or 24 hours."""
    whole = Hours(BERLIN, ((0, 1440),) * 7)
    local = datetime.fromisoformat(day).replace(tzinfo=BERLIN)
    inside = local + timedelta(hours=12)
    [(start, end)] = [
        stretch
        for stretch in whole.stretches(local, local + timedelta(days=1))
        if stretch[0] <= inside < stretch[1]
    ]
    hours = {"2026-03-29": 23, "2026-10-25": 25}.get(day, 24)
    assert (end - start, start) == (timedelta(hours=hours), local.astimezone(UTC))


def test_a_holiday_is_one_of_the_zone() -> None:
    office = Hours(BERLIN, OFFICE, frozenset({date(2026, 12, 7)}))
    assert office.opens_after(utc("2026-12-04T17:00")) == utc("2026-12-08T08:00")


def test_who_said_nothing_works_always() -> None:
    start = utc("2026-12-05T03:00")
    assert sum(
        (b - a for a, b in ALWAYS.stretches(start, start + timedelta(days=2))), timedelta()
    ) == timedelta(days=2)


def test_what_is_left_beside_absences() -> None:
    at = [utc(f"2026-12-04T{hour:02d}:00") for hour in range(10)]
    assert without([(at[1], at[8])], [(at[2], at[3]), (at[5], at[9])]) == [(at[1], at[2]), (at[3], at[5])]
    assert without([(at[1], at[2])], [(at[1], at[2])]) == []
    assert without([(at[1], at[2])], [(at[2], at[3]), (at[0], at[1])]) == [(at[1], at[2])]


def test_a_reading_that_the_clock_skips_is_no_instant() -> None:
    assert instant_of(datetime(2026, 3, 29, 2, 30), BERLIN) is None
    assert instant_of(datetime(2026, 10, 25, 2, 30), BERLIN) == utc("2026-10-25T00:30")
    assert instant_of(datetime(2026, 12, 4, 9, 0), BERLIN) == utc("2026-12-04T08:00")


@pytest.mark.parametrize("name", ["", "Berlin", "../../etc/localtime", "Europe/Atlantis", "Etc/GMT+5"])
def test_zones_are_chosen_from_a_list(name: str) -> None:
    assert known_zone(name) is None
    assert name not in zone_names()


@pytest.mark.django_db
def test_hours_are_set_by_admins_and_stand_in_the_history() -> None:
    tenant = factories.make_tenant("north")
    group = factories.make_group(tenant)
    reviewer = factories.make_user(tenant)
    say = {"tenant": tenant, "zone": "Europe/Berlin", "week": OFFICE, "clock": db_clock}
    with pytest.raises(RoleMissing):
        set_hours(group=None, by=in_session(reviewer), **say)
    set_hours(group=group, by=INSTALLER, holidays=[date(2026, 12, 25), date(2026, 12, 25)], **say)
    set_hours(group=None, by=INSTALLER, **say)
    set_hours(group=group, by=INSTALLER, **(say | {"week": ((0, 1440),) + (None,) * 6}))
    kept = WorkingHours.objects.get(group=group)
    assert hours_of(kept.zone, kept.week, kept.holidays) == Hours(BERLIN, ((0, 1440),) + (None,) * 6)
    assert Event.objects.filter(kind="working_hours.set").count() == 3
    for bad in (OFFICE[:6], (None,) * 7, ((600, 600),) * 7, ((0, 1441),) * 7):
        with pytest.raises(BadWeek):
            set_hours(group=group, by=INSTALLER, **(say | {"week": bad}))
    with pytest.raises(UnknownZone):
        set_hours(group=group, by=INSTALLER, **(say | {"zone": "Mars/Base"}))
    assert clear_hours(tenant=tenant, group=group, by=INSTALLER, clock=db_clock)
    assert not clear_hours(tenant=tenant, group=group, by=INSTALLER, clock=db_clock)
    with refused_by("access_workinghours_once"):
        WorkingHours.objects.create(tenant=tenant, zone="UTC", week=[None] * 7)
    with refused_by("access_workinghours_group_tenant"):
        WorkingHours.objects.create(
            tenant=tenant, group=factories.make_group(factories.make_tenant()), zone="UTC", week=[]
        )
    assert actions_hours.MOST_HOLIDAYS > 365
