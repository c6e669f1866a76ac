"""``POST /proposals/{id}/decisions``: a signed-in person, on exactly what they were shown, once."""

from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from approvals.models import Decision, Proposal
from audit.models import Event
from common.clock import db_clock
from common.digests import view_digest
from common.ids import new_id
from tests.api.callers import ROOT, as_json, decision_body, proposal_body, refused, signed_in
from tests.api.conftest import World
from tests.factories import make_proposal, make_user
from tests.workflows.toy import ToyPay
from workflows.authoring import Verdict
from workflows.models import Command

pytestmark = pytest.mark.django_db


def path_of(proposal: dict[str, Any]) -> str:
    return f"/proposals/{proposal['id']}/decisions"


def test_the_view_is_the_stored_one_with_a_receipt_for_each_part(world: World) -> None:
    proposal = world.proposed()
    view = world.view(proposal)
    assert view_digest(b64decode(view["view_bytes"])) == view["view_digest"] == proposal["view_digest"]
    assert view["view"]["contract_digest"] == view["digest"] == proposal["digest"]
    assert list(view["receipts"]) == ["main"]


def test_an_approval_makes_the_command(world: World) -> None:
    proposal = world.proposed()
    outcome = as_json(world.decide(proposal))
    command = Command.objects.get()
    assert outcome == {
        "result": "approved", "votes": 1, "needed": 1, "proposal_status": "approved", "command_id": str(command.pk),
        "state_version": 2, "decision_id": str(Decision.objects.get().pk), "replayed": False, "next_action": "wait",
        "retry_after": 5, "event_id": str(Event.objects.get(kind="proposal.vote").pk),
    }  # fmt: skip


def test_receipts_are_taken_by_part_too(world: World) -> None:
    proposal = world.proposed()
    assert (
        as_json(world.decide(proposal, view_receipts=world.view(proposal)["receipts"]))["result"]
        == "approved"
    )


def test_the_same_decision_again_is_answered_with_the_original(world: World) -> None:  # field report G3
    proposal = world.proposed()
    body = decision_body(world.view(proposal))
    first = as_json(world.ada.post(path_of(proposal), body))
    again = as_json(world.ada.post(path_of(proposal), body))
    assert again == first | {"replayed": True}
    assert Command.objects.count() == Decision.objects.count() == 1


def test_the_opposite_after_the_end_is_told_what_stands(world: World) -> None:  # field reports A2, G3
    proposal = world.proposed()
    as_json(world.decide(proposal))
    details = refused(world.decide(proposal, "reject"), 409, "already_decided")
    assert details["proposal_status"] == "approved"
    assert (details["decision"]["decision"], details["decision"]["by"]) == (
        "approve",
        f"user:{world.desk.ada.pk}",
    )
    details = refused(world.decide(proposal, person=world.ben), 409, "already_decided")
    assert details["decision"]["by"] == f"user:{world.desk.ada.pk}"


def test_two_people_are_two_people_and_a_mind_may_change(world: World) -> None:  # field reports G1, G4
    world.desk.till.verdict = Verdict("ask_two", "toy.two", "Two.")
    proposal = world.proposed()
    first = as_json(world.decide(proposal))
    assert (first["result"], first["votes"], first["needed"]) == ("recorded", 1, 2)
    assert as_json(world.decide(proposal))["votes"] == 1
    found = as_json(world.agent.get(f"/proposals/{proposal['id']}"))
    assert (found["votes"], found["still_needed"], found["status"]) == (1, 1, "pending")
    second = as_json(world.decide(proposal, person=world.ben))
    assert (second["result"], second["votes"], second["proposal_status"]) == ("approved", 2, "approved")


