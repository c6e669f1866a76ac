"""Two real workers, a real sweep, a real provider: killed workers and a broker that is emptied, stopped and started.

``PLACET_E2E_REFUNDS`` says how many refunds the first test makes (300); the others make a part of that.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from kombu import Connection

from common.broker_line import BrokerLine
from common.doorbell import doorbell
from config.celery import app
from launch.valkey import Valkey
from tests.e2e.fleet import Fleet, eventually
from workflows.doorbell import WORK, ring
from workflows.models import Attempt, Command, Run

pytestmark = pytest.mark.django_db
REFUNDS = int(os.environ.get("PLACET_E2E_REFUNDS", "300"))


def confirmed() -> int:
    return Command.objects.filter(status="confirmed").count()


def test_three_hundred_refunds_while_workers_are_killed(fleet: Fleet) -> None:
    """No key with two effects, none lost, all confirmed, at a provider that knows no keys.

    The workers are killed wherever they happen to be; the sweep, which looks rarely here, finds what they left.
    """
    commands = fleet.approve(REFUNDS)
    fleet.start_worker()
    fleet.start_worker()
    eventually(lambda: confirmed() > 0, seconds=60, between=ring)
    fleet.processes.sweep("--every", "5")
    kills = [REFUNDS * part // 8 for part in range(1, 8)]

    def ring_and_kill_now_and_then() -> None:
        ring()
        if kills and confirmed() >= kills[0]:
            kills.pop(0)
            fleet.kill_a_worker()

    fleet.wait_until_ended(commands, seconds=150, between=ring_and_kill_now_and_then)
    fleet.each_took_effect_once(commands)
    assert len(set(Attempt.objects.values_list("worker", flat=True))) > 2
    assert kills == []
    eventually(lambda: set(Run.objects.values_list("status", flat=True)) == {"completed"}, seconds=30)


def test_the_sweep_alone_executes_without_a_broker(fleet: Fleet) -> None:
    fleet.processes.env["REDIS_URL"] = "redis+socket:///nowhere/at/all.sock?virtual_host=0"
    commands = fleet.approve(REFUNDS // 10)
    fleet.processes.sweep("--every", "0.2")
    fleet.wait_until_ended(commands, seconds=60, between=bool)
    fleet.each_took_effect_once(commands)


# -- a broker that may be emptied, stopped and started ------------------------------------------------------------


@pytest.fixture
def broker(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Valkey]:
    """A Valkey of this test's own, which its processes use, and which this process rings too."""
    valkey = Valkey(tmp_path / "broker", durable=False)
    valkey.start()
    fleet.processes.env["REDIS_URL"] = valkey.url()

    def publish(task: str) -> None:
        options = {"socket_timeout": 2, "socket_connect_timeout": 2}
        with Connection(valkey.url(), transport_options=options) as connection:
            app.send_task(task, connection=connection, ignore_result=True, retry=False)

    def connect() -> redis.UnixDomainSocketConnection:
        connection = redis.UnixDomainSocketConnection(path=str(valkey.socket), socket_timeout=2)
        connection.connect()
        return connection

    monkeypatch.setattr(doorbell, "_publish", publish)
    monkeypatch.setattr(doorbell, "_line", BrokerLine(connect))
    yield valkey
    valkey.stop()


def flush(broker: Valkey) -> None:
    with redis.Redis(unix_socket_path=str(broker.socket)) as client:
        client.flushall()


def test_a_ring_wakes_a_worker_without_any_sweep(fleet: Fleet, broker: Valkey) -> None:
    fleet.start_worker()
    eventually(lambda: " ready." in fleet.processes.log("worker"), seconds=60)
    commands = fleet.approve(3)
    fleet.wait_until_ended(commands, seconds=30, between=bool)
    fleet.each_took_effect_once(commands)


def test_so_does_a_message_that_left_at_once(
    fleet: Fleet, broker: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.start_worker()
    eventually(lambda: " ready." in fleet.processes.log("worker"), seconds=60)
    assert doorbell._line is not None
    doorbell._line.prepare(WORK)
    monkeypatch.setattr(doorbell, "_publish", lambda task: None)
    commands = fleet.approve(3)
    fleet.wait_until_ended(commands, seconds=30, between=ring)
    fleet.each_took_effect_once(commands)


def test_the_broker_is_emptied_stopped_and_started_in_the_middle(fleet: Fleet, broker: Valkey) -> None:
    """Everything that was approved is still executed, by whatever comes to life again; nothing twice."""
    part = max(3, REFUNDS // 10)
    fleet.processes.sweep("--every", "0.5")
    fleet.start_worker()
    fleet.start_worker()
    commands: list[Any] = []

    def approve_more() -> None:
        commands.extend(fleet.approve(part))

    approve_more()
    for _ in range(5):
        flush(broker)
        time.sleep(0.1)
    approve_more()
    broker.stop()
    approve_more()  # the approvals do not wait for it, and do not fail
    fleet.wait_until_ended(commands, seconds=60, between=bool)
    broker.start()
    approve_more()
    fleet.wait_until_ended(commands, seconds=60, between=fleet.replace_ended_workers)
    fleet.each_took_effect_once(commands)
