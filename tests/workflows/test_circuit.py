"""The circuit breaker: trouble opens it, one call tries it, and what it held goes on by itself."""

import pytest

from common.clock import db_clock
from repair.models import RepairPacket
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, age, as_superuser, end_of, fresh
from tests.workflows.test_freezing import HELD, ROOT, hold_back, release
from tests.workflows.test_worker_answers import answer
from tests.workflows.toy import NOT_SENT, NOTHING_CAME, PAID
from workflows.actions.freezing import lift
from workflows.authoring import Observation
from workflows.models import Command, Hold, Run
from workflows.worker.holding import tend_circuits

pytestmark = pytest.mark.django_db


def in_trouble(desk: Desk, calls: int, seen: Observation = NOTHING_CAME) -> list[Command]:
    """So many actions on as many records, each of which came to nothing."""
    first = Command.objects.count()
    commands = [desk.approved(order=str(first + number)) for number in range(calls)]
    desk.till.answers = [seen] * calls
    for _ in commands:
        desk.work(limit=1)
    return commands


def tend() -> int:
    as_superuser("UPDATE workflows_hold SET until = now() - interval '1 second' WHERE until IS NOT NULL")
    return tend_circuits(by=SWEEP, clock=db_clock)


def test_four_failures_are_no_trouble_five_are(desk: Desk) -> None:
    in_trouble(desk, 4)
    assert not Hold.objects.exists()
    in_trouble_again = desk.approved(order="fifth")
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    hold = Hold.objects.get()
    assert (hold.reason, hold.provider, hold.status, hold.pause_s) == ("circuit", "till", "in_force", 30)
    assert fresh(in_trouble_again).status == "unknown"


def test_a_good_answer_in_between_keeps_it_closed(desk: Desk) -> None:
    in_trouble(desk, 3)
    desk.approved(order="good")
    desk.till.answers = [PAID]
    desk.work()
    in_trouble(desk, 3)
    assert not Hold.objects.exists()


def test_one_action_that_never_works_opens_nothing(desk: Desk) -> None:
    command = desk.approved()
    desk.till.answers = [NOT_SENT] * 9
    for _ in range(5):
        desk.work()
        age(command.run_id, 20, "workflows_command")
    assert not Hold.objects.exists()


def test_what_waits_is_held_and_the_run_shows_degraded(desk: Desk) -> None:
    in_trouble(desk, 5)
    waiting = desk.approved(order="next")
    assert desk.work() == 0
    hold_back()
    assert end_of(waiting) == HELD
    assert fresh(waiting).hold_reason == "circuit"


def test_one_call_tries_it_and_then_the_others_go_on(desk: Desk) -> None:
    in_trouble(desk, 5)
    waiting = [desk.approved(order=f"w{number}") for number in range(3)]
    hold_back()
    assert tend() == 1
    assert [fresh(command).status for command in waiting] == ["ready", "held", "held"]
    assert hold_back() == 0, "the one on trial is let through"
    desk.till.answers = []
    assert desk.work() == 1
    tend()
    assert Hold.objects.get().status == "lifting"
    release()
    desk.work()
    assert {fresh(command).status for command in waiting} == {"confirmed"}


def test_a_failed_trial_waits_twice_as_long(desk: Desk) -> None:
    in_trouble(desk, 5)
    waiting = [desk.approved(order=f"w{number}") for number in range(2)]
    hold_back()
    tend()
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    tend()
    hold = Hold.objects.get()
    assert (hold.status, hold.pause_s) == ("in_force", 60)
    assert [fresh(command).status for command in waiting] == ["unknown", "held"]


def test_a_trial_that_lapsed_says_nothing_and_the_next_one_is_tried(desk: Desk) -> None:
    in_trouble(desk, 5)
    first, second = (desk.approved(order=f"w{number}") for number in range(2))
    hold_back()
    age(first.run_id, 3600, "approvals_proposal")
    assert tend() == 1
    assert fresh(first).void_reason == "lapsed"
    tend()  # it was not sent
    tend()
    assert fresh(second).status == "ready"


def test_with_nothing_waiting_it_closes_and_the_next_failure_opens_it_again(desk: Desk) -> None:
    in_trouble(desk, 5)
    tend()
    release()
    assert Hold.objects.get().status == "lifted"
    desk.approved(order="next")
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    assert list(Hold.objects.order_by("placed_at").values_list("status", flat=True)) == ["lifted", "in_force"]


def test_a_key_reused_with_other_parameters_freezes_the_connector_until_a_person_lifts_it(desk: Desk) -> None:
    bad, waiting = desk.approved(order="1"), desk.approved(order="2")
    desk.till.answers = [answer(422, code="key_reused")]
    desk.work(limit=1)
    assert desk.work() == 0
    hold_back()
    assert (fresh(bad).status, fresh(bad).failure_code) == ("unknown", "key_reused")
    assert end_of(waiting) == HELD
    hold = Hold.objects.get()
    assert (hold.reason, hold.until) == ("circuit", None)
    assert RepairPacket.objects.get(run_id=bad.run_id).cause == "command_key_reused"
    assert tend_circuits(by=SWEEP, clock=db_clock) == 0
    lift(hold_id=hold.pk, tenant_id=desk.tenant.pk, why="it was their fault", by=ROOT, clock=db_clock)
    release()
    desk.work()
    assert Run.objects.get(pk=waiting.run_id).status in ("completed", "running")


def test_a_reused_key_keeps_an_open_circuit_open(desk: Desk) -> None:
    """What would close by itself no longer does."""
    in_trouble(desk, 5)
    tried = desk.approved(order="tried")
    hold_back()
    tend()
    desk.till.answers = [answer(422, code="key_reused")]
    desk.work()
    assert fresh(tried).status == "unknown"
    assert Hold.objects.get().until is None
    assert tend() == 0
