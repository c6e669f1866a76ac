"""The doorbell: tells workers through the broker that there may be work. A hint, never the truth.

A request never waits for the broker: its message leaves at once where that needs no waiting (`BrokerLine`), else a
thread publishes it. Many rings in a short time become one message. A broker that hangs or is gone costs nothing but the
time until the sweep looks by itself.
"""

import os
import threading
import time
from collections.abc import Callable

import structlog

from common.broker_line import BrokerLine

log = structlog.get_logger(__name__)

COALESCE_S = 0.005
"""Rings within this time after a message become one more."""


class Doorbell:
    """Tells workers of tasks by name. ``publish`` may block or raise: a thread of its own calls it, and nobody waits.

    With a ``line`` most messages need no thread.
    """

    _thread: threading.Thread | None

    def __init__(self, publish: Callable[[str], None], line: BrokerLine | None = None) -> None:
        self._publish = publish
        self._line = line
        self._begin()

    def ring(self, task: str) -> None:
        """Ask for ``task`` to be run by a worker soon. Returns at once, never raises."""
        with self._wake:
            if not self._waiting and self._is_quiet() and self._sent_at_once(task):
                return
            self._waiting.add(task)
            # Made on the first such ring, so that it belongs to the process after a fork and not to its parent.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="doorbell", daemon=True)
                self._thread.start()
            self._wake.notify()

    def forget_parent(self) -> None:
        """After a fork: thread and line stayed with the parent, and a lock may have been held at that moment."""
        self._begin()
        if self._line is not None:
            self._line.forget_parent()

    def _begin(self) -> None:
        self._waiting: set[str] = set()
        self._wake = threading.Condition()
        self._thread = None
        self._last = float("-inf")

    def _is_quiet(self) -> bool:
        """One ring alone is heard at once, and of a burst the rest is one more."""
        return time.monotonic() - self._last >= COALESCE_S

    def _sent_at_once(self, task: str) -> bool:
        if self._line is None or not self._line.send(task):
            return False
        self._last = time.monotonic()
        return True

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._waiting:
                    self._wake.wait()
            time.sleep(max(0.0, self._last + COALESCE_S - time.monotonic()))
            with self._wake:
                tasks, self._waiting = self._waiting, set()
            for task in sorted(tasks):
                self._try(task)
            self._last = time.monotonic()

    def _try(self, task: str) -> None:
        try:
            if not self._sent_at_once(task):
                self._publish(task)
                if self._line is not None:
                    self._line.prepare(task)
        except Exception as error:  # noqa: BLE001 - whatever the broker's client raises, the sweep will look
            log.warning("doorbell_not_heard", task=task, error=type(error).__name__)


def _publish(task: str) -> None:
    from celery import current_app  # noqa: PLC0415 - the app is configured by then

    current_app.send_task(task, ignore_result=True, retry=False)


doorbell = Doorbell(_publish, BrokerLine())
os.register_at_fork(after_in_child=doorbell.forget_parent)
