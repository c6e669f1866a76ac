"""A database that is away for the moment: gone, being restarted, read-only, full, or too busy to give a lock in time.

Nothing of the product is wrong then, and nothing was done. Whoever asked is told to come back, and whoever works
tries again later. One list says which errors mean that, for pages, API, workers and sweep.
"""

import threading
import time
from typing import Final

from django.db import InterfaceError, InternalError, OperationalError, connections

AWAY: Final = (OperationalError, InterfaceError, InternalError)
"""What Django raises then. A read-only database is an InternalError, a full disk an OperationalError."""
REMEMBERED_S: Final = 10.0
"""For how long a refused write counts against this process's readiness."""

_CANNOT_WRITE: Final = {"25006": "read only", "53100": "disk full", "53200": "out of memory"}


class _LastRefusal:
    """The reason for which the database last refused to write, and when."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason, self._at = "", 0.0

    def note(self, reason: str) -> None:
        with self._lock:
            self._reason, self._at = reason, time.monotonic()

    def reason(self) -> str:
        with self._lock:
            return self._reason if time.monotonic() - self._at < REMEMBERED_S else ""


_last: Final = _LastRefusal()


def is_away(error: BaseException | None) -> bool:
    """Whether the error says that the database is away, rather than that something is wrong with us."""
    return isinstance(error, AWAY)


def cannot_write(error: BaseException) -> str:
    """Why the database writes nothing, if that is what the error says: ``read only``, ``disk full``; else empty."""
    return _CANNOT_WRITE.get(getattr(error.__cause__, "sqlstate", None) or "", "")


def note(error: BaseException) -> None:
    """Remember a write that was refused, for `refused_lately`."""
    reason = cannot_write(error)
    if reason:
        _last.note(reason)


def refused_lately() -> str:
    """Why a write of this process was refused in the last seconds; empty when none was."""
    return _last.reason()


def drop_failed_connection() -> None:
    """After a piece of work: close a connection on which a statement failed, so that the next piece gets a new one.

    A session keeps what was true when it began: one that began on a read-only database stays read-only, and looks
    healthy, when the database has long been writable again.
    """
    for one in connections.all(initialized_only=True):
        if one.errors_occurred and not one.in_atomic_block:
            one.close()
