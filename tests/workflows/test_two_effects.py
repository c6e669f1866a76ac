"""A step whose first order was settled as *nothing happened*, and had happened: its later orders, and their undoing."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings

from access.enums import Role
from access.models import User
from audit.models import Event
from common.clock import db_clock
from tests.factories import make_user
from tests.workflows.conftest import Desk, person
from tests.workflows.later import SWEEP, age, fresh, look_up, recover
from tests.workflows.test_compensating import TAKEN_BACK, in_part, paid, refusal, undo
from tests.workflows.test_worker_unknown import NOT_FOUND
from tests.workflows.toy import NOTHING_CAME, PAID
from tests.workflows.toy_back import FLOW, PayBack, TakeBack, installed
from workflows.actions import compensating
from workflows.actions.attesting import attest
from workflows.actions.compensating import RESTING
from workflows.actions.proposing_anew import propose_anew
from workflows.effects import effects_of
from workflows.enums import Lane
from workflows.models import Command, Run
from workflows.worker.claim import Claim, claim_commands
from workflows.worker.send import commit_sent, look
from workflows.worker.store import store_answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def back(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(PayBack, "editable", ("amount",))
    with installed(desk):
        yield desk


@pytest.fixture
def olga(back: Desk) -> User:
    return make_user(back.tenant, "olga", roles=[Role.OPERATOR, Role.REVIEWER])


def voided(desk: Desk) -> tuple[Command, Claim]:
    """Sent, its worker lost, not found, and its time over; the worker still has something to say."""
    command = desk.approved(workflow=FLOW)
    [claim] = claim_commands(limit=1, lane=Lane.NEW, worker="first", by=SWEEP, clock=db_clock)
    assert commit_sent(claim, look(claim, command), by=SWEEP, clock=db_clock)
    age(command.run_id, 3600)
    recover()
    desk.till.findings = [NOT_FOUND]
    assert look_up(command)
    assert fresh(command).void_reason == "lapsed"
    return command, claim


def corrected(desk: Desk, command: Command, olga: User) -> Command:
    """Proposed anew with another amount, under a key and a business key of its own, and approved."""
    proposal = propose_anew(
        tenant_id=desk.tenant.pk, run_id=command.run_id, step="pay", changes={"amount": "7.50"}, by=person(olga),
        clock=db_clock,
    )  # fmt: skip
    desk.decide(proposal)
    second = Command.objects.get(proposal=proposal)
    assert second.idempotency_key != command.idempotency_key
    assert second.business_key != command.business_key
    return second


def late(claim: Claim, reference: str) -> None:
    said = replace(PAID, reference=reference, body={"id": reference})
    store_answer(claim, said, by=SWEEP, clock=db_clock)


@pytest.mark.parametrize("calls_at_once", [1, 10])
def test_a_corrected_order_is_not_sent_once_the_first_is_known_to_have_happened(
    back: Desk, olga: User, monkeypatch: pytest.MonkeyPatch, calls_at_once: int
) -> None:
    """One logical step, whatever its values are by now: the second request would be its second effect."""
    monkeypatch.setattr(settings, "PLACET_CALLS_AT_ONCE", calls_at_once)
    command, claim = voided(back)
    second = corrected(back, command, olga)
    late(claim, "re_late")
    back.work()
    assert back.till.calls == []
    assert (fresh(second).status, fresh(second).failure_code) == ("dead", "earlier_effect")


def both(desk: Desk, olga: User) -> tuple[Command, Command]:
    """The late answer came when the second order had been carried out: two effects of one step, re_1 and re_late."""
    command, claim = voided(desk)
    second = corrected(desk, command, olga)
    desk.work()
    late(claim, "re_late")
    desk.advance()
    return fresh(command), fresh(second)


def found(run_id: Any) -> dict[str, str]:
    return {effect.happened.reference: effect.key for effect in effects_of(Run.objects.get(pk=run_id))}


def test_each_of_two_effects_of_one_step_has_a_name_of_its_own(back: Desk, olga: User) -> None:
    command, _ = both(back, olga)
    assert found(command.run_id) == {"re_late": "pay~twice", "re_1": "pay"}


def test_taking_the_late_one_back_leaves_the_other_one_and_the_outcome(back: Desk, olga: User) -> None:
    command, second = both(back, olga)
    proposal = undo(back, command, olga, key="pay~twice")
    back.decide(proposal)
    back.till.answers = [TAKEN_BACK]
    back.work()
    assert back.till.calls[-1].arguments.payment == "re_late"
    assert Run.objects.get(pk=command.run_id).corrected_outcome == ""
    other = undo(back, second, olga, key="pay")
    back.decide(other)
    back.till.answers = [replace(TAKEN_BACK, reference="rv_2")]
    back.work()
    assert back.till.calls[-1].arguments.payment == "re_1"
    assert Run.objects.get(pk=command.run_id).corrected_outcome == "compensated"
    assert len({call.idempotency_key for call in back.till.calls}) == 3


def test_of_two_the_known_one_is_taken_back_and_the_late_one_stands(back: Desk, olga: User) -> None:
    """The user still has it once, so the outcome is not corrected."""
    command, second = both(back, olga)
    proposal = undo(back, second, olga, key="pay")
    back.decide(proposal)
    back.work()
    assert back.till.calls[-1].arguments.payment == "re_1"
    assert Run.objects.get(pk=command.run_id).corrected_outcome == ""


def test_what_was_proposed_for_one_effect_stays_about_it(back: Desk, olga: User) -> None:
    """The late one alone is *pay*; when a second becomes known, what is proposed for the first is not about it."""
    command, claim = voided(back)
    second = corrected(back, command, olga)
    [other] = claim_commands(limit=1, lane=Lane.NEW, worker="second", by=SWEEP, clock=db_clock)
    assert commit_sent(other, look(other, second), by=SWEEP, clock=db_clock)
    late(claim, "re_late")
    assert found(command.run_id) == {"re_late": "pay"}
    proposal = undo(back, command, olga, key="pay")
    store_answer(other, PAID, by=SWEEP, clock=db_clock)
    assert found(command.run_id) == {"re_late": "pay", "re_1": "pay~twice"}
    back.decide(proposal)
    back.till.answers = [TAKEN_BACK]
    back.work()
    assert back.till.calls[-1].arguments.payment == "re_late"
    assert Run.objects.get(pk=command.run_id).corrected_outcome == ""
    assert undo(back, second, olga, key="pay~twice").status == "pending"


def test_the_same_reference_is_one_effect_whichever_order_told_of_it(back: Desk, olga: User) -> None:
    """The provider knew the key and answered with what it had done before."""
    command, claim = voided(back)
    corrected(back, command, olga)
    back.work()
    late(claim, "re_1")
    assert found(command.run_id) == {"re_1": "pay"}


# -- what stands beside the outcome ---------------------------------------------------------------------------------


def taken_back(
    desk: Desk, command: Command, olga: User, key: str = "pay", reference: str = "rv_1"
) -> Command:
    proposal = undo(desk, command, olga, key=key)
    desk.decide(proposal)
    desk.till.answers = [replace(TAKEN_BACK, reference=reference)]
    desk.work()
    return Command.objects.get(proposal=proposal)


def word(command: Command) -> str:
    return Run.objects.get(pk=command.run_id).corrected_outcome


def test_half_of_it_taken_back_is_not_all_of_it(back: Desk, olga: User) -> None:
    """It happened in part, and the rest was done: each part is taken back by itself."""
    command = in_part(back, olga)
    proposal = undo(back, command, olga, RESTING)
    back.decide(proposal)
    back.till.answers = [replace(PAID, reference="re_rest")]
    back.work()
    rest = Command.objects.get(proposal=proposal)
    taken_back(back, command, olga)
    assert word(command) == "compensated_in_part"
    taken_back(back, rest, olga, "pay~2", "rv_2")
    assert (word(command), word(rest)) == ("compensated", "compensated")


def test_a_compensation_that_is_taken_back_is_none(
    back: Desk, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TakeBack, "counter", PayBack)
    monkeypatch.setattr(TakeBack, "counter_arguments", lambda self, arguments, effect: {
        "order": arguments.order, "amount": "9.00", "currency": "EUR", "told": arguments.told})  # fmt: skip
    command = paid(back)
    first = taken_back(back, command, olga)
    assert word(command) == "compensated"
    again = taken_back(back, first, olga, "pay~undo", "re_again")
    assert (word(command), word(first)) == ("", "compensated")
    told = Event.objects.filter(kind="run.outcome_corrected", run_id=command.run_id).order_by("at").last()
    assert told is not None
    assert (told.from_state, told.to_state) == ("compensated", "paid")
    third = taken_back(back, again, olga, "pay~undo~undo", "rv_3")
    assert (word(command), word(first), word(again)) == ("compensated", "", "compensated")
    monkeypatch.setattr(compensating, "LONGEST_KEY", len("pay~undo~undo~undo"))
    assert refusal(back, third, olga, key="pay~undo~undo~undo") == "no_counter_action"


def test_the_rest_of_what_took_it_back_in_part_takes_all_of_it_back(
    back: Desk, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TakeBack, "remainder", lambda self, arguments, effect, facts: {
        "order": arguments.order, "payment": arguments.payment + "-2", "amount": "5.00", "currency": "EUR",
        "told": arguments.told})  # fmt: skip
    command = paid(back)
    proposal = undo(back, command, olga)
    back.decide(proposal)
    back.till.answers = [NOTHING_CAME]
    back.work()
    order = Command.objects.get(proposal=proposal)
    attest(
        tenant_id=back.tenant.pk, command_id=order.pk, says="partial", reference="rv_half", reason="Half of it.",
        by=person(make_user(back.tenant, "otto", roles=[Role.OWNER])), clock=db_clock,
    )  # fmt: skip
    assert word(command) == "compensated_in_part"
    rest = undo(back, order, olga, RESTING, "pay~undo")
    back.decide(rest)
    back.till.answers = [replace(TAKEN_BACK, reference="rv_rest")]
    back.work()
    assert word(command) == "compensated"
