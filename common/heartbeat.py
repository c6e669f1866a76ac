"""Signs of life: each process writes every few seconds that it still works, beside its work and never within it.

A sign is written where a round of work has ended, so it says that work is done, and not only that a process exists.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from django.db import Error, connection

from common import content_keys

log = structlog.get_logger(__name__)

EVERY_S: Final = 5.0
"""One process writes its sign at most so often."""
FORGOTTEN_AFTER_S: Final = 86_400
"""Signs of processes that are gone for longer are removed when one of the same kind starts."""

_WRITE: Final = """
    INSERT INTO common_heartbeat (kind, name, knows, keys, started_at, seen_at)
    VALUES (%s, %s, %s::jsonb, %s::jsonb, clock_timestamp(), clock_timestamp())
    ON CONFLICT (kind, name) DO UPDATE
    SET knows = excluded.knows, keys = excluded.keys, seen_at = excluded.seen_at
"""
_FORGET: Final = """
    DELETE FROM common_heartbeat
    WHERE kind = %s AND name <> %s AND seen_at < clock_timestamp() - make_interval(secs => %s)
"""


def process_name() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"[:120]


class Pulse:
    """The signs of one process; kinds are few words of the program, such as *sweep*."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.after_fork()

    def after_fork(self) -> None:
        """A child has signs of its own, under its own name."""
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}
        self._written: set[str] = set()

    def beat(self, kind: str, knows: Sequence[str] = ()) -> bool:
        """Write the sign if the last one is some seconds old; whether it was written.

        Never raises for the database's sake: whoever calls has work to do that matters more. Inside a transaction it
        writes nothing, so it neither delays one nor disappears with it.
        """
        if connection.in_atomic_block or not self._due(kind):
            return False
        try:
            return self._write(kind, list(knows))
        except Error as error:
            log.warning("heartbeat_not_written", kind=kind, error=type(error).__name__)
            connection.close()
            return False

    def _due(self, kind: str) -> bool:
        with self._lock:
            now = self._clock()
            if now - self._last.get(kind, float("-inf")) < EVERY_S:
                return False
            self._first = kind not in self._last
            self._last[kind] = now
            return True

    def _write(self, kind: str, knows: list[str]) -> bool:
        with connection.cursor() as cursor:
            keys = json.dumps(content_keys.names_or_none())
            cursor.execute(_WRITE, [kind, process_name(), json.dumps(knows), keys])
            if self._first:
                cursor.execute(_FORGET, [kind, process_name(), FORGOTTEN_AFTER_S])
        return True


pulse: Final = Pulse()
os.register_at_fork(after_in_child=pulse.after_fork)
beat = pulse.beat


def note(kind: str, name: str) -> None:
    """Write down that something was done now, such as a backup. Raises when it cannot be written."""
    with connection.cursor() as cursor:
        cursor.execute(_WRITE, [kind, name[:120], "[]", "[]"])
