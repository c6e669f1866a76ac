"""The kill switch: nothing is newly sent once it has returned, it says what was in flight, and lets go item by item."""

from typing import Any

import pytest
from django.db import transaction

from access.enums import Role
from access.policies import RoleMissing
from audit.actors import INSTALLATION, Actor, Owner, Via
from audit.models import Event
from common.clock import db_clock
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import AGENT, Desk, person
from tests.workflows.later import SWEEP, age, as_superuser, end_of, fresh, look_up
from tests.workflows.test_races import Beside, wait_for_queue
from tests.workflows.test_worker_unknown import NOT_FOUND, SETTLED, claimed, sent, unknown
from workflows import sweep
from workflows.actions.freezing import (
    AlreadyLifted,
    Scope,
    UnknownHold,
    UnknownScope,
    WhyMissing,
    freeze,
    lift,
)
from workflows.models import Attempt, Command, Definition, Hold, Run
from workflows.scope import enter_scope
from workflows.worker.holding import hold_back_due, release_due
from workflows.worker.send import commit_sent, look

pytestmark = pytest.mark.django_db
HELD = {
    "command": "held", "effect": "none", "proposal": "approved", "step": "waiting(provider)", "run": "degraded",
    "packets": [],
}  # fmt: skip
ROOT = Actor("command_line:root", Via.COMMAND_LINE, Owner.PERSON)


def operator(desk: Desk) -> Actor:
    return person(make_user(desk.tenant, "otto", roles=[Role.OPERATOR]))


def frozen(desk: Desk, by: Actor | None = None, **scope: Any) -> Hold:
    names = {"tenant_id": desk.tenant.pk} | scope
    return freeze(scope=Scope(**names), why="the payments look wrong", by=by or ROOT, clock=db_clock)


def unfreeze(hold: Hold, by: Actor = ROOT) -> Hold:
    return lift(
        hold_id=hold.pk, tenant_id=hold.tenant_id, why="it was a display fault", by=by, clock=db_clock
    )


def register_version(version: int) -> None:
    """As if other code than this had been installed, too."""
    Definition.objects.create(
        kind="workflow", name="toy-pay", version=version, content_hash="0" * 64, registered_at=db_clock(),
        is_current=False,
    )  # fmt: skip


def hold_back() -> int:
    return hold_back_due(by=SWEEP, clock=db_clock)


def release() -> int:
    """One turn of letting go, whenever the next one is due."""
    as_superuser(
        "UPDATE workflows_hold SET next_release_at = now() - interval '1 minute' WHERE status = 'lifting'"
    )
    return release_due(by=SWEEP, clock=db_clock)


def kinds(hold: Hold) -> list[str]:
    return list(Event.objects.filter(subject_id=hold.pk).order_by("at", "id").values_list("kind", flat=True))


SCOPES: list[dict[str, Any]] = [
    {"tenant_id": None},
    {},
    {"workflow": "toy-pay"},
    {"workflow": "toy-pay", "workflow_version": 1},
    {"operation": "toy.pay"},
    {"target": "order:1042"},
]
OTHER_SCOPES: list[dict[str, Any]] = [
    {"workflow": "toy-outside"},
    {"workflow": "toy-pay", "workflow_version": 2},
    {"target": "order:7"},
]


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_what_is_frozen_is_neither_claimed_nor_sent(desk: Desk, scope: dict[str, Any]) -> None:
    """Field report T3: every path, and nothing at the provider."""
    command = desk.approved()
    hold = frozen(desk, **scope)
    assert hold.drained_at is not None
    assert desk.work() == 0
    assert hold_back() == 1
    assert end_of(command) == HELD
    assert fresh(command).hold_id == hold.pk
    assert desk.till.calls == []
    assert not Attempt.objects.exists()


@pytest.mark.parametrize("scope", OTHER_SCOPES, ids=str)
def test_what_is_outside_the_scope_goes_on(desk: Desk, scope: dict[str, Any]) -> None:
    command = desk.approved()
    register_version(2)
    frozen(desk, **scope)
    assert desk.work() == 1
    assert fresh(command).status == "confirmed"


def test_another_tenants_freeze_holds_nothing_here(desk: Desk) -> None:
    command = desk.approved()
    frozen(desk, tenant_id=make_tenant("quay").pk)
    desk.work()
    assert fresh(command).status == "confirmed"


