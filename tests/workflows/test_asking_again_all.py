"""Everything that a freeze let lapse is asked again with one click, each on its own."""

from dataclasses import replace
from typing import Any

import pytest

from access.enums import Role
from access.models import User
from access.policies import RoleMissing
from approvals.models import Proposal
from audit.actors import Via
from common.clock import db_clock
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import Desk, person
from tests.workflows.counter import ADMIN
from tests.workflows.later import SWEEP, age, as_superuser, end_of, fresh
from tests.workflows.test_asking_again import lapsed, nothing_changed
from tests.workflows.toy import ToyPay
from workflows.actions.asking_again import ask_again_all
from workflows.actions.attesting import TokenCannotAttest
from workflows.actions.freezing import Scope, UnknownHold, freeze, lift
from workflows.models import Command, Hold
from workflows.operations import OperationRefused
from workflows.worker.holding import hold_back_due, release_due
from workflows.worker.recover import void_lapsed

pytestmark = pytest.mark.django_db


@pytest.fixture
def opal(desk: Desk) -> User:
    return make_user(desk.tenant, "opal", roles=[Role.OPERATOR])


def frozen(desk: Desk, *orders: str, tenant: bool = True) -> tuple[Hold, list[Command]]:
    """Approved, then frozen, and held until it was too late."""
    commands = [desk.approved(order=order) for order in orders]
    hold = freeze(scope=Scope(desk.tenant.pk if tenant else None), why="a test", by=ADMIN, clock=db_clock)
    assert hold_back_due(by=SWEEP, clock=db_clock) == len(orders)
    return hold, commands


def lift_and_release(hold: Hold) -> None:
    lift(hold_id=hold.pk, tenant_id=hold.tenant_id, why="over", by=ADMIN, clock=db_clock)
    as_superuser("UPDATE workflows_hold SET next_release_at = clock_timestamp() WHERE id = %s", hold.pk)
    release_due(by=SWEEP, clock=db_clock)


def all_again(desk: Desk, hold: Hold, user: User) -> Any:
    return ask_again_all(tenant_id=desk.tenant.pk, hold_id=hold.pk, by=person(user), clock=db_clock)


@pytest.mark.parametrize("whole", [False, True], ids=["tenant", "installation"])
def test_what_lapsed_under_a_freeze_is_asked_again_at_once(desk: Desk, opal: User, whole: bool) -> None:
    before = lapsed(desk, order="1")
    hold, commands = frozen(desk, "2", "3", "4", tenant=not whole)
    for command in commands[:2]:
        age(command.run_id, 700, "approvals_proposal")
    assert void_lapsed(by=SWEEP, clock=db_clock) == 2
    lift_and_release(hold)
    assert [fresh(command).status for command in commands] == ["void", "void", "ready"]
    done = all_again(desk, hold, opal)
    made = [Proposal.objects.get(pk=pk) for pk in done.proposals]
    assert [proposal.supersedes_id for proposal in made] == [command.proposal_id for command in commands[:2]]
    assert (done.refused, done.left) == ((), 0)
    nothing_changed(before)
    assert all_again(desk, hold, opal).proposals == ()


def test_what_lapsed_before_the_lift_reached_it_counts_too(desk: Desk, opal: User) -> None:
    hold, [command] = frozen(desk, "1")
    age(command.run_id, 700, "approvals_proposal")
    lift_and_release(hold)
    assert end_of(command)["command"] == "void(lapsed)"
    assert len(all_again(desk, hold, opal).proposals) == 1


def test_one_that_is_refused_leaves_the_others(
    desk: Desk, opal: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold, commands = frozen(desk, "1", "2", "3")
    for command in commands:
        age(command.run_id, 700, "approvals_proposal")
    void_lapsed(by=SWEEP, clock=db_clock)

    def check(self: Any, arguments: Any, facts: Any) -> None:
        if arguments.order == "2":
            raise OperationRefused("unknown_order", "There is no such order.")

    monkeypatch.setattr(ToyPay, "check", check)
    done = all_again(desk, hold, opal)
    assert len(done.proposals) == 2
    [refused] = done.refused
    assert (refused.run_id, refused.step, refused.code) == (commands[1].run_id, "pay", "refused_by_policy")


def test_another_tenants_hold_is_not_there(desk: Desk) -> None:
    hold, _ = frozen(desk, "1")
    other = make_tenant("lagoon")
    eve = make_user(other, "eve", roles=[Role.ADMIN])
    with pytest.raises(UnknownHold):
        ask_again_all(tenant_id=other.pk, hold_id=hold.pk, by=person(eve), clock=db_clock)
    with pytest.raises(RoleMissing):
        all_again(desk, hold, desk.ada)


def test_no_token_asks_for_all(desk: Desk, opal: User) -> None:
    hold, _ = frozen(desk, "1")
    with pytest.raises(TokenCannotAttest):
        ask_again_all(
            tenant_id=desk.tenant.pk, hold_id=hold.pk, by=replace(person(opal), via=Via.TOKEN), clock=db_clock
        )