def test_a_later_vote_of_the_same_person_replaces_the_earlier(world: World) -> None:
    world.desk.till.verdict = Verdict("ask_two", "toy.two", "Two.")
    proposal = world.proposed()
    as_json(world.decide(proposal))
    assert as_json(world.decide(proposal, "reject"))["result"] == "rejected"
    assert Decision.objects.count() == 2
    assert as_json(world.agent.get(f"/proposals/{proposal['id']}"))["votes"] == 0


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"digest": "0" * 64}, 409, "digest_mismatch"),
        ({"view_digest": "0" * 64}, 409, "view_mismatch"),
        ({"view_receipts": []}, 422, "not_all_shown"),
        ({"view_receipts": ["forged"]}, 422, "not_all_shown"),
        ({"decision": "reject", "reason": " "}, 422, "reason_required"),
        ({"decision": "request_changes", "reason": ""}, 422, "reason_required"),
        ({"decision": "Approve "}, 422, "unknown_decision"),
        ({"decision": "yes"}, 422, "unknown_decision"),
        ({"decision": ""}, 422, "unknown_decision"),
        ({"decision": None}, 422, "invalid"),
        ({"decision": True}, 422, "invalid"),
        ({"decision": ["approve"]}, 422, "invalid"),
        ({"surplus": 1}, 422, "invalid"),
        ({"user_id": "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"}, 422, "invalid"),
        ({"decision": "reject", "reason_code": "because"}, 422, "unknown_reason"),
        ({"view_receipts": "main"}, 422, "invalid"),
        ({"digest": 7}, 422, "invalid"),
    ],
)
def test_what_is_not_exactly_a_decision_records_nothing(  # field reports B3, B11
    world: World, changes: dict[str, object], status: int, code: str
) -> None:
    proposal = world.proposed()
    refused(world.decide(proposal, **changes), status, code)
    assert not Decision.objects.exists()
    assert Proposal.objects.get().status == "pending"


def test_the_decision_needs_its_word(world: World) -> None:
    proposal = world.proposed()
    body = decision_body(world.view(proposal))
    del body["decision"]
    refused(world.ada.post(path_of(proposal), body), 422, "invalid")


def test_what_was_not_shown_is_listed(world: World) -> None:
    proposal = world.proposed()
    assert refused(world.decide(proposal, view_receipts=[]), 422, "not_all_shown") == {"parts": ["main"]}
    theirs = list(world.view(proposal, world.ben)["receipts"].values())
    assert refused(world.decide(proposal, view_receipts=theirs), 422, "not_all_shown") == {"parts": ["main"]}


def test_what_was_not_acknowledged_is_listed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    warning = ("odd_amount", "amount", "It is twice the usual amount.")
    monkeypatch.setattr(ToyPay, "warnings", lambda self, arguments, facts: (warning,))
    proposal = world.proposed()
    asked = world.view(proposal)["to_acknowledge"]
    assert asked == ["odd_amount:/amount"]
    assert refused(world.decide(proposal, acknowledged=[]), 422, "not_acknowledged") == {"warnings": asked}
    assert as_json(world.decide(proposal))["result"] == "approved"


def test_a_reason_code_is_reason_enough(world: World) -> None:
    proposal = world.proposed()
    outcome = as_json(world.decide(proposal, "reject", reason="", reason_code="wrong_amount"))
    assert (outcome["result"], outcome["proposal_status"], outcome["next_action"]) == (
        "rejected",
        "rejected",
        "stop",
    )


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("expired", "expired"), ("superseded", "superseded"), ("withdrawn", "withdrawn"),
        ("invalidated", "invalidated"), ("lapsed", "invalidated"), ("rejected", "already_decided"),
        ("changes_requested", "already_decided"), ("consumed", "already_decided"),
    ],
)  # fmt: skip
def test_a_late_click_is_told_why(world: World, status: str, code: str) -> None:
    proposal = make_proposal(tenant=world.desk.tenant, status=status)
    details = refused(world.decide({"id": str(proposal.pk)}), 409, code)
    assert details["proposal_status"] == status
    assert not Decision.objects.exists()


def test_after_its_time_nobody_approves(world: World) -> None:
    proposal = make_proposal(tenant=world.desk.tenant, at=db_clock() - timedelta(hours=5))
    refused(world.decide({"id": str(proposal.pk)}), 409, "expired")
    assert not Decision.objects.exists()


