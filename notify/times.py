"""When a person is told: now, at the next full hour, at their hour of the day; never within their quiet hours.

Pure. Quiet hours are times on the wall in the reader's zone, half-open (from 22:00 to 07:00 excludes 07:00), and may
go over midnight. Each stretch is turned into instants, so that on the days on which clocks change it begins at the
first and ends at the last instant that the wall shows so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from common.spans import iso
from notify.enums import Rhythm

UTC_NAME: Final = "UTC"
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person has chosen about time; the defaults are those of somebody who has chosen nothing."""

    zone: str = UTC_NAME
    rhythm: str = Rhythm.EACH
    daily_at: time = time(8)
    quiet_from: time | None = None
    quiet_to: time | None = None
    urgent_anyway: bool = False


@cache
def zones() -> list[str]:
    """The names that this machine knows, with UTC first."""
    return ["UTC", *sorted(available_timezones() - {"UTC", "localtime", "posixrules"})]


def zone_of(name: str) -> ZoneInfo:
    """The zone; UTC where this machine no longer knows the name."""
    return ZoneInfo(name if name in zones() else "UTC")


def due_at(wishes: Wishes, now: datetime, *, urgent: bool) -> datetime:
    """The first instant from ``now`` on at which this person wants to hear of it."""
    if urgent and wishes.urgent_anyway:
        return now
    return after_quiet(wishes, _by_rhythm(wishes, now))


def after_quiet(wishes: Wishes, instant: datetime) -> datetime:
    """``instant``, or the end of the quiet stretch that it lies in."""
    for begin, end in _stretches(wishes, instant):
        if begin <= instant < end:
            return end
    return instant


def _stretches(wishes: Wishes, instant: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The quiet stretches near an instant, in order."""
    start, stop = wishes.quiet_from, wishes.quiet_to
    if start is None or stop is None or start == stop:
        return
    zone, today = zone_of(wishes.zone), instant.astimezone(zone_of(wishes.zone)).date()
    for day in (today - DAY, today, today + DAY):
        ends = day if start < stop else day + DAY
        yield min(_instants(day, start, zone)), max(_instants(ends, stop, zone))


def _instants(day: date, wall: time, zone: ZoneInfo) -> list[datetime]:
    """The instants at which the wall shows this: two where the clock is set back, and where it is set forward both
    readings of a time that the wall never shows.
    """
    local = datetime.combine(day, wall, zone)
    return [local.replace(fold=fold).astimezone(UTC) for fold in (0, 1)]


def _by_rhythm(wishes: Wishes, now: datetime) -> datetime:
    local = now.astimezone(zone_of(wishes.zone))
    if wishes.rhythm == Rhythm.HOURLY:
        # Counted in instants: a full hour on the wall is one in every zone, also where it differs by half an hour.
        past = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
        return now if not past else now - past + HOUR
    if wishes.rhythm == Rhythm.DAILY:
        days = (local.date() + number * DAY for number in range(-1, 3))
        return next(
            at for day in days for at in [max(_instants(day, wishes.daily_at, local.tzinfo))] if at >= now  # type: ignore[arg-type]
        )  # fmt: skip
    return now


def shown(instant: datetime, zone: str) -> str:
    """An instant for a reader: the wall of their zone, and the ISO time beside."""
    local = instant.astimezone(zone_of(zone))
    return f"{local:%Y-%m-%d %H:%M} {zone} ({iso(instant)})"
