"""Freezes and circuits under stress: nothing is stranded, no burst, no starving trial, no way around the caps."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import InterfaceError, transaction

from audit.models import Event
from common.clock import db_clock
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, age, as_superuser, end_of, fresh, look_up, recover
from tests.workflows.test_circuit import in_trouble, tend
from tests.workflows.test_freezing import HELD, frozen, hold_back, register_version, release, unfreeze
from tests.workflows.test_races import Beside
from tests.workflows.test_worker_answers import answer
from tests.workflows.test_worker_unknown import NOT_FOUND, SETTLED, claimed, sent, unknown
from tests.workflows.toy import ToyPay
from workflows import sweep
from workflows.actions import freezing, holding_back
from workflows.actions.freezing import UnknownScope
from workflows.actions.settle import lock_run
from workflows.models import Command, Hold, Run
from workflows.worker import reconcile as reconciling
from workflows.worker.holding import release_due, tend_circuits
from workflows.worker.reconcile import reconcile_due
from workflows.worker.recover import void_lapsed
from workflows.worker.send import commit_sent, look
from workflows.worker.store import store_answer

pytestmark = pytest.mark.django_db
GIVEN_UP = {
    "command": "dead", "effect": "none", "proposal": "consumed", "step": "waiting(person)", "run": "manual_repair",
    "packets": ["command_dead"],
}  # fmt: skip


def let_go() -> None:
    release_due(by=SWEEP, clock=db_clock)


def many(desk: Desk, count: int) -> list[Command]:
    return [desk.approved(order=str(number)) for number in range(count)]


def statuses(commands: list[Command]) -> list[str]:
    return [fresh(command).status for command in commands]


# -- nothing is stranded -------------------------------------------------------------------------------------------


def test_what_is_called_held_after_the_hold_was_lifted_is_let_go(desk: Desk) -> None:
    """A worker saw the freeze before it sent, and stores that only when the freeze is over already."""
    command, claim = claimed(desk)
    looked = look(claim, Command.objects.select_related("proposal", "run").get(pk=command.pk))
    hold = frozen(desk)
    with transaction.atomic():
        lock_run(desk.tenant.pk, command.run_id)
        sending = Beside(lambda: commit_sent(claim, looked, by=SWEEP, clock=db_clock))
        assert sending.waits()
        Beside(lambda: unfreeze(hold)).end()
        Beside(let_go).end()
        assert Hold.objects.get().status == "lifted"
    assert sending.end() is None
    assert end_of(command) == HELD
    assert release_due(by=SWEEP, clock=db_clock) == 1
    assert fresh(command).status == "ready"
    assert desk.work() == 1
    assert fresh(command).status == "confirmed"
    assert release_due(by=SWEEP, clock=db_clock) == 0


def test_an_answer_that_is_stored_while_the_circuit_closes_strands_nothing(desk: Desk) -> None:
    command, claim = sent(desk)
    in_trouble(desk, 5)
    with transaction.atomic():
        lock_run(desk.tenant.pk, command.run_id)
        storing = Beside(lambda: store_answer(claim, answer(429), by=SWEEP, clock=db_clock))
        assert storing.waits()
        as_superuser("UPDATE workflows_hold SET until = now() - interval '1 second'")
        Beside(lambda: tend_circuits(by=SWEEP, clock=db_clock)).end()  # nothing waits for it: it closes
        Beside(let_go).end()
        assert Hold.objects.get().status == "lifted"
    storing.end()
    assert fresh(command).status == "held"
    release_due(by=SWEEP, clock=db_clock)
    assert fresh(command).status == "ready"


def test_what_is_let_go_late_is_let_go_at_the_same_pace(desk: Desk, settings: Any) -> None:
    settings.PLACET_RELEASES_PER_SECOND = 2
    commands = many(desk, 3)
    hold = frozen(desk)
    hold_back()
    as_superuser(
        "UPDATE workflows_hold SET status = 'lifted', lifted_at = now(), ended_at = now() WHERE id = %s",
        hold.pk,
    )
    assert release_due(by=SWEEP, clock=db_clock) == 1
    assert statuses(commands) == ["ready", "ready", "held"]
    assert release_due(by=SWEEP, clock=db_clock) == 0, "the next turn is not due yet"


# -- many at a time ------------------------------------------------------------------------------------------------


def test_lifting_is_no_burst_either_for_what_was_not_called_held_yet(desk: Desk, settings: Any) -> None:
    settings.PLACET_RELEASES_PER_SECOND = 2
    commands = many(desk, 5)
    unfreeze(frozen(desk))
    assert statuses(commands) == ["held"] * 5
    release()
    assert desk.work() == 2
    assert statuses(commands) == ["confirmed", "confirmed", "held", "held", "held"]
    for _ in range(2):
        release()
        desk.work()
    assert statuses(commands) == ["confirmed"] * 5


def test_many_are_held_back_in_few_transactions_and_their_runs_follow(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding_back, "AT_ONCE", 2)
    commands = many(desk, 5)
    hold = frozen(desk)
    before = [command.state_version for command in commands]
    assert hold_back() == 5
    assert [fresh(command).state_version for command in commands] == [version + 1 for version in before]
    events = Event.objects.filter(kind="command.held")
    assert events.count() == 5
    assert len(set(events.values_list("xid", flat=True))) == 3
    for event in events:
        assert (event.from_state, event.to_state, event.reason) == ("ready", "held", "freeze")
        assert event.body["hold"] == str(hold.pk)
        assert event.digest == Command.objects.get(pk=event.subject_id).proposal.digest
    hold_back()
    hold_back()
    assert set(Run.objects.values_list("status", flat=True)) == {"degraded"}
    assert end_of(commands[0]) == HELD


def test_runs_that_lag_behind_follow_in_a_later_round(desk: Desk) -> None:
    [command] = many(desk, 1)
    frozen(desk)
    with transaction.atomic():
        lock_run(desk.tenant.pk, command.run_id)
        assert Beside(hold_back).end() == 1
        assert fresh(command).status == "held"
        assert Run.objects.get().status == "executing"
    assert hold_back() == 0
    assert end_of(command) == HELD


def test_a_command_that_somebody_has_just_now_is_passed_over(desk: Desk) -> None:
    first, second = many(desk, 2)
    frozen(desk)
    with transaction.atomic():
        Command.objects.select_for_update().get(pk=first.pk)
        assert Beside(hold_back).end() == 1
    assert statuses([first, second]) == ["ready", "held"]
    assert hold_back() == 1


def test_a_freeze_goes_before_a_circuit_and_a_retry_is_held_too(desk: Desk) -> None:
    command = desk.approved()
    desk.till.answers = [answer(429)]
    desk.work()
    assert fresh(command).status == "retry_wait"
    age(command.run_id, -60, "workflows_command")
    in_trouble(desk, 5)
    freeze = frozen(desk)
    assert hold_back() == 1
    assert (fresh(command).hold_id, fresh(command).hold_reason) == (freeze.pk, "freeze")
    assert fresh(command).due_at is None


# -- trials --------------------------------------------------------------------------------------------------------


def test_a_trial_is_one_that_a_worker_can_claim(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest one waits for an unknown outcome on its target: it would keep the circuit open for ever."""
    monkeypatch.setattr(
        ToyPay, "target", lambda self, a: "order:0" if a.order == "blocked" else f"order:{a.order}"
    )
    monkeypatch.setattr(ToyPay, "business_key", lambda self, a: f"pay:{a.order}")
    monkeypatch.setattr(ToyPay, "pins", lambda self, a, facts: {})
    in_trouble(desk, 5)
    blocked, free = desk.approved(order="blocked"), desk.approved(order="free")
    hold_back()
    assert tend() == 1
    assert statuses([blocked, free]) == ["held", "ready"]
    desk.work()
    assert fresh(free).status == "confirmed"
    tend()
    assert Hold.objects.get().status == "lifting"


