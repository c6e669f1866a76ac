"""Points in time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any, ClassVar, Final

from common.fields.base import ArgumentType, Rendered, need_text, refuse

_RFC3339: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_SHOWN: Final = re.compile(r"([0-9-]{10}) ([0-9:]{8}(?:\.[0-9]+)?) UTC", re.ASCII)


@dataclass(frozen=True)
class InstantType(ArgumentType):
    """An RFC 3339 time with its offset, spelled in UTC. Without an offset it can name two instants."""

    name: ClassVar[str] = "datetime"

    def normalize(self, value: Any) -> str:
        found = _RFC3339.fullmatch(need_text(value))
        if found is None:
            refuse("datetime_format", "A time looks like 2026-10-25T00:30:00Z, with its offset from UTC.")
        written, fraction, zone = found.groups(default="")
        if zone == "-00:00":
            refuse("datetime_unknown_offset", "The offset -00:00 means that the offset is not known.")
        if len(fraction.rstrip("0")) > 6:
            refuse("datetime_value", "A time is kept to the microsecond.")
        return _in_utc(written, zone) + _fraction(fraction) + "Z"

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "date-time"}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(value.replace("T", " ").replace("Z", " UTC"), instant=value)

    def parse(self, text: str) -> str:
        found = _SHOWN.fullmatch(text)
        if found is None:
            raise ValueError("The text shows no instant.")
        return f"{found[1]}T{found[2]}Z"


def _in_utc(written: str, zone: str) -> str:
    """The whole seconds in UTC. The fraction stays outside: an offset cannot change it."""
    try:
        local = datetime.strptime(written, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=_zone(zone))
        return local.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S").zfill(19)
    except (ValueError, OverflowError):
        refuse("datetime_value", "There is no such time.")


def _zone(zone: str) -> timezone:
    if zone == "Z":
        return UTC
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError("The offset is out of range.")
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if zone[0] == "-" else offset)


def _fraction(digits: str) -> str:
    kept = digits.rstrip("0")
    return f".{kept}" if kept else ""


Instant = Annotated[str, InstantType()]
