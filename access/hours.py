"""Working hours as stretches of time: which parts of a window somebody works in. Pure; all stretches are half-open."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

MIDNIGHT: Final = 24 * 60
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LOOKS_AHEAD: Final = timedelta(days=60)

Stretch = tuple[datetime, datetime]
Day = tuple[int, int] | None
"""From and until, in minutes of the local day; None is a day off."""


@dataclass(frozen=True, slots=True)
class Hours:
    """A week of one place, and the days on which nobody works there."""

    zone: ZoneInfo
    week: tuple[Day, ...]
    holidays: frozenset[date] = frozenset()

    def stretches(self, start: datetime, end: datetime) -> Iterator[Stretch]:
        """The working time between two instants, in order. On a day with a change of clocks, the clock counts."""
        start, end = (
            start.astimezone(UTC),
            end.astimezone(UTC),
        )  # lengths of a local day are those of its clock
        day, last = start.astimezone(self.zone).date(), end.astimezone(self.zone).date()
        while day <= last:
            opens = self._of(day)
            if opens is not None:
                found = max(start, opens[0]), min(end, opens[1])
                if found[0] < found[1]:
                    yield found
            day += timedelta(days=1)

    def opens_after(self, instant: datetime) -> datetime | None:
        """When work begins, or goes on; None where it does not within two months."""
        return next((start for start, _ in self.stretches(instant, instant + _LOOKS_AHEAD)), None)

    def _of(self, day: date) -> Stretch | None:
        hours = self.week[day.weekday()]
        if hours is None or day in self.holidays:
            return None
        return self._at(day, hours[0]), self._at(day, hours[1])

    def _at(self, day: date, minutes: int) -> datetime:
        if minutes == MIDNIGHT:
            day, minutes = day + timedelta(days=1), 0
        local = datetime.combine(day, time(minutes // 60, minutes % 60), self.zone)
        return local.astimezone(UTC)


ALWAYS: Final = Hours(ZoneInfo("UTC"), ((0, MIDNIGHT),) * 7)
"""Of an organisation that has said nothing."""


def without(stretches: Sequence[Stretch], away: Collection[Stretch]) -> list[Stretch]:
    """What is left of them."""
    left = list(stretches)
    for gone_from, gone_until in away:
        parts = [
            part
            for start, end in left
            for part in ((start, min(end, gone_from)), (max(start, gone_until), end))
        ]
        left = [(start, end) for start, end in parts if start < end]
    return left


def known_zone(name: str) -> ZoneInfo | None:
    """The IANA zone of that name, or None."""
    try:
        return ZoneInfo(name) if name in zone_names() else None
    except (ZoneInfoNotFoundError, ValueError):
        return None


@cache
def zone_names() -> tuple[str, ...]:
    """The zones from which people choose: places, and UTC; none of the old names without a place."""
    return ("UTC", *sorted(name for name in available_timezones() if "/" in name and _is_a_place(name)))


def _is_a_place(name: str) -> bool:
    return name.partition("/")[0] not in ("Etc", "SystemV", "US", "posix", "right")


def instant_of(local: datetime, zone: ZoneInfo) -> datetime | None:
    """The instant of a clock's reading in a zone; None for one that the clock skips. Of two, the earlier one."""
    instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    return instant if instant.astimezone(zone).replace(tzinfo=None) == local else None