def test_nobody_decides_who_is_not_asked(world: World) -> None:  # field reports K6, K4
    proposal = world.proposed()
    auditor = signed_in(make_user(world.desk.tenant, "olga", roles=["auditor"]))
    for decision in ("approve", "reject"):
        refused(world.decide(proposal, decision, person=auditor), 403, "not_eligible")


def test_nobody_decides_on_their_own(world: World) -> None:
    proposal = make_proposal(tenant=world.desk.tenant, excluded_users=[world.desk.ada.pk])
    refused(world.decide({"id": str(proposal.pk)}), 403, "own_proposal")


def test_the_same_thing_twice_is_not_approved_twice(world: World) -> None:  # field report A13
    first, second = world.approved(), world.proposed("k-2")
    details = refused(world.decide(second), 409, "action_in_progress")
    assert details["command_id"] == first["command_id"]
    assert as_json(world.agent.get(f"/proposals/{second['id']}"))["status"] == "pending"


def test_another_tenants_proposal_is_missing_before_anything_else(world: World) -> None:  # field report K1
    proposal = world.proposed()
    body = decision_body(world.view(proposal))
    theirs = world.foreign_reviewer.post(path_of(proposal), body)
    nobodys = world.foreign_reviewer.post(f"/proposals/{new_id()}/decisions", body)
    refused(theirs, 404, "not_found")
    assert told(theirs) == told(nobodys)


def told(answer: Any) -> dict[str, Any]:
    """A problem document without what names this very request."""
    return {name: value for name, value in answer.json().items() if name not in ("instance", "request_id")}


def test_without_a_session_nobody_decides(world: World) -> None:
    proposal = world.proposed()
    answer = Client().post(ROOT + path_of(proposal), {}, content_type="application/json")
    refused(answer, 401, "not_authenticated")


def test_without_the_csrf_token_nobody_decides(world: World) -> None:
    proposal = world.proposed()
    body = decision_body(world.view(proposal))
    world.ada.headers = {}
    refused(world.ada.post(path_of(proposal), body), 403, "csrf_failed")
    world.ada.headers = {"X-CSRFToken": "x" * 32}
    refused(world.ada.post(path_of(proposal), body), 403, "csrf_failed")
    assert not Decision.objects.exists()


def test_of_many_in_the_same_instant_one_wins(world: World) -> None:  # field report A4
    proposal = world.proposed()
    people = [world.ada, world.ben] + [signed_in(make_user(world.desk.tenant, f"r-{n}")) for n in range(4)]
    bodies = [
        decision_body(world.view(proposal, person), ("approve", "reject")[n % 2])
        for n, person in enumerate(people)
    ]
    barrier = Barrier(len(people))

    def click(number: int) -> Any:
        try:
            barrier.wait(timeout=20)
            return people[number].post(path_of(proposal), bodies[number])
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(people)) as pool:
        answers = list(pool.map(click, range(len(people))))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * (len(people) - 1)
    for answer in answers:
        if answer.status_code == 409:
            refused(answer, 409, "already_decided")
    assert Decision.objects.count() == 1


def test_a_double_click_is_one_decision(world: World) -> None:
    proposal = world.proposed()
    body = decision_body(world.view(proposal))
    barrier = Barrier(2)

    def click(_: int) -> Any:
        try:
            barrier.wait(timeout=20)
            return signed_in(world.desk.ada).post(path_of(proposal), body)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        answers = [as_json(answer) for answer in pool.map(click, range(2))]
    assert sorted(answer["replayed"] for answer in answers) == [False, True]
    assert {answer["decision_id"] for answer in answers} == {str(Decision.objects.get().pk)}


def test_an_agent_that_asks_again_gets_no_second_action(world: World) -> None:  # field report A1
    proposal = world.approved()
    for _ in range(5):
        again = as_json(world.agent.post("/proposals", proposal_body()), 200)
        assert again["id"] == proposal["id"]
    world.desk.work()
    assert Command.objects.count() == 1
    assert len(world.desk.till.calls) == 1
