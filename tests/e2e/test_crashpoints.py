"""Killed, stopped or broken at each named place: what the database says then, and what comes of it afterwards."""

import time
from typing import Any

import pytest

from access.enums import Role
from approvals.models import Decision, Proposal
from audit.models import Event
from common import crashpoints
from common.crashpoints import CrashpointReached
from tests.e2e.fleet import Fleet, eventually, go_on, is_stopped
from tests.factories import make_user
from tests.workflows.later import age
from workflows import sweep
from workflows.models import Attempt, Attestation, Command

pytestmark = pytest.mark.django_db
LATER = 60
"""Seconds after which leases are over and *not found* counts."""


def go_on_working(command: Command) -> None:
    """Healthy workers and sweeps, with the time passing that leases and the provider need."""
    for _ in range(6):
        age(command.run_id, LATER, "workflows_command")
        sweep.look_around()
        sweep.drain()
        command.refresh_from_db()
        if command.status == "confirmed":
            return


def has_status(command: Command, status: str) -> bool:
    command.refresh_from_db()
    return command.status == status


@pytest.mark.parametrize(
    ("point", "status", "effects", "then", "calls"),
    [
        ("CP3", "claimed", 0, "ready", 1),
        ("CP4", "claimed", 0, "ready", 1),
        ("CP5", "sent", 0, "unknown", 1),
        ("CP8", "sent", 1, "unknown", 1),
        ("CP10", "confirmed", 1, "confirmed", 1),
    ],
)
def test_a_worker_killed_there(
    fleet: Fleet, point: str, status: str, effects: int, then: str, calls: int
) -> None:
    """Nothing was sent: ready again. Sent: unknown, looked up, and never ready by time alone."""
    [command] = fleet.approve(1)
    process = fleet.crashing(point)
    assert process.wait(60) == -9
    assert has_status(command, status)
    assert sum(fleet.effects().values()) == effects
    age(command.run_id, 25, "workflows_command")
    sweep.look_around()
    command.refresh_from_db()
    assert command.status == then or (command.settled_by, effects) == ("lookup", 1)
    go_on_working(command)
    fleet.each_took_effect_once([command])
    assert len(fleet.arrivals()) == calls


def test_killed_after_a_lookup_was_answered(fleet: Fleet) -> None:
    [command] = fleet.approve(1)
    fleet.provider.call("POST", "/_admin/switches", {"fault": "accept_then_hang", "seconds": 30, "next": 1})
    assert fleet.crashing("CP8").wait(60) == -9
    age(command.run_id, 25, "workflows_command")
    assert fleet.crashing("CP12").wait(60) == -9
    assert has_status(command, "unknown")
    go_on_working(command)
    assert command.settled_by == "lookup"
    fleet.each_took_effect_once([command])


def test_killed_while_it_recovered_a_lease(fleet: Fleet) -> None:
    [command] = fleet.approve(1)
    assert fleet.crashing("CP5").wait(60) == -9
    age(command.run_id, 25, "workflows_command")
    assert fleet.crashing("CP13").wait(60) == -9
    assert has_status(command, "sent")
    go_on_working(command)
    fleet.each_took_effect_once([command])


def test_stopped_between_sent_and_the_call(fleet: Fleet) -> None:
    """It wakes up after its command was settled as *did not happen* and sent by another: it must not send too."""
    [command] = fleet.approve(1)
    process = fleet.crashing("CP5", "stop")
    eventually(lambda: is_stopped(process), seconds=60)
    slept_since = time.monotonic()
    go_on_working(command)
    assert has_status(command, "confirmed")
    time.sleep(max(0.0, 9 - (time.monotonic() - slept_since)))
    go_on(process)
    first = Attempt.objects.filter(command=command, number=1)
    eventually(lambda: first.filter(late_evidence__isnull=False).exists(), seconds=30)
    assert first.get().late_evidence["meaning"] == "not_sent"
    fleet.each_took_effect_once([command])


def test_stopped_before_it_stored_the_answer(fleet: Fleet) -> None:
    """Fencing: the command was settled meanwhile; what the stale worker brings is evidence and nothing else."""
    [command] = fleet.approve(1)
    process = fleet.crashing("CP8", "stop")
    eventually(lambda: is_stopped(process), seconds=60)
    go_on_working(command)
    command.refresh_from_db()
    assert (command.status, command.settled_by) == ("confirmed", "lookup")
    go_on(process)
    attempt = Attempt.objects.filter(command=command)
    eventually(lambda: attempt.filter(late_evidence__isnull=False).exists(), seconds=30)
    after = Command.objects.get(pk=command.pk)
    assert (after.settled_by, after.state_version) == ("lookup", command.state_version)
    fleet.each_took_effect_once([command])


def test_broken_in_the_deciding_transaction(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crashpoints, "_ASKED", "CP0:raise")
    with pytest.raises(CrashpointReached):
        fleet.approve(1)
    assert Proposal.objects.get().status == "pending"
    assert not (Decision.objects.exists() or Command.objects.exists())


def test_broken_between_the_commit_and_the_ring(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field report E3: the decision stands, the answer is a success, and the sweep finds the work."""
    monkeypatch.setattr(crashpoints, "_ASKED", "CP1:raise")
    commands: Any = fleet.approve(1)
    monkeypatch.undo()
    sweep.drain()
    fleet.each_took_effect_once(commands)


_SAYS = """
from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from uuid import UUID
from workflows.actions.attesting import attest
by = Actor("user:{user}", Via.SESSION, Owner.PERSON, user_id=UUID("{user}"))
attest(tenant_id=UUID("{tenant}"), command_id=UUID("{command}"), says="happened", reference="re_seen",
       reason="I saw it.", by=by, clock=db_clock)
"""


def test_killed_before_a_persons_word_was_committed(fleet: Fleet) -> None:
    """Unknown and unsaid: no word, no event, no effect that is called one; and the same word counts afterwards."""
    fleet.provider.switch("blind")
    [command] = fleet.approve(1)
    assert fleet.crashing("CP8").wait(60) == -9
    age(command.run_id, 25, "workflows_command")
    sweep.look_around()
    assert has_status(command, "unknown")
    opal = make_user(fleet.tenant, "opal", roles=[Role.OPERATOR])
    says = _SAYS.format(tenant=fleet.tenant.pk, command=command.pk, user=opal.pk)
    fleet.processes.env["PLACET_CRASHPOINT"] = "CP15:kill"
    assert fleet.processes.manage("shell", "-c", says).wait(60) == -9
    assert has_status(command, "unknown")
    assert not Attestation.objects.exists()
    assert not Event.objects.filter(kind__in=("command.attested", "command.confirmed")).exists()
    del fleet.processes.env["PLACET_CRASHPOINT"]
    assert fleet.processes.manage("shell", "-c", says).wait(60) == 0
    assert has_status(command, "confirmed")
    assert (command.settled_by, command.provider_reference) == ("person", "re_seen")
    assert len(fleet.arrivals()) == 1