def test_a_trial_that_nobody_takes_is_given_up_and_another_one_is_chosen(desk: Desk) -> None:
    in_trouble(desk, 5)
    commands = many_waiting(desk, 2)
    hold_back()
    tend()
    assert statuses(commands) == ["ready", "held"]
    assert tend() == 0, "its pause is not over"
    assert Hold.objects.get().status == "trial"
    let_pass(31)
    tend()
    assert (Hold.objects.get().status, Hold.objects.get().pause_s) == ("in_force", 30)
    hold_back()
    assert statuses(commands) == ["held", "held"]
    assert tend() == 1
    assert statuses(commands) == ["held", "ready"]


def test_the_only_one_that_waits_is_tried_again_after_it_was_given_up(desk: Desk) -> None:
    in_trouble(desk, 5)
    [command] = many_waiting(desk, 1)
    hold_back()
    tend()
    let_pass(31)
    tend()
    hold_back()
    tend()
    assert fresh(command).status == "ready"
    desk.work()
    tend()
    assert Hold.objects.get().status == "lifting"


def many_waiting(desk: Desk, count: int) -> list[Command]:
    return [desk.approved(order=f"w{number}") for number in range(count)]


def let_pass(seconds: int) -> None:
    as_superuser("UPDATE workflows_hold SET trial_at = trial_at - make_interval(secs => %s)", seconds)


@pytest.mark.parametrize("held_before", [True, False], ids=["by the circuit", "by the freeze"])
def test_a_circuit_does_not_close_because_a_freeze_holds_all_that_waits(
    desk: Desk, held_before: bool
) -> None:
    in_trouble(desk, 5)
    command = desk.approved(order="next")
    if held_before:
        hold_back()
    hold = frozen(desk)
    hold_back()
    for _ in range(4):
        assert tend() == 0
    circuit = Hold.objects.get(reason="circuit")
    assert circuit.status == "in_force"
    assert fresh(command).hold_id == (circuit.pk if held_before else hold.pk)
    unfreeze(hold)
    release()
    assert (fresh(command).status, fresh(command).hold_id) == ("held", circuit.pk)
    tend()
    assert fresh(command).status == "ready"


