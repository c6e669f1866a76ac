"""A worker that comes back after its command was settled without it: what it brings is evidence, and is looked at."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from access.enums import Role
from access.models import Membership
from audit.models import Event
from common.clock import db_clock
from tests.factories import make_user
from tests.workflows.conftest import AGENT, Desk, person
from tests.workflows.later import SWEEP, age, end_of, fresh, look_up, open_packets, recover
from tests.workflows.test_circuit import in_trouble
from tests.workflows.test_freezing import frozen, hold_back
from tests.workflows.test_races import Beside
from tests.workflows.test_worker_answers import CONFIRMED, answer
from tests.workflows.test_worker_unknown import NOT_FOUND, SETTLED, sent
from tests.workflows.toy import NOT_SENT, PAID, ToyPay
from workflows.actions.asking_again import MayHaveHappened, ask_again
from workflows.actions.cancelling import cancel_run
from workflows.actions.freezing import lock_hold, move_hold
from workflows.authoring import Finding
from workflows.enums import Lane
from workflows.models import Attempt, Command, Hold, Run
from workflows.worker.claim import Claim, claim_commands
from workflows.worker.store import store_answer

pytestmark = pytest.mark.django_db


def freed(desk: Desk) -> tuple[Command, Claim]:
    """Sent, its worker lost, looked up after the settle time and not found: ready again."""
    command, claim = sent(desk)
    age(command.run_id, SETTLED, "workflows_command")
    recover()
    desk.till.findings = [NOT_FOUND]
    assert look_up(command)
    assert fresh(command).status == "ready"
    return command, claim


def test_it_happened_after_all_and_is_not_sent_again(desk: Desk) -> None:
    """Settled as *did not happen*, and then the first worker says *paid*: a second call would be a second effect."""
    command, claim = freed(desk)
    store_answer(claim, PAID, by=SWEEP, clock=db_clock)
    desk.work()
    assert desk.till.calls == []
    assert (fresh(command).status, fresh(command).effect) == ("unknown", "unknown")
    assert look_up(command)
    assert end_of(command) == CONFIRMED
    assert (fresh(command).settled_by, fresh(command).provider_reference) == ("late_answer", "re_1")


def test_a_late_no_changes_nothing_and_it_goes_on(desk: Desk) -> None:
    command, claim = freed(desk)
    store_answer(claim, NOT_SENT, by=SWEEP, clock=db_clock)
    desk.work()
    assert fresh(command).status == "confirmed"
    assert len(desk.till.calls) == 1


def test_what_was_cancelled_as_not_happened_and_did_is_told_to_people(desk: Desk) -> None:
    command, claim = freed(desk)
    cancel_run(tenant_id=desk.tenant.pk, run_id=command.run_id, reason="no need", by=AGENT, clock=db_clock)
    before = fresh(command)
    assert before.status == "cancelled"
    store_answer(claim, PAID, by=SWEEP, clock=db_clock)
    assert fresh(command).state_version == before.state_version
    assert open_packets(command.run_id) == ["late_effect"]


@pytest.mark.parametrize(("reference", "packets"), [("re_1", []), ("re_other", ["late_effect"])])
def test_a_late_yes_beside_another_effect(desk: Desk, reference: str, packets: list[str]) -> None:
    """The same effect, found by look-up meanwhile, is no news; another one may be a second."""
    command, claim = sent(desk)
    age(command.run_id, SETTLED, "workflows_command")
    recover()
    desk.till.findings = [Finding("happened", reference=reference)]
    assert look_up(command)
    store_answer(claim, PAID, by=SWEEP, clock=db_clock)
    assert open_packets(command.run_id) == packets
    assert Event.objects.filter(kind="attempt.late_evidence").count() == 1


# -- a late yes about what was settled as no: whatever happens next, nobody does it again unasked ----------------------


def voided(desk: Desk) -> tuple[Command, Claim]:
    """Sent, lost, not found, and its time over: void, with a worker that still has something to say."""
    command, claim = sent(desk)
    age(command.run_id, 3600)
    recover()
    desk.till.findings = [NOT_FOUND]
    assert look_up(command)
    assert fresh(command).void_reason == "lapsed"
    return command, claim


def late_yes(claim: Claim) -> None:
    store_answer(claim, PAID, by=SWEEP, clock=db_clock)


@pytest.mark.parametrize("state", ["ready", "held", "claimed"])
def test_it_is_in_doubt_at_once_whatever_it_waits_for(desk: Desk, state: str) -> None:
    command, claim = freed(desk)
    if state == "held":
        frozen(desk)
        hold_back()
    elif state == "claimed":
        claim_commands(limit=1, lane=Lane.NEW, worker="second", by=SWEEP, clock=db_clock)
    assert fresh(command).status == state
    late_yes(claim)
    assert (fresh(command).status, fresh(command).failure_code) == ("unknown", "late_evidence")
    assert look_up(command)
    assert end_of(command) == CONFIRMED
    assert desk.till.calls == []


def test_what_is_void_is_not_asked_again_while_a_late_answer_says_that_it_happened(desk: Desk) -> None:
    olga = make_user(desk.tenant, "olga", roles=[Role.OPERATOR])
    command, claim = voided(desk)
    late_yes(claim)
    with pytest.raises(MayHaveHappened):
        ask_again(
            tenant_id=desk.tenant.pk, run_id=command.run_id, step="pay", by=person(olga), clock=db_clock
        )
    assert open_packets(command.run_id) == ["command_lapsed", "late_effect"]


@pytest.mark.parametrize("calls_at_once", [1, 10])
def test_another_run_for_the_same_thing_is_not_sent_either(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, calls_at_once: int
) -> None:
    monkeypatch.setattr(settings, "PLACET_CALLS_AT_ONCE", calls_at_once)
    command, claim = voided(desk)
    late_yes(claim)
    second = desk.approved()
    desk.work()
    assert desk.till.calls == []
    assert fresh(second).failure_code == "earlier_effect"
    assert fresh(command).status == "void"


@pytest.mark.parametrize("second", [answer(422), answer(401), answer(429), NOT_SENT], ids=str)
def test_no_to_the_second_try_settles_nothing_once_the_first_said_yes(desk: Desk, second: Any) -> None:
    command, claim = freed(desk)

    def meanwhile(call: Any) -> Any:
        late_yes(claim)
        return second

    desk.till.answers = [meanwhile]
    desk.work()
    assert (fresh(command).status, fresh(command).effect) == ("unknown", "unknown")
    assert look_up(command)
    assert fresh(command).provider_reference == "re_1"


def test_two_effects_are_told_to_people_and_only_they_close_it(desk: Desk) -> None:
    command, claim = freed(desk)

    def meanwhile(call: Any) -> Any:
        late_yes(claim)
        return replace(PAID, reference="re_2")

    desk.till.answers = [meanwhile]
    desk.work()
    assert fresh(command).provider_reference == "re_2"
    desk.advance()
    assert Run.objects.get(pk=command.run_id).status == "completed"
    assert open_packets(command.run_id) == ["late_effect"]


def test_a_reused_key_that_is_told_late_freezes_the_connector_too(desk: Desk) -> None:
    command, claim = freed(desk)
    store_answer(claim, answer(422, code="key_reused"), by=SWEEP, clock=db_clock)
    desk.work()
    assert desk.till.calls == []
    assert (fresh(command).status, fresh(command).failure_code) == ("unknown", "key_reused")
    assert Hold.objects.filter(until__isnull=True, status="in_force").exists()


def test_a_reused_key_freezes_the_connector_though_its_circuit_closes_just_now(desk: Desk) -> None:
    _, claim = sent(desk)
    in_trouble(desk, 5)
    known = Hold.objects.get()
    with transaction.atomic():
        hold = lock_hold(known.pk)
        seen = answer(422, code="key_reused")
        storing = Beside(lambda: store_answer(claim, seen, by=SWEEP, clock=db_clock))
        assert storing.waits()
        move_hold(hold, "lift", SWEEP, "it works", at=db_clock(), by="clock:sweep", why="it works")
    storing.end()
    assert Hold.objects.filter(status="in_force", until__isnull=True).exists()


def test_a_worker_that_slept_is_no_trouble_of_the_provider(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        desk.approved(order=str(number))
    monkeypatch.setattr(ToyPay, "call_deadline", timedelta(0))
    desk.work()
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"came_too_late"}
    assert not Hold.objects.exists()


def test_a_row_that_somebody_holds_for_long_is_no_dead_worker(desk: Desk) -> None:
    """A lock that is not to be had in time is given back for; it counts towards no quarantine."""
    command = desk.approved()
    with transaction.atomic():
        list(Membership.objects.select_for_update().filter(user=desk.ada))
        Beside(desk.work).end()
    assert (fresh(command).status, fresh(command).lane) == ("ready", "new")
    assert Attempt.objects.get().outcome == "given_back"
    desk.work()
    assert fresh(command).status == "confirmed"


@pytest.mark.parametrize("over", [True, False], ids=["time is over", "in time"])
def test_a_late_yes_that_comes_while_the_provider_is_asked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, over: bool
) -> None:
    """*Not found* was asked before the worker came back: what it brings stands above that."""
    command, claim = sent(desk)
    age(command.run_id, SETTLED, "workflows_command")
    recover()
    if over:
        age(command.run_id, 3600, "approvals_proposal")

    def asked(self: Any, call: Any) -> Finding:
        late_yes(claim)
        return NOT_FOUND

    monkeypatch.setattr(ToyPay, "reconcile", asked)
    assert look_up(command)
    assert end_of(command) == CONFIRMED