def test_a_claimed_command_is_held_instead_of_sent(desk: Desk) -> None:
    command, claim = claimed(desk)
    looked = look(claim, Command.objects.select_related("proposal", "run").get(pk=command.pk))
    frozen(desk)
    assert commit_sent(claim, looked, by=SWEEP, clock=db_clock) is None
    assert end_of(command) == HELD
    assert Attempt.objects.get().status == "released"


def test_a_freeze_waits_for_who_is_about_to_send_and_notes_what_was_in_flight(desk: Desk) -> None:
    """The transaction that entered before it commits *sent*; only then does the freeze return, and it says so."""
    command, claim = claimed(desk)
    looked = look(claim, Command.objects.select_related("proposal", "run").get(pk=command.pk))
    with transaction.atomic():
        enter_scope()
        pulled = Beside(lambda: frozen(desk))
        assert pulled.waits()
        assert Hold.objects.get().drained_at is None
        wait_for_queue(1)
    hold = pulled.end()
    assert hold.drained_at is not None
    assert commit_sent(claim, looked, by=SWEEP, clock=db_clock) is None
    assert kinds(hold) == ["hold.in_force", "hold.drained"]


def test_in_flight_at_that_instant(desk: Desk) -> None:
    lost = unknown(desk)
    on_its_way = Command.objects.get(pk=desk.approved(order="7").pk)
    [claim] = [c for c in _claim_all() if c.command_id == on_its_way.pk]
    row = Command.objects.select_related("proposal", "run").get(pk=on_its_way.pk)
    assert commit_sent(claim, look(claim, row), by=SWEEP, clock=db_clock)
    hold = frozen(desk)
    assert (hold.in_flight["sent"], hold.in_flight["unknown"]) == (1, 1)
    assert {row["id"]: row["status"] for row in hold.in_flight["commands"]} == {
        str(lost.pk): "unknown", str(on_its_way.pk): "sent",
    }  # fmt: skip


def _claim_all() -> list[Any]:
    from workflows.enums import Lane
    from workflows.worker.claim import claim_commands

    return claim_commands(limit=10, lane=Lane.NEW, worker="first", by=SWEEP, clock=db_clock)


def test_somebody_slow_does_not_undo_the_freeze(desk: Desk) -> None:
    """Whoever does not end in time delays the proof, not the freeze; the sweep notes it later."""
    command = desk.approved()
    with transaction.atomic():
        enter_scope()
        pulled = Beside(lambda: frozen(desk))
        hold = pulled.end()
    assert (hold.status, hold.drained_at) == ("in_force", None)
    desk.work()
    assert desk.till.calls == []
    hold_back()
    assert Hold.objects.get().drained_at is not None
    assert end_of(command) == HELD


def test_a_freeze_that_cannot_be_read_sends_nothing(desk: Desk) -> None:
    """Fail closed (T3): no answer to *is it frozen?* is not a no."""
    command = desk.approved()
    as_superuser("ALTER TABLE workflows_hold RENAME TO workflows_hold_away")
    try:
        with pytest.raises(Exception, match="workflows_hold"):
            desk.work()
    finally:
        as_superuser("ALTER TABLE workflows_hold_away RENAME TO workflows_hold")
    assert desk.till.calls == []
    desk.work()
    assert fresh(command).status == "confirmed"


def test_an_answer_during_a_freeze_is_stored(desk: Desk) -> None:
    command, _ = sent(desk)
    frozen(desk)
    as_superuser("UPDATE workflows_command SET lease_until = now() - interval '1 minute'")
    sweep.look_around()
    assert fresh(command).status == "unknown"
    age(command.run_id, SETTLED, "workflows_command")
    desk.till.findings = [NOT_FOUND]
    assert look_up(command)
    assert end_of(command) == HELD


def test_lifting_lets_go_a_few_at_a_time(desk: Desk, settings: Any) -> None:
    settings.PLACET_RELEASES_PER_SECOND = 2
    commands = [desk.approved(order=str(number)) for number in range(5)]
    hold = frozen(desk)
    assert hold_back() == 5
    unfreeze(hold)
    assert release_due(by=SWEEP, clock=db_clock) == 1
    assert [fresh(command).status for command in commands] == ["ready", "ready", "held", "held", "held"]
    assert release_due(by=SWEEP, clock=db_clock) == 0, "the next turn is not due yet"
    while release():
        pass
    assert {fresh(command).status for command in commands} == {"ready"}
    assert Hold.objects.get().status == "lifted"
    assert desk.work() == 5
    assert kinds(hold) == ["hold.in_force", "hold.drained", "hold.lifting", "hold.lifted"]


