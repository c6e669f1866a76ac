"""Lengths of time, shares, days, and times that belong to a place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Final
from zoneinfo import ZoneInfo, available_timezones

from common.fields.base import ArgumentType, Rendered, need_text, refuse
from common.fields.instants import InstantType
from common.fields.scalars import DecimalType, IntegerType, grouped_digits
from common.strictjson import JsonValue

_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_ZONED: Final = re.compile(r"(.+ UTC), ([A-Za-z0-9_+/-]+)", re.ASCII)
MAX_SECONDS: Final = 10**10


@dataclass(frozen=True)
class DurationType(ArgumentType):
    """A length of time in whole seconds. Days here are of 24 hours; a calendar's days are dates."""

    name: ClassVar[str] = "duration"

    def normalize(self, value: Any) -> int:
        return IntegerType(minimum=0, maximum=MAX_SECONDS).normalize(value)

    def json_schema(self) -> dict[str, Any]:
        return IntegerType(minimum=0, maximum=MAX_SECONDS).json_schema()

    def render(self, value: int, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(f"{value:,} s", (_in_units(value),))

    def parse(self, text: str) -> int:
        number, _, unit = text.rpartition(" ")
        if unit != "s":
            raise ValueError("The text shows no length of time.")
        return IntegerType().parse(number)


def _in_units(seconds: int) -> str:
    said = []
    for size, word in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            said.append(f"{count:,} {word}{'' if count == 1 else 's'}")
    return " ".join(said) or "no time at all"


@dataclass(frozen=True)
class PercentageType(ArgumentType):
    """A share in hundredths, as an exact decimal: "12.5" is 12.5 %, and 0.125 is another share."""

    name: ClassVar[str] = "percentage"

    def normalize(self, value: Any) -> str:
        return DecimalType().normalize(value)

    def json_schema(self) -> dict[str, Any]:
        return DecimalType().json_schema()

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(f"{grouped_digits(value)} %")

    def parse(self, text: str) -> JsonValue:
        number, _, sign = text.rpartition(" ")
        if sign != "%":
            raise ValueError("The text shows no percentage.")
        return DecimalType().parse(number)


@dataclass(frozen=True)
class DateType(ArgumentType):
    """A day of the calendar, wherever somebody is."""

    name: ClassVar[str] = "date"

    def normalize(self, value: Any) -> str:
        text = need_text(value)
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
            refuse("date_format", "A day looks like 2026-10-25.")
        try:
            return date.fromisoformat(text).isoformat()
        except ValueError:
            refuse("date_value", "There is no such day.")

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "date"}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(value, (f"{date.fromisoformat(value):%A}",))

    def parse(self, text: str) -> str:
        return text


@dataclass(frozen=True)
class ZonedTimeType(ArgumentType):
    """An instant, and the zone whose clock it was meant by: the instant counts, the clock is shown beside it."""

    name: ClassVar[str] = "zoned-time"

    def normalize(self, value: Any) -> JsonValue:
        if not isinstance(value, dict) or set(value) != {"at", "zone"}:
            refuse("zoned_time_format", "A time of a place is given as at and zone.")
        zone = need_text(value["zone"])
        if zone not in available_timezones():
            refuse("zone_unknown", "The zone is none of the time zone database, such as Europe/Berlin.")
        return {"at": InstantType().normalize(value["at"]), "zone": zone}

    def json_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"at": InstantType().json_schema(), "zone": {"type": "string"}},
            "required": ["at", "zone"],
            "additionalProperties": False,
        }

    def render(self, value: dict[str, str], siblings: Mapping[str, Any]) -> Rendered:
        shown = InstantType().render(value["at"], siblings)
        return Rendered(f"{shown.text}, {value['zone']}", _there(value), instant=shown.instant)

    def parse(self, text: str) -> JsonValue:
        found = _ZONED.fullmatch(text)
        if found is None:
            raise ValueError("The text shows no time of a place.")
        return {"at": InstantType().parse(found[1]), "zone": found[2]}


def _there(value: dict[str, str]) -> tuple[str, ...]:
    """What the clock says there; nothing for years that no clock has."""
    try:
        there = datetime.fromisoformat(value["at"]).astimezone(ZoneInfo(value["zone"]))
    except (ValueError, OverflowError):
        return ()
    return (f"{there:%A, %Y-%m-%d %H:%M:%S} there ({there:%z})",)


Duration = Annotated[int, DurationType()]
Percentage = Annotated[str, PercentageType()]
Date = Annotated[str, DateType()]
ZonedTime = Annotated[dict[str, str], ZonedTimeType()]
