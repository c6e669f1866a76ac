"""Each choice from its page to what comes of it: the good way, the words, the history."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from access.enums import Role
from access.models import Group
from approvals.models import Proposal
from audit.models import Event
from common.clock import db_clock
from repair.choices.case import LESSONS
from repair.models import RepairCause, RepairMove
from tests.factories import make_packet
from tests.repair.choosing import (
    CAUSE,
    Operator,
    lapsed,
    moves,
    not_supplied,
    now,
    operator,
    packet_of,
    refused,
    unknown,
)
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, end_of, fresh, look_up
from tests.workflows.test_worker_answers import CONFIRMED, READY, UNKNOWN
from tests.workflows.toy import PAID, ToyPay
from workflows.authoring import Done, Finding, Observation
from workflows.models import Attestation, Run
from workflows.worker.checks import settled_from
from workflows.worker.reconcile import reconcile_due

pytestmark = pytest.mark.django_db


@pytest.fixture
def opal(desk: Desk) -> Operator:
    return operator(desk)


def chosen(packet: Any, code: str) -> Event:
    [event] = Event.objects.filter(kind="packet.chosen", subject_id=packet.pk, body__choice=code)
    return event


# -- whose it is ----------------------------------------------------------------------------------------------------


def test_take_it_and_give_it_back(desk: Desk, opal: Operator) -> None:
    _, packet = unknown(desk)
    assert opal.choose(packet, "take").status_code == 302
    taken = now(packet)
    assert (taken.status, taken.assignee_id, taken.state_version) == ("in_progress", opal.user.pk, 2)
    assert taken.wait_id != packet.wait_id
    assert (chosen(packet, "take").performed_by, chosen(packet, "take").to_state) == (
        f"user:{opal.user.pk}",
        "in_progress",
    )
    assert opal.offered(taken)["take"] == "already_yours"
    assert opal.choose(taken, "give_back").status_code == 302
    back = now(packet)
    assert (back.status, back.assignee_id) == ("open", None)
    assert moves(packet) == [("opal", "take", ""), ("opal", "give_back", "")]


def test_somebody_else_takes_it_over(desk: Desk, opal: Operator) -> None:
    _, packet = unknown(desk)
    opal.choose(packet, "take")
    otto = operator(desk, "otto", [Role.OWNER])
    assert "opal" in otto.page(packet, "take").content.decode()
    otto.choose(packet, "take")
    assert (now(packet).assignee_id, now(packet).status) == (otto.user.pk, "in_progress")


def test_route_it_to_a_person_and_to_a_queue(desk: Desk, opal: Operator) -> None:
    _, packet = unknown(desk)
    opal.choose(packet, "take")
    otto, group = (
        operator(desk, "otto", [Role.ADMIN]),
        Group.objects.create(tenant=desk.tenant, name="Night shift"),
    )
    assert opal.choose(packet, "route", to=f"user:{otto.user.pk}", words="He knows it.").status_code == 302
    assert (now(packet).assignee_id, now(packet).status, now(packet).owner) == (
        otto.user.pk,
        "open",
        "toy-desk",
    )
    assert opal.choose(packet, "route", to=f"group:{group.pk}").status_code == 302
    assert (now(packet).assignee_id, now(packet).owner) == (None, "Night shift")
    assert [row.words for row in RepairMove.objects.filter(choice="route")] == [
        "He knows it.",
        "I looked at it.",
    ]


@pytest.mark.parametrize("to", ["", "user:nobody", "group:0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"])
def test_it_is_routed_to_nobody_else(desk: Desk, opal: Operator, to: str) -> None:
    _, packet = unknown(desk)
    assert opal.choose(packet, "route", to=to).status_code == 422
    reviewer = desk.ada
    assert opal.choose(packet, "route", to=f"user:{reviewer.pk}").status_code == 422
    assert now(packet).owner == "toy-desk"


# -- what became of it ----------------------------------------------------------------------------------------------


def test_look_it_up_now_makes_it_due_and_asks_nobody_itself(desk: Desk, opal: Operator) -> None:
    command, packet = unknown(desk)
    asked = desk.till.lookups
    assert opal.choose(packet, "look_up", words="").status_code == 302
    assert (fresh(command).status, desk.till.lookups) == ("unknown", asked)
    assert opal.offered(packet)["look_up"] == "look_up_due"
    [event] = Event.objects.filter(kind="command.look_up_asked")
    assert event.performed_by == f"user:{opal.user.pk}"
    desk.till.findings = [Finding("happened", "re_7")]
    assert reconcile_due(by=SWEEP, clock=db_clock, worker="w") == 1
    assert end_of(command) == CONFIRMED
    assert now(packet).status == "resolved"


@pytest.mark.parametrize(("code", "effect"), [("happened", "happened"), ("partial", "partial")])
def test_it_happened(desk: Desk, opal: Operator, code: str, effect: str) -> None:
    command, packet = unknown(desk)
    assert opal.choose(packet, code, reference="").status_code == 422
    assert end_of(command) == UNKNOWN
    assert opal.choose(packet, code, reference="re_9").status_code == 302
    assert end_of(command) == CONFIRMED | {"effect": effect}
    assert (now(packet).status, now(packet).resolution) == ("resolved", "confirmed")
    assert len(desk.till.calls) == 1
    row = RepairMove.objects.get(packet=packet)
    assert (row.choice, row.root_cause.title if row.root_cause else "", row.words) == (
        code,
        CAUSE,
        "I looked at it.",
    )


def test_it_did_not_happen_and_is_sent_with_the_same_key(desk: Desk, opal: Operator) -> None:
    command, packet = unknown(desk)
    page = opal.page(packet, "did_not_happen").content.decode()
    assert command.idempotency_key in page
    assert "No earlier request can take effect any more." in page
    assert "1 of 1 needed still count" in page
    assert opal.choose(packet, "did_not_happen").status_code == 302
    assert end_of(command) == READY
    desk.till.answers = [PAID]
    desk.work()
    assert len({call.idempotency_key for call in desk.till.calls}) == 1
    assert end_of(command) == CONFIRMED


def test_not_before_a_late_effect_is_impossible(desk: Desk, opal: Operator) -> None:  # field report O1
    command, packet = unknown(desk, settled=False)
    assert opal.offered(packet)["did_not_happen"] == "not_settled_yet"
    answer = opal.choose(packet, "did_not_happen")
    assert answer.status_code == 409
    assert "not_settled_yet" in answer.content.decode()
    until = settled_from(command, ToyPay())
    assert f"offered from {until:%Y-%m-%d %H:%M:%S} UTC on" in answer.content.decode()
    page = opal.page(packet, "happened").content.decode()
    assert "Until then an earlier request may still take effect." in page
    assert end_of(command) == UNKNOWN


def test_from_the_limit_on_it_takes_a_second_person(
    desk: Desk, opal: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyPay, "second_person_from", Decimal(10))
    command, packet = unknown(desk)
    assert "two people must say the same" in opal.page(packet, "did_not_happen").content.decode()
    assert opal.choose(packet, "did_not_happen").status_code == 302
    assert (now(packet).status, end_of(command)["command"]) == ("awaiting_second", "unknown")
    assert opal.choose(packet, "did_not_happen").status_code == 302
    assert (Attestation.objects.count(), end_of(command)["command"]) == (1, "unknown")
    otto = operator(desk, "otto", [Role.OWNER])
    assert otto.choose(packet, "happened", reference="re_1").status_code == 409  # contradicts
    assert otto.choose(packet, "did_not_happen").status_code == 302
    assert end_of(command) == READY


def test_send_it_again_with_the_same_key(desk: Desk, opal: Operator, monkeypatch: pytest.MonkeyPatch) -> None:

    command, packet = unknown(desk)
    assert opal.offered(packet)["send_again"] == "no_key_memory"
    monkeypatch.setattr(ToyPay, "key_retention", timedelta(hours=24))
    page = opal.page(packet, "send_again").content.decode()
    assert "At most this request, once" in page
    assert command.idempotency_key in page
    assert opal.choose(packet, "send_again").status_code == 302
    assert len(desk.till.calls) == 1
    desk.till.answers = [PAID]
    assert reconcile_due(by=SWEEP, clock=db_clock, worker="w") == 1
    assert end_of(command) == CONFIRMED
    assert [call.idempotency_key for call in desk.till.calls] == [command.idempotency_key] * 2


# -- asked anew -----------------------------------------------------------------------------------------------------


def test_ask_again(desk: Desk, opal: Operator) -> None:
    command, packet = lapsed(desk)
    assert opal.choose(packet, "ask_again", words="").status_code == 302
    assert now(packet).resolution == "asked_again"
    proposal = Proposal.objects.get(run_id=command.run_id, status="pending")
    assert (proposal.version, proposal.supersedes_id) == (2, command.proposal_id)


def test_correct_it_and_propose_it_anew(desk: Desk, opal: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    command, packet = refused(desk)
    assert opal.offered(packet)["correct"] == "not_editable"
    monkeypatch.setattr(ToyPay, "editable", ("amount",))
    assert opal.choose(packet, "correct", asked_amount="10.00").status_code == 422  # nothing_changed
    look = opal.choose(packet, "correct", asked_amount="7.50", decision="look")
    assert look.status_code == 200
    assert "10.00 → 7.50" in look.content.decode()
    assert Proposal.objects.filter(run_id=command.run_id).count() == 1
    assert opal.choose(packet, "correct", asked_amount="lots", decision="look").status_code == 422
    assert opal.choose(packet, "correct", asked_amount="7.50").status_code == 302
    proposal = Proposal.objects.get(run_id=command.run_id, status="pending")
    assert (proposal.version, proposal.edited_by_id) == (2, opal.user.pk)
    assert str(opal.user.pk) in proposal.excluded_users or opal.user.pk in proposal.excluded_users
    assert proposal.idempotency_key != command.idempotency_key
    assert now(packet).resolution == "proposed"
    [event] = Event.objects.filter(kind="step.corrected")
    assert event.body["instead_of"] == str(command.proposal_id)
    desk.decide(proposal)
    desk.till.answers = [PAID]
    desk.work()
    assert [call.arguments.amount for call in desk.till.calls] == ["10.00", "7.50"]


def test_what_was_given_up_may_be_proposed_as_it_was(desk: Desk, opal: Operator) -> None:

    command = desk.approved()
    desk.till.answers = [Observation(sent=True, status=401, code="unauthorized")]
    desk.work()
    assert fresh(command).status == "dead"
    packet = packet_of(command.run_id)
    assert opal.choose(packet, "correct").status_code == 302
    proposal = Proposal.objects.get(run_id=command.run_id, status="pending")
    assert (proposal.edited_by_id, proposal.idempotency_key) == (None, command.idempotency_key)


def test_provide_the_missing_data(desk: Desk, opal: Operator) -> None:
    run, packet = not_supplied(desk)
    page = opal.page(packet, "supply").content.decode()
    assert "Which order?" in page
    assert (
        opal.choose(packet, "supply", asked_order="7", asked_times="two", asked_sure="true").status_code
        == 422
    )
    assert opal.choose(packet, "supply", asked_order="7").status_code == 422
    desk.till.stages["judge"] = lambda context: Done(dict(context.data))
    answer = opal.choose(packet, "supply", asked_order="7", asked_times="2", asked_sure="true")
    assert answer.status_code == 302
    assert now(packet).resolution == "data_supplied"
    desk.advance()
    proposal = Proposal.objects.get(run_id=run.pk)
    assert str(opal.user.pk) in [str(user) for user in proposal.excluded_users]


# -- the end --------------------------------------------------------------------------------------------------------


def test_cancel_the_run(desk: Desk, opal: Operator) -> None:
    command, packet = refused(desk)
    assert opal.choose(packet, "cancel", words="").status_code == 422
    assert opal.choose(packet, "cancel").status_code == 302
    run = Run.objects.get(pk=command.run_id)
    assert (run.status, run.cancel_reason) == ("cancelled", "I looked at it.")
    assert now(packet).status == "resolved"


def test_cancelling_what_is_in_doubt_is_a_wish(desk: Desk, opal: Operator) -> None:
    command, packet = unknown(desk)
    assert "cancelling is a wish" in opal.page(packet, "cancel").content.decode()
    assert opal.choose(packet, "cancel").status_code == 302
    assert (end_of(command)["command"], now(packet).status) == ("unknown", "open")
    assert opal.offered(packet)["cancel"] == "cancel_requested"
    assert opal.choose(packet, "did_not_happen").status_code == 302
    assert end_of(command)["command"] == "cancelled"
    assert len(desk.till.calls) == 1


def test_close_it_as_handled_outside(desk: Desk, opal: Operator) -> None:
    command, packet = refused(desk)
    assert opal.choose(packet, "close", words="Paid at the counter.").status_code == 302
    run = Run.objects.get(pk=command.run_id)
    assert (run.status, run.outcome, run.corrected_outcome) == ("cancelled", "cancelled", "handled_outside")
    assert run.correction_reason == "Paid at the counter."
    assert now(packet).status == "resolved"


def test_a_late_effect_is_closed_by_a_person_and_nothing_else_moves(desk: Desk, opal: Operator) -> None:
    command = desk.approved()
    desk.work()
    desk.advance()
    run = Run.objects.get(pk=command.run_id)

    packet = make_packet(run, cause="late_effect", step="pay", command_id=command.pk)
    before = end_of(command) | {"packets": []}
    assert "Only this case is closed" in opal.page(packet, "close").content.decode()
    assert opal.choose(packet, "close").status_code == 302
    assert (now(packet).status, now(packet).resolution) == ("resolved", "handled_outside")
    assert end_of(command) == before


def test_what_may_have_happened_is_not_buried(desk: Desk, opal: Operator) -> None:
    command, packet = unknown(desk)
    answer = opal.choose(packet, "close")
    assert (answer.status_code, end_of(command)) == (409, UNKNOWN)
    assert "outcome_unknown" in answer.content.decode()
    assert moves(packet) == [("opal", "close", "outcome_unknown")]


# -- causes ---------------------------------------------------------------------------------------------------------


def test_the_list_of_causes_grows(desk: Desk, opal: Operator) -> None:
    _, packet = refused(desk)
    assert opal.choose(packet, "cancel", cause="").status_code == 422
    assert opal.choose(packet, "cancel", cause="new", new_cause=" ").status_code == 422
    assert opal.choose(packet, "cancel", cause="new", new_cause="The till was  full").status_code == 302
    assert [row.title for row in RepairCause.objects.all()] == ["The till was full"]
    _, other = refused(desk, "1050")
    assert "The till was full" in opal.page(other, "cancel").content.decode()
    assert opal.choose(other, "cancel", cause="The till was full").status_code == 302
    assert RepairCause.objects.count() == 1


def test_the_cause_of_what_closed_by_itself_is_said_afterwards(desk: Desk, opal: Operator) -> None:
    command, packet = unknown(desk)
    assert opal.offered(packet)["note_cause"] == "packet_open"
    desk.till.findings = [Finding("happened", "re_7")]
    assert look_up(command)
    assert opal.choose(packet, "note_cause", words="").status_code == 302
    assert opal.offered(packet)["note_cause"] == "cause_known"
    left = {code: why for code, why in opal.offered(packet).items() if code not in LESSONS}
    assert set(left.values()) - {"packet_closed", "cause_known"} == set()