def test_what_lapsed_while_frozen_is_not_sent_after_lifting(desk: Desk) -> None:
    command = desk.approved()
    hold = frozen(desk)
    hold_back()
    age(command.run_id, 3600, "approvals_proposal")
    unfreeze(hold)
    release()
    assert (fresh(command).status, fresh(command).void_reason) == ("void", "lapsed")
    assert desk.work() == 0


def test_what_two_freezes_hold_waits_for_both(desk: Desk) -> None:
    command = desk.approved()
    first, second = frozen(desk), frozen(desk, operation="toy.pay")
    hold_back()
    unfreeze(first)
    release()
    assert end_of(command) == HELD
    assert fresh(command).hold_id == second.pk
    release()
    assert Hold.objects.get(pk=first.pk).status == "lifted"
    unfreeze(second)
    release()
    desk.work()
    assert fresh(command).status == "confirmed"


def test_pins_that_changed_while_frozen_are_found_on_the_way_to_sent(desk: Desk) -> None:
    command = desk.approved()
    hold = frozen(desk)
    hold_back()
    desk.till.tags["1042"] = "v2"
    unfreeze(hold)
    release()
    desk.work()
    assert (fresh(command).status, fresh(command).void_reason) == ("void", "pin")
    assert desk.till.calls == []


def test_approving_during_a_freeze_writes_a_command_that_is_held(desk: Desk) -> None:
    hold = frozen(desk)
    command = desk.approved()
    sweep.drain()
    hold_back()
    assert end_of(command) == HELD
    assert fresh(command).hold_id == hold.pk


def test_a_wish_to_cancel_wins_over_a_freeze(desk: Desk) -> None:
    from workflows.actions.cancelling import cancel_run

    command = desk.approved()
    frozen(desk)
    hold_back()
    asked = cancel_run(
        tenant_id=desk.tenant.pk, run_id=command.run_id, reason="no need", by=AGENT, clock=db_clock
    )
    assert (asked, Run.objects.get().status) == ("cancelled", "cancelled")


# -- who may ---------------------------------------------------------------------------------------------------------


def test_an_operator_freezes_and_lifts(desk: Desk) -> None:
    otto = operator(desk)
    hold = frozen(desk, by=otto)
    assert hold.placed_by == otto.performed_by
    lifted = unfreeze(hold, by=otto)
    assert (lifted.lifted_by, lifted.lift_why) == (otto.performed_by, "it was a display fault")


def test_neither_a_reviewer_nor_an_automation_freezes(desk: Desk) -> None:
    for actor in (person(desk.ada), AGENT):
        with pytest.raises(RoleMissing):
            frozen(desk, by=actor)
    assert not Hold.objects.exists()


def test_the_installation_is_frozen_and_lifted_at_its_command_line_only(desk: Desk) -> None:
    otto = operator(desk)
    with pytest.raises(RoleMissing):
        frozen(desk, by=otto, tenant_id=None)
    hold = frozen(desk, tenant_id=None)
    with pytest.raises(UnknownHold):
        lift(hold_id=hold.pk, tenant_id=desk.tenant.pk, why="let me", by=otto, clock=db_clock)
    assert unfreeze(hold).status == "lifting"
    assert set(Event.objects.filter(subject_id=hold.pk).values_list("tenant_id", flat=True)) == {INSTALLATION}


def test_another_tenants_freeze_is_unknown(desk: Desk) -> None:
    hold = frozen(desk)
    other = make_tenant("quay")
    olga = person(make_user(other, "olga", roles=[Role.ADMIN]))
    with pytest.raises(UnknownHold):
        lift(hold_id=hold.pk, tenant_id=other.pk, why="let me", by=olga, clock=db_clock)


def test_a_freeze_says_why_and_holds_something_that_exists(desk: Desk) -> None:
    with pytest.raises(WhyMissing):
        freeze(scope=Scope(desk.tenant.pk), why=" ", by=ROOT, clock=db_clock)
    for scope in ({"workflow": "toy-pai"}, {"operation": "toy.pai"}, {"workflow_version": 1}):
        with pytest.raises(UnknownScope):
            frozen(desk, **scope)
    with pytest.raises(UnknownScope):
        frozen(desk, tenant_id=None, operation="toy.pay")
    assert not Hold.objects.exists()


def test_lifting_twice_is_refused(desk: Desk) -> None:
    hold = frozen(desk)
    unfreeze(hold)
    with pytest.raises(AlreadyLifted):
        unfreeze(hold)
