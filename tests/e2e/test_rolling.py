"""I17: old and new code at once. Each action is executed by code that knows its version, and nothing is lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from subprocess import Popen
from typing import Any

import pytest
from django.test import Client

from approvals.models import Proposal
from common.clock import db_clock
from repair.models import RepairPacket
from tests.e2e.fleet import Fleet, eventually
from tests.workflows.later import age
from workflows import registry
from workflows.doorbell import ring
from workflows.models import Attempt, Command

pytestmark = pytest.mark.django_db


@contextmanager
def new_code(release: str) -> Iterator[None]:
    """This process as one of the new release: it proposes and approves by the new versions."""
    workflows, operations = dict(registry._workflows), dict(registry._operations)
    module = import_module(f"tests.e2e.{release}.flows")
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__ and hasattr(value, "stages"):
            registry.register(value)
    try:
        registry.register_definitions(clock=db_clock)
        yield
    finally:
        registry._workflows.clear()
        registry._workflows.update(workflows)
        registry._operations.clear()
        registry._operations.update(operations)


def sweep_of(fleet: Fleet, release: str) -> Popen[bytes]:
    """A sweep of the old or of the new code; it executes what it knows."""
    fleet.processes.env["DJANGO_SETTINGS_MODULE"] = (
        f"tests.e2e.{release}.settings" if release else "tests.settings"
    )
    return fleet.processes.sweep("--every", "0.2")


def all_are(commands: list[Command], status: str) -> bool:
    found = Command.objects.filter(pk__in=[command.pk for command in commands])
    return set(found.values_list("status", flat=True)) == {status}


def executed_by(commands: list[Command]) -> set[int]:
    """The processes whose attempts confirmed them."""
    names = Attempt.objects.filter(command__in=commands, outcome="confirmed").values_list("worker", flat=True)
    return {int(name.rpartition("-")[2]) for name in names}


def metrics() -> list[str]:
    return Client().get("/metrics").content.decode().splitlines()


def test_each_version_is_executed_by_code_that_has_it(fleet: Fleet) -> None:
    """Old workers leave the new version alone: no claim, no attempt, and whoever operates this sees it waiting."""
    first = fleet.approve(6)
    with new_code("rolling"):
        second = fleet.approve(6)
    assert {command.operation_version for command in second} == {3}
    old = sweep_of(fleet, "")
    eventually(lambda: all_are(first, "confirmed"), seconds=90)
    assert all_are(second, "ready")
    assert not Attempt.objects.filter(command__in=second).exists()
    for command in second:
        age(command.run_id, 120, "workflows_command")
    assert 'placet_commands_without_worker{operation="refunds.issue",version="3"} 6.0' in metrics()
    third = fleet.approve(6)  # web processes of the old code go on proposing by it
    new = sweep_of(fleet, "rolling")
    fleet.wait_until_ended([*first, *second, *third], seconds=120, between=ring)
    fleet.each_took_effect_once([*first, *second, *third])
    assert executed_by(second) == {new.pid}
    assert executed_by(first) == {old.pid}
    assert Command.objects.filter(claims=1).count() == 18
    assert not any(line.startswith("placet_commands_without_worker{") for line in metrics())


def test_what_no_worker_knows_lapses_and_a_person_sees_it(fleet: Fleet) -> None:
    """A release that was taken back: its actions do not wait for ever, and do not look as if they were about to run."""
    with new_code("rolling"):
        [command] = fleet.approve(1)
    age(command.run_id, 3600, "approvals_proposal", "workflows_command")
    sweep_of(fleet, "")
    eventually(
        lambda: all_are([command], "void"), seconds=90, what=lambda: fleet.processes.log("sweep")[-3000:]
    )
    command.refresh_from_db()
    assert (command.void_reason, command.claims) == ("lapsed", 0)
    assert RepairPacket.objects.filter(run_id=command.run_id, cause="command_lapsed", status="open").exists()
    assert fleet.arrivals() == []


def test_an_unknown_outcome_of_the_new_version_waits_for_new_code(fleet: Fleet) -> None:
    """The old sweep neither settles it nor takes its turn away: the new one asks as soon as it is there."""
    with new_code("rolling"):
        [command] = fleet.approve(1)
    fleet.processes.env["PLACET_CRASHPOINT"] = "CP8:kill"
    assert sweep_of(fleet, "rolling").wait(90) == -9
    del fleet.processes.env["PLACET_CRASHPOINT"]
    age(command.run_id, 60, "workflows_command")
    old = sweep_of(fleet, "")
    rounds = lambda: fleet.processes.log("sweep").count("recover")  # noqa: E731
    eventually(lambda: rounds() > 1 or not all_are([command], "sent"), seconds=60)
    sweep_of(fleet, "rolling")
    fleet.wait_until_ended([command], seconds=40, between=lambda: age(command.run_id, 1, "workflows_command"))
    fleet.each_took_effect_once([command])
    assert old.poll() is None


def test_a_newer_policy_voids_what_was_approved_under_the_old_one(fleet: Fleet) -> None:
    """C7: from the moment that the new code has published it, whoever executes, old code or new."""
    commands = fleet.approve(4)
    with new_code("stricter"):
        pass  # it was started, and has published its versions
    sweep_of(fleet, "")
    sweep_of(fleet, "stricter")
    eventually(lambda: all_are(commands, "void"), seconds=90)
    reasons: Any = Command.objects.values_list("void_reason", flat=True)
    assert set(reasons) == {"policy"}
    assert fleet.effects() == {}
    open_ = Proposal.objects.filter(run_id__in=[command.run_id for command in commands], status="pending")
    packets = RepairPacket.objects.filter(run_id__in=[command.run_id for command in commands], status="open")
    assert open_.count() + packets.count() == 4  # asked again, or a person is told that it has to be
