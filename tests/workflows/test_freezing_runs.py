"""A freeze of exactly these runs: held in every place where a freeze is looked at, and nothing else is."""

import pytest
from django.db import transaction

from access.enums import Role
from common.clock import db_clock
from common.ids import new_id
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import Desk, person
from tests.workflows.later import SWEEP, end_of, fresh
from tests.workflows.test_freezing import HELD, ROOT, frozen, hold_back, release, unfreeze
from tests.workflows.test_hold_pages import lost
from tests.workflows.test_races import Beside, wait_for_queue
from tests.workflows.test_worker_unknown import claimed
from workflows.actions.freezing import Scope, TooManyRuns, UnknownScope, freeze
from workflows.models import Attempt, Command, Hold
from workflows.models.holds import MOST_RUNS
from workflows.scope import enter_scope, matches
from workflows.selectors_holds import commands_within, freezes_over
from workflows.worker.send import commit_sent, look

pytestmark = pytest.mark.django_db


def test_only_the_named_runs_are_held_by_a_worker_that_goes_on(desk: Desk) -> None:
    """Field report T3: the worker's loop goes round until nothing is due, and the frozen ones are not sent."""
    commands = [desk.approved(order=str(number)) for number in range(6)]
    named = {commands[1].run_id, commands[4].run_id}
    hold = frozen(desk, runs=tuple(named))
    assert hold.drained_at is not None
    assert hold.scope == "exactly 2 named runs"
    hold_back()
    while desk.work():
        pass
    states = {command.run_id: fresh(command).status for command in commands}
    assert {run for run, status in states.items() if status == "held"} == named
    assert {run for run, status in states.items() if status == "confirmed"} == set(states) - named
    assert len(desk.till.calls) == 4
    assert {fresh(command).hold_id for command in commands if command.run_id in named} == {hold.pk}


def test_what_is_approved_later_of_such_a_run_is_held_too(desk: Desk) -> None:
    proposal = desk.proposed(order="1042")
    hold = frozen(desk, runs=(proposal.run_id,))
    assert freezes_over(desk.tenant.pk, proposal.pk) == [hold]
    desk.decide(proposal)
    assert desk.work() == 0
    assert hold_back() == 1
    assert end_of(Command.objects.get(proposal=proposal)) == HELD
    assert desk.till.calls == []


def test_a_claimed_one_is_held_instead_of_sent(desk: Desk) -> None:
    command, claim = claimed(desk)
    looked = look(claim, Command.objects.select_related("proposal", "run").get(pk=command.pk))
    frozen(desk, runs=(command.run_id,))
    assert commit_sent(claim, looked, by=SWEEP, clock=db_clock) is None
    assert end_of(command) == HELD
    assert Attempt.objects.get().status == "released"


def test_it_waits_for_who_is_about_to_send(desk: Desk) -> None:
    """Under the very lock of every other freeze."""
    command, claim = claimed(desk)
    looked = look(claim, Command.objects.select_related("proposal", "run").get(pk=command.pk))
    with transaction.atomic():
        enter_scope()
        pulled = Beside(lambda: frozen(desk, runs=(command.run_id,)))
        assert pulled.waits()
        assert Hold.objects.get().drained_at is None
        wait_for_queue(1)
    assert pulled.end().drained_at is not None
    assert commit_sent(claim, looked, by=SWEEP, clock=db_clock) is None


def test_what_was_in_flight_is_noted_of_the_named_runs_alone(desk: Desk) -> None:
    first, second = lost(desk, "1"), lost(desk, "2")
    hold = frozen(desk, runs=(first.run_id,))
    assert (hold.in_flight["sent"], hold.in_flight["unknown"]) == (0, 1)
    assert [row["id"] for row in hold.in_flight["commands"]] == [str(first.pk)]
    rows = Command.objects.select_related("proposal").filter(pk__in=[first.pk, second.pk])
    within = set(commands_within(hold, desk.tenant.pk).values_list("pk", flat=True))
    assert within == {row.pk for row in rows if matches(hold, row, row.proposal)} == {first.pk}


def test_lifting_lets_it_go(desk: Desk) -> None:
    command = desk.approved()
    hold = frozen(desk, runs=(command.run_id,))
    hold_back()
    unfreeze(hold)
    assert release() == 1
    assert desk.work() == 1
    assert fresh(command).status == "confirmed"


def test_the_same_form_twice_makes_one_freeze_and_other_runs_another(desk: Desk) -> None:
    first, second = (desk.start(order=str(number)).pk for number in (1, 2))
    by = person(make_user(desk.tenant, "otto", roles=[Role.OPERATOR]))
    one = frozen(desk, by, runs=(first, second))
    assert frozen(desk, by, runs=(second, first)).pk == one.pk
    assert frozen(desk, by, runs=(first,)).pk != one.pk


def test_a_run_that_is_none_of_theirs_freezes_nothing_at_all(desk: Desk) -> None:
    ours = desk.start().pk
    other = make_tenant("quay").pk
    for scope in (
        Scope(desk.tenant.pk, runs=(ours, new_id())),
        Scope(other, runs=(ours,)),
        Scope(None, runs=(ours,)),
    ):
        with pytest.raises(UnknownScope):
            freeze(scope=scope, why="it looks wrong", by=ROOT, clock=db_clock)
    with pytest.raises(TooManyRuns):
        frozen(desk, runs=tuple(new_id() for _ in range(MOST_RUNS + 1)))
    assert not Hold.objects.exists()


def test_as_many_runs_as_a_freeze_names_are_told_apart(desk: Desk) -> None:
    command, other = desk.approved(order="1"), desk.approved(order="2")
    runs = [command.run_id, *(new_id() for _ in range(MOST_RUNS - 1))]
    Hold.objects.create(
        tenant=desk.tenant, reason="freeze", runs=runs, why="many", placed_by="user:ada", placed_at=db_clock()
    )  # fmt: skip
    hold_back()
    while desk.work():
        pass
    assert (fresh(command).status, fresh(other).status) == ("held", "confirmed")
