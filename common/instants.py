"""Instants on their way into the database and back: whatever zone was written, PostgreSQL gets and gives them in UTC.

Python reads offsets of up to a day, PostgreSQL takes less than sixteen hours, and a time of the year 9999 in one zone
may be of no year in another. What comes in an address or a body is somebody else's text, and must not end in an error.
"""

from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from psycopg.types.datetime import DatetimeBinaryDumper, DatetimeDumper, TimestamptzLoader

FIRST: Final = datetime.min.replace(tzinfo=UTC)
LAST: Final = datetime.max.replace(tzinfo=UTC)


def in_utc(value: datetime) -> datetime:
    """The same instant in UTC; the first or the last one there is, where UTC has none for it. Needs a zone."""
    try:
        return value.astimezone(UTC)
    except OverflowError:
        return LAST if value.year > 1 else FIRST


class UtcDumper(DatetimeDumper):
    def dump(self, obj: datetime) -> Any:
        return super().dump(in_utc(obj) if obj.tzinfo else obj)


class UtcBinaryDumper(DatetimeBinaryDumper):
    def dump(self, obj: datetime) -> Any:
        return super().dump(in_utc(obj) if obj.tzinfo else obj)


class InstantLoader(TimestamptzLoader):
    """As Django's own, by Python's quick reader of such texts. What that cannot read, the driver reads or refuses."""

    timezone = UTC
    """Django compares it with what it wants for its own cursors of the same connection."""

    def load(self, data: Any) -> datetime:
        try:
            return in_utc(datetime.fromisoformat(str(data, "ascii")))
        except ValueError:
            return in_utc(super().load(data))


def register() -> None:
    """For every connection that is made from now on: Django copies psycopg's adapters when it makes its first."""
    psycopg.adapters.register_dumper(datetime, UtcDumper)
    psycopg.adapters.register_dumper(
        datetime, UtcBinaryDumper
    )  # last, as psycopg does: what a plain %s takes
