"""I18: an action that ends every worker which takes it is set aside, and those behind it are executed meanwhile."""

import pytest

from repair.models import RepairPacket
from tests.e2e.fleet import Fleet
from workflows.models import Command

pytestmark = pytest.mark.django_db


def test_an_action_that_ends_its_workers_takes_no_other_along(fleet: Fleet) -> None:
    """No outcome is ever written: what counts is the claim. The innocent of the same batch are not set aside."""
    commands = fleet.approve(5)
    poison, *others = commands
    fleet.processes.env |= {
        "DJANGO_SETTINGS_MODULE": "tests.e2e.poison.settings", "PLACET_CLAIM_LEASE_S": "1",
        "PLACET_TEST_POISON": poison.target.removeprefix("order:"),
    }  # fmt: skip
    running = [fleet.processes.sweep("--every", "0.2")]

    def start_again() -> None:
        if running[-1].poll() is not None:
            running.append(fleet.processes.sweep("--every", "0.2"))

    fleet.wait_until_ended(commands, seconds=200, between=start_again)
    ended = Command.objects.get(pk=poison.pk)
    assert (ended.status, ended.failure_code) == ("dead", "quarantined")
    assert RepairPacket.objects.filter(run_id=poison.run_id, status="open").count() == 1
    fleet.each_took_effect_once(others)
