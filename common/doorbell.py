"""The doorbell: tells workers through the broker that there may be work. A hint, never the truth.

One thread per process publishes, and many rings in a short time become one message, so that a request never waits for
the broker: a broker that hangs or is gone costs nothing but the time until the sweep looks by itself.
"""

import os
import threading
import time
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)

COALESCE_S = 0.005
"""Rings within this time after a message become one more."""


class Doorbell:
    """Publishes task names from a thread of its own. ``publish`` may block or raise; nobody waits for it."""

    def __init__(self, publish: Callable[[str], None]) -> None:
        self._publish = publish
        self._waiting: set[str] = set()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None

    def ring(self, task: str) -> None:
        """Ask for ``task`` to be run by a worker soon. Returns at once, never raises."""
        with self._wake:
            self._waiting.add(task)
            # Made on the first ring, so that it belongs to the process after a fork and not to its parent.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="doorbell", daemon=True)
                self._thread.start()
            self._wake.notify()

    def forget_parent(self) -> None:
        """After a fork: the thread stayed with the parent, and the lock may have been held by it at that moment."""
        self._waiting, self._wake, self._thread = set(), threading.Condition(), None

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._waiting:
                    self._wake.wait()
                tasks, self._waiting = self._waiting, set()
            for task in sorted(tasks):
                self._try(task)
            # After the first ring and not before it: one alone is heard at once, and of a burst the rest is one more.
            time.sleep(COALESCE_S)

    def _try(self, task: str) -> None:
        try:
            self._publish(task)
        except Exception as error:  # noqa: BLE001 - whatever the broker's client raises, the sweep will look
            log.warning("doorbell_not_heard", task=task, error=type(error).__name__)


def _publish(task: str) -> None:
    from celery import current_app  # noqa: PLC0415 - the app is configured by then

    current_app.send_task(task, ignore_result=True, retry=False)


doorbell = Doorbell(_publish)
os.register_at_fork(after_in_child=doorbell.forget_parent)
