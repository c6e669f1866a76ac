"""A connection to the broker on which a message leaves at once, and nobody waits for an answer.

Celery's own way to publish makes each message from nothing, and waits until the broker has said that it took it. Here
Celery has made the message beforehand, and the operating system takes its few hundred bytes whatever the broker does:
they are written only while all earlier ones have been answered, so that nothing lies before them (docs/adr/0044).
"""

import json
import threading
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

import redis

_PLACE: Final = str(uuid4())
"""Stands in a prepared message where each one has an id of its own."""


def _connect() -> Any:
    """By the address, the secrets and the time limits that Celery uses."""
    from celery import current_app  # noqa: PLC0415 - the app is configured by then

    with current_app.connection_for_write() as broker:
        connection = broker.default_channel.pool.get_connection()
    connection.connect()  # Celery's pool, which is not needed any more, has closed it
    return connection


class BrokerLine:
    """One connection of this process, and the messages that may leave on it. What gets lost is lost: it was a hint."""

    def __init__(self, connect: Callable[[], Any] = _connect) -> None:
        self._connect = connect
        self.forget_parent()

    def forget_parent(self) -> None:
        """After a fork: the connection is the parent's, and its lock may have been held at that moment."""
        self._lock = threading.Lock()
        self._connection: Any = None
        self._unanswered = False
        self._messages: dict[str, tuple[str, str]] = {}

    def send(self, task: str) -> bool:
        """Whether the message has left. Never waits, never raises; after False it may be published in another way."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return self._send(task)
        except (redis.RedisError, OSError):
            self._close()
            return False
        finally:
            self._lock.release()

    def prepare(self, task: str) -> None:
        """Make ready for `send` what is not. Waits for the broker; raises what its client raises."""
        with self._lock:
            try:
                self._settle()
                if self._connection is None:
                    self._connection = self._connect()
            except BaseException:
                self._close()
                raise
            if task not in self._messages:
                self._messages[task] = _made_by_celery(task)

    def _send(self, task: str) -> bool:
        if self._connection is None or task not in self._messages or not self._is_free():
            return False
        queue, message = self._messages[task]
        text = message.replace(_PLACE, str(uuid4()))
        self._connection.send_packed_command(self._connection.pack_command("LPUSH", queue, text))
        self._unanswered = True
        return True

    def _is_free(self) -> bool:
        """Whether everything was answered. Raises when the broker has closed the connection."""
        if self._connection.can_read(timeout=0):
            if not self._unanswered:
                raise redis.ConnectionError("The broker said something that nobody asked.")
            self._settle()
        return not self._unanswered

    def _settle(self) -> None:
        if self._connection is not None and self._unanswered:
            self._connection.read_response()
            self._unanswered = False

    def _close(self) -> None:
        connection, self._connection, self._unanswered = self._connection, None, False
        if connection is not None:
            connection.disconnect()


def _made_by_celery(task: str) -> tuple[str, str]:
    """The queue, and what Celery puts there for this task: caught in a broker that is no more than memory."""
    from celery import current_app  # noqa: PLC0415

    with current_app.connection_for_write("memory://") as memory:
        current_app.send_task(task, task_id=_PLACE, ignore_result=True, retry=False, connection=memory)
        queue = current_app.conf.task_default_queue
        message = memory.default_channel.queues[queue].get_nowait()
    message["properties"]["delivery_tag"] = _PLACE
    return queue, json.dumps(message)