# -- what no code here knows -----------------------------------------------------------------------------------------


def test_what_no_code_here_knows_stands_before_nobody_and_lapses(desk: Desk, settings: Any) -> None:
    settings.PLACET_RELEASES_PER_SECOND = 2
    gone, known = many(desk, 2), desk.approved(order="known")
    hold = frozen(desk)
    hold_back()
    for command in gone:
        as_superuser("UPDATE workflows_command SET operation_version = 9 WHERE id = %s", command.pk)
    unfreeze(hold)
    release()
    assert statuses([*gone, known]) == ["held", "held", "ready"]
    release()
    assert Hold.objects.get().status == "lifting"
    for command in gone:
        age(command.run_id, 3600, "approvals_proposal")
    assert void_lapsed(by=SWEEP, clock=db_clock) == 2
    release()
    assert statuses(gone) == ["void", "void"]
    assert Hold.objects.get().status == "lifted"


# -- the caps --------------------------------------------------------------------------------------------------------


def test_the_last_try_is_the_last_one_also_while_frozen(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyPay, "max_tries", 1)
    command = unknown(desk)
    hold = frozen(desk)
    age(command.run_id, SETTLED, "workflows_command")
    desk.till.findings = [NOT_FOUND]
    assert look_up(command)
    assert end_of(command) == GIVEN_UP
    assert fresh(command).failure_code == "tries_exhausted"
    unfreeze(hold)
    release()
    desk.work()
    assert len(desk.till.calls) == 1


def test_a_refused_credential_is_not_tried_again_after_a_freeze(desk: Desk) -> None:
    command, claim = sent(desk)
    hold = frozen(desk)
    age(command.run_id, SETTLED, "workflows_command")
    recover()
    store_answer(claim, answer(401), by=SWEEP, clock=db_clock)
    assert look_up(command)
    assert (fresh(command).status, fresh(command).failure_code) == ("dead", "credential_refused")
    unfreeze(hold)
    release()
    desk.work()
    assert desk.till.calls == []


def test_the_time_for_all_tries_goes_on_while_it_is_held(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    command = desk.approved()
    desk.till.answers = [answer(429)]
    desk.work()
    hold = frozen(desk)
    hold_back()
    monkeypatch.setattr(ToyPay, "max_total", timedelta(0))
    unfreeze(hold)
    release()
    assert end_of(command) == GIVEN_UP
    assert (fresh(command).failure_code, fresh(command).settled_by) == ("tries_exhausted", "check")
    assert desk.work() == 0
    assert len(desk.till.calls) == 1


# -- placing ---------------------------------------------------------------------------------------------------------


def test_a_version_that_never_was_is_no_scope(desk: Desk) -> None:
    with pytest.raises(UnknownScope):
        frozen(desk, workflow="toy-pay", workflow_version=77)
    assert not Hold.objects.exists()
    register_version(77)
    assert frozen(desk, workflow="toy-pay", workflow_version=77).status == "in_force"


def test_a_connection_that_is_lost_while_it_drains_does_not_undo_the_freeze(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> None:
        raise InterfaceError("the connection is closed")

    with monkeypatch.context() as patch:
        patch.setattr(freezing, "wait_for_scope", lost)
        hold = frozen(desk)
    assert (hold.status, hold.drained_at) == ("in_force", None)
    hold_back()
    assert Hold.objects.get().drained_at is not None


def test_what_is_in_flight_is_counted_whole_and_listed_in_part(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freezing, "LISTED", 2)
    in_trouble(desk, 3)
    hold = frozen(desk)
    assert (hold.in_flight["sent"], hold.in_flight["unknown"]) == (0, 3)
    assert len(hold.in_flight["commands"]) == 2


# -- slow look-ups ---------------------------------------------------------------------------------------------------


def test_what_there_is_no_time_to_ask_about_stays_due(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = in_trouble(desk, 3)
    for command in commands:
        age(command.run_id, 10, "workflows_command")
    monkeypatch.setattr(reconciling, "BUDGET_S", 0.0)
    due = Command.objects.filter(due_at__lte=db_clock(), status="unknown")
    for left in (2, 1, 0):
        reconcile_due(by=SWEEP, clock=db_clock, worker="tester")
        assert (desk.till.lookups, due.count()) == (3 - left, left)


def test_while_there_is_time_all_that_is_due_is_asked_about(desk: Desk) -> None:
    for command in in_trouble(desk, 3):
        age(command.run_id, 10, "workflows_command")
    reconcile_due(by=SWEEP, clock=db_clock, worker="tester")
    assert desk.till.lookups == 3


def test_look_ups_come_after_everything_else(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    command = unknown(desk)
    waiting = desk.approved(order="7")
    age(command.run_id, 10, "workflows_command")
    age(waiting.run_id, 3600, "approvals_proposal")
    seen = []
    monkeypatch.setattr(
        ToyPay, "reconcile", lambda self, call: seen.append(fresh(waiting).status) or NOT_FOUND
    )
    sweep.look_around()
    assert seen == ["void"]
