"""Messages that leave at once: the same as Celery's own, and neither a broker that hangs nor a fork is in their way."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import current_app
from django.conf import settings
from kombu import Connection

from common.broker_line import BrokerLine
from common.doorbell import Doorbell
from launch.valkey import Valkey
from tests.e2e.fleet import eventually

TASK = "tests.nothing"
QUEUE = settings.CELERY_TASK_DEFAULT_QUEUE


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Valkey]:
    """One of this test's own, which may be stopped and started."""
    valkey = Valkey(tmp_path, durable=False)
    valkey.start()
    yield valkey
    assert valkey.process is not None
    valkey.process.send_signal(signal.SIGCONT)
    valkey.stop()


class Published:
    """Celery's own way to that broker."""

    def __init__(self, broker: Valkey) -> None:
        self.broker, self.times = broker, 0

    def __call__(self, task: str) -> None:
        options = {"socket_timeout": 0.5, "socket_connect_timeout": 0.5}
        with Connection(self.broker.url(), transport_options=options) as connection:
            current_app.send_task(task, connection=connection, ignore_result=True, retry=False)
        self.times += 1


def a_line(broker: Valkey) -> BrokerLine:
    def connect() -> Any:
        pool = redis.ConnectionPool(
            connection_class=redis.UnixDomainSocketConnection, path=str(broker.socket), socket_timeout=0.5
        )
        return pool.get_connection()

    return BrokerLine(connect)


def messages(broker: Valkey) -> list[dict[str, Any]]:
    """Oldest first."""
    with redis.Redis(unix_socket_path=str(broker.socket), socket_timeout=5) as client:
        return [json.loads(text) for text in reversed(client.lrange(QUEUE, 0, -1))]


def ring_until(bell: Doorbell, done: Callable[[], bool]) -> None:
    def rung() -> bool:
        bell.ring(TASK)
        return done()

    eventually(rung, seconds=20)


def open_line(broker: Valkey) -> BrokerLine:
    line = a_line(broker)
    line.prepare(TASK)
    return line


def test_it_sends_what_celery_would_and_each_time_under_another_id(broker: Valkey) -> None:
    line = open_line(broker)
    Published(broker)(TASK)
    assert line.send(TASK)
    eventually(lambda: line.send(TASK), seconds=5)
    eventually(lambda: len(messages(broker)) == 3, seconds=5)
    by_celery, first, second = messages(broker)
    ids = [{message["headers"]["id"], message["properties"]["delivery_tag"]} for message in (first, second)]
    assert not ids[0] & ids[1]
    for message in (by_celery, first):
        assert message["headers"]["id"] == message["headers"]["root_id"]
        assert message["headers"]["id"] == message["properties"]["correlation_id"]
        for part, names in (
            ("headers", ("id", "root_id")),
            ("properties", ("correlation_id", "delivery_tag")),
        ):
            for name in names:
                del message[part][name]
    assert first == by_celery


def test_until_it_was_made_ready_nothing_leaves(broker: Valkey) -> None:
    line = a_line(broker)
    assert not line.send(TASK)
    line.prepare("tests.another")
    assert not line.send(TASK)
    assert messages(broker) == []


def test_it_uses_the_address_and_time_limits_of_celery() -> None:
    line = BrokerLine()
    line.prepare(TASK)
    connection = line._connection
    assert connection.is_connected
    assert connection.socket_timeout == settings.CELERY_BROKER_TRANSPORT_OPTIONS["socket_timeout"]
    assert str(connection.path) in settings.CELERY_BROKER_URL
    connection.disconnect()


def test_after_the_first_ring_no_thread_and_no_celery_are_needed(broker: Valkey) -> None:
    published, line = Published(broker), a_line(broker)
    bell = Doorbell(published, line)
    bell.ring(TASK)
    eventually(lambda: line._connection is not None and TASK in line._messages, seconds=5)
    ring_until(bell, lambda: len(messages(broker)) >= 5)
    assert published.times == 1


def test_a_burst_is_heard_at_once_and_once_more(broker: Valkey) -> None:
    line, published = open_line(broker), Published(broker)
    bell = Doorbell(published, line)
    for _ in range(1000):
        bell.ring(TASK)
    eventually(lambda: not bell._waiting, seconds=5)
    assert 1 <= len(messages(broker)) < 100
    assert published.times < 100


def test_a_broker_that_hangs_delays_nobody_and_hears_later_rings(broker: Valkey) -> None:
    line, published = open_line(broker), Published(broker)
    bell, process = Doorbell(published, line), broker.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    rung = threading.Thread(target=lambda: [bell.ring(TASK) for _ in range(500)])
    rung.start()
    rung.join(10)
    assert not rung.is_alive()
    process.send_signal(signal.SIGCONT)
    eventually(lambda: bool(messages(broker)), seconds=10)
    before = len(messages(broker))
    ring_until(bell, lambda: len(messages(broker)) > before)


def test_only_one_message_is_under_way_to_a_broker_that_does_not_answer(broker: Valkey) -> None:
    """So that the system always has room for it, and whoever rings never waits."""
    line, process = open_line(broker), broker.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    assert [line.send(TASK) for _ in range(3)] == [True, False, False]
    process.send_signal(signal.SIGCONT)
    eventually(lambda: line.send(TASK), seconds=5)


def test_a_broker_that_was_started_anew_is_heard_of_by_the_next_ring(broker: Valkey) -> None:
    """The end of the connection is noticed before a message would be written to nobody."""
    line, published = open_line(broker), Published(broker)
    bell = Doorbell(published, line)
    broker.stop()
    broker.start()
    assert not line.send(TASK)
    bell.ring(TASK)
    eventually(lambda: len(messages(broker)) == 1, seconds=10)
    eventually(lambda: line._connection is not None, seconds=10)
    assert line.send(TASK)


def test_a_broker_that_refuses_is_left_to_celery(broker: Valkey) -> None:
    line = open_line(broker)
    with redis.Redis(unix_socket_path=str(broker.socket)) as client:
        client.config_set("maxmemory", "1")
        assert line.send(TASK)
        eventually(lambda: line._connection.can_read(timeout=0), seconds=5)
        assert not line.send(TASK)
        assert line._connection is None
        client.config_set("maxmemory", "0")
    line.prepare(TASK)
    assert line.send(TASK)


def test_a_forked_process_gets_a_line_of_its_own(broker: Valkey) -> None:
    """The parent's stays as it was: neither shut nor written to by another process."""
    line, published = open_line(broker), Published(broker)
    bell = Doorbell(published, line)
    child = os.fork()
    if child == 0:
        bell.forget_parent()
        os._exit(0 if line._connection is None and not line.send(TASK) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    bell.ring(TASK)
    eventually(lambda: len(messages(broker)) == 1, seconds=5)
    assert published.times == 0
