"""Clocks. An action takes a callable, never an instant, because time must be read *after* the row lock."""

from collections.abc import Callable
from datetime import datetime

from django.db import connection

Clock = Callable[[], datetime]


def db_clock() -> datetime:
    """The database's wall clock, read by a statement of its own.

    ``now()`` is frozen at the start of the transaction, and ``clock_timestamp()`` inside the statement that waits
    for a lock is evaluated before the wait: both would approve after expiry.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    return row[0]  # type: ignore[no-any-return]
