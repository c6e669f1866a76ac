"""Told to stop: what is in flight is finished and stored, what was only claimed is given back, and nothing begins."""

import os
import signal
from collections import Counter
from datetime import timedelta
from subprocess import Popen

import pytest
from django.db.models.functions import Now

from common import crashpoints
from common.clock import db_clock
from launch.supervisor import GRACE_S
from tests.e2e.fleet import Fleet, eventually
from tests.workflows.later import SWEEP, age
from workflows.doorbell import ring
from workflows.models import Attempt, Command
from workflows.worker import work
from workflows.worker.recover import recover_lost

pytestmark = pytest.mark.django_db
SLOW = {"fault": "delay", "seconds": 2.5}
"""The provider takes its time over each refund, and less than a call's deadline: its answer is worth waiting for."""
MANY = 6


def statuses() -> Counter[str]:
    return Counter(Command.objects.values_list("status", flat=True))


def tell(process: Popen[bytes], whom: str) -> None:
    """SIGTERM as a supervisor sends it, or as one does that ends all processes of a service (systemd)."""
    if whom == "group":
        os.killpg(process.pid, signal.SIGTERM)
    else:
        process.terminate()


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize(("kind", "whom"), [("worker", "parent"), ("worker", "group"), ("sweep", "parent")])
def test_in_flight_is_finished_and_nothing_is_begun(fleet: Fleet, kind: str, whom: str, at_once: int) -> None:
    """Mistake 32: nobody needs to look anything up after a stop that was asked for."""
    fleet.processes.env["PLACET_CALLS_AT_ONCE"] = str(at_once)
    fleet.provider.switch("lookup_only", SLOW)
    commands = fleet.approve(MANY)
    process = fleet.processes.worker() if kind == "worker" else fleet.processes.sweep("--every", "0.2")
    eventually(lambda: statuses()["sent"] == at_once, seconds=90, between=ring)
    tell(process, whom)
    assert process.wait(GRACE_S) == 0  # before a supervisor would kill it
    after = statuses()
    assert set(after) == {"confirmed", "ready"}
    assert after["confirmed"] <= at_once + 1  # those in flight; one more if one ended in the same moment
    assert sum(fleet.effects().values()) == after["confirmed"]
    assert set(Attempt.objects.values_list("outcome", flat=True)) <= {"confirmed", "given_back"}
    fleet.provider.switch("lookup_only")
    fleet.processes.sweep("--every", "0.2")
    fleet.wait_until_ended(commands, seconds=60, between=ring)
    fleet.each_took_effect_once(commands)
    assert set(Command.objects.values_list("settled_by", flat=True)) == {"answer"}


def test_a_sweep_that_asks_a_silent_provider_stops_between_two_questions(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six look-ups of a hanging provider would take longer than any supervisor waits."""
    commands = fleet.approve(MANY)
    for _ in commands:
        monkeypatch.setattr(crashpoints, "_ASKED", "CP5:raise")
        work(limit=1)
    assert statuses() == {"sent": MANY}
    for command in commands:
        age(command.run_id, 60, "workflows_command")
    recover_lost(by=SWEEP, clock=db_clock)
    for command in commands:
        age(command.run_id, 60, "workflows_command")
    fleet.provider.switch(
        "lookup_only", {"fault": "accept_then_hang", "on": "/refunds", "method": "GET", "seconds": 60}
    )
    process = fleet.processes.sweep("--every", "0.2")
    asked = Command.objects.filter(due_at__gt=Now() + timedelta(seconds=30))
    eventually(asked.exists, seconds=90)  # the first question is out, the others are still due
    process.terminate()
    assert process.wait(GRACE_S) == 0
