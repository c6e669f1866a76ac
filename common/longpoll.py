"""Waiting for a change on behalf of a client, within limits that keep the web server's threads free.

A waiting request holds a thread of its process and no transaction. Only a few may wait at a time in one process;
the others are answered at once, which a client cannot tell from a wait that was over.
"""

import threading
import time
from collections.abc import Callable
from typing import Annotated, Final

from django.conf import settings
from ninja import Query

from common.dbroles import end_reading

LONGEST_S: Final = 30.0
"""A longer wait is cut to this."""
POLL_S: Final = 0.2

# The query parameters of a route that waits.
Wait = Annotated[
    float, Query(ge=0, allow_inf_nan=False, description="Seconds to wait for a change; 30 at most.")
]
Since = Annotated[int | None, Query(description="The state_version that the caller knows.")]


class Waiters:
    """How many requests of this process wait now, and how many may."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.present = 0
        self._lock = threading.Lock()

    def enter(self) -> bool:
        """Take a place; False where none is free."""
        with self._lock:
            if self.present >= self.most:
                return False
            self.present += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self.present -= 1


waiters: Final = Waiters(settings.PLACET_LONG_POLLS)


def wait_until(changed: Callable[[], bool], seconds: float, *, places: Waiters = waiters) -> None:
    """Return when ``changed`` says so, when ``seconds`` are over, or at once where no place is free.

    ``changed`` is one small query of its own: it must not be called inside a transaction, which would not see what
    others commit.
    """
    seconds = min(seconds, LONGEST_S)
    if seconds <= 0 or changed() or not places.enter():
        return
    try:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            end_reading()
            time.sleep(min(POLL_S, left))
            if changed():
                return
    finally:
        places.leave()
