"""One thread of each web process reads for all its open pages, while there are any.

It looks by itself rather than be told by ``NOTIFY``: that takes a lock which all commits share, so the price would be
paid by each decision. A look at a quiet time is one statement on an index. Where it is not allowed to run in a thread
(``PLACET_PULSE_S`` is 0), whoever asks looks first.
"""

import os
import threading
import time
from typing import Final

import structlog
from django.conf import settings
from django.db import Error, connections

from approvals.pulse import reading
from approvals.pulse.memory import Memory, memory
from approvals.pulse.places import opened

log = structlog.get_logger(__name__)

CHECK_S: Final = 2.0
"""Sessions are looked at this often: for so long somebody who has lost theirs may still be told who decided what."""
QUIET_S: Final = 60.0
"""Nobody has asked for so long: the thread and its connection end until somebody does."""
PATIENCE_S: Final = 2.0
"""Between two looks at a database that is away."""


class Listener:
    """Keeps a `Memory` up to date."""

    def __init__(self, of: Memory) -> None:
        self.memory = of
        self._asked = self._checked = float("-inf")
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._back = threading.Lock()

    def attend(self) -> None:
        """Somebody asks: from now on the memory is kept fresh for a while."""
        self._asked = time.monotonic()
        if settings.PLACET_PULSE_S <= 0:
            self._look()
        elif self._thread is None or not self._thread.is_alive():
            with self._starting:
                if self._thread is None or not self._thread.is_alive():
                    self._look()  # the first answer is not made of nothing
                    self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
                    self._thread.start()

    def reach_back(self, cursor: str) -> None:
        """Read what a page has missed that knew a place from before this process did; one page at a time."""
        since = opened(cursor.partition(".")[0])
        if 0 < since < self.memory.floor and self._back.acquire(blocking=False):
            try:
                reading.look_back(self.memory, since)
            except Error as error:
                log.warning("pulse_cannot_look_back", error=type(error).__name__)
            finally:
                self._back.release()

    def after_fork(self) -> None:
        """The thread stayed with the parent."""
        self._thread, self._starting, self._back = None, threading.Lock(), threading.Lock()

    def _run(self) -> None:
        try:
            while time.monotonic() - self._asked < QUIET_S:
                time.sleep(settings.PLACET_PULSE_S if self._look() else PATIENCE_S)
        finally:
            connections.close_all()

    def _look(self) -> bool:
        try:
            reading.look(self.memory)
            if time.monotonic() - self._checked >= CHECK_S or settings.PLACET_PULSE_S <= 0:
                reading.check_sessions(self.memory, QUIET_S)
                self._checked = time.monotonic()
        except Error as error:
            log.warning("pulse_cannot_look", error=type(error).__name__)
            if threading.current_thread() is self._thread:
                connections.close_all()
            return False
        return True


listener: Final = Listener(memory)
os.register_at_fork(after_in_child=listener.after_fork)
