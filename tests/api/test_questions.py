"""A reviewer asks, an automation answers: through the envelope, a callback, and a scope of its own."""

from typing import Any

import pytest

from access.enums import Scope
from approvals.actions_questions import answer, ask
from approvals.models import Answer, Proposal, Question
from audit.models import Event
from common.clock import db_clock
from common.ids import new_id
from tests.api.callers import as_json, automation, refused, token_for
from tests.api.conftest import World
from tests.tenants.planted import as_superuser
from tests.workflows.conftest import person

pytestmark = pytest.mark.django_db
WORDS = "Which of the two parcels? kanarienvogel"


def asked(world: World, proposal: dict[str, Any], text: str = WORDS) -> Question:
    return ask(
        tenant_id=world.desk.tenant.pk, proposal_id=proposal["id"], text=text, colleague=None,
        by=person(world.desk.ada), clock=db_clock,
    ).question  # fmt: skip


def reply(world: World, question: Question, text: str = "The second.", by: Any = None) -> Any:
    body = {"question_id": str(question.pk), "answer": text}
    return (by or world.agent).post(f"/proposals/{question.proposal_id}/answers", body)


def test_the_run_and_the_proposal_say_that_something_is_asked(world: World) -> None:
    proposal = world.proposed()
    before = as_json(world.agent.get(f"/runs/{proposal['run_id']}"))
    question = asked(world, proposal)
    run = as_json(world.agent.get(f"/runs/{proposal['run_id']}"))
    assert before["questions"] == []
    [seen] = run["questions"]
    assert (seen["id"], seen["proposal_id"]) == (str(question.pk), proposal["id"])
    assert "kanarienvogel" not in str(run)
    assert run["next_action"] == "wait"
    assert run["state_version"] > before["state_version"]
    [listed] = as_json(world.agent.get("/runs"))["runs"]
    assert listed["questions"] == run["questions"]
    read = as_json(world.agent.get(f"/proposals/{proposal['id']}"))
    assert [one["text"] for one in read["questions"]] == [WORDS]
    assert read["state_version"] > proposal["state_version"]
    assert (read["digest"], read["decide_by"], read["status"]) == (
        proposal["digest"],
        proposal["decide_by"],
        "pending",
    )


def test_it_is_answered_once(world: World) -> None:
    proposal = world.proposed()
    question = asked(world, proposal)
    first = as_json(reply(world, question))
    assert (first["proposal_status"], first["next_action"], first["replayed"]) == ("pending", "wait", False)
    again = as_json(reply(world, question))
    assert (again["replayed"], again["answered_at"]) == (True, first["answered_at"])
    details = refused(reply(world, question, "The first."), 409, "already_answered")
    assert details["by"] == "api:intake"
    assert Answer.objects.get().wording == "The second."
    read = as_json(world.agent.get(f"/proposals/{proposal['id']}"))
    assert read["questions"][0]["answer"] == "The second."
    assert as_json(world.agent.get(f"/runs/{proposal['run_id']}"))["questions"] == []


def test_it_decides_nothing_and_stops_no_clock(world: World) -> None:
    proposal = world.proposed()
    question = asked(world, proposal)
    as_json(reply(world, question))
    row = Proposal.objects.get(pk=proposal["id"])
    assert row.status == "pending"
    assert row.decide_by.isoformat().replace("+00:00", "Z") == proposal["decide_by"]
    assert as_json(world.decide(proposal))["result"] == "approved"


def test_only_with_the_scope_and_only_the_proposer(world: World) -> None:
    question = asked(world, world.proposed())
    others = [scope for scope in Scope.values if scope != Scope.PROPOSALS_ANSWER]
    narrow = automation(token_for(world.desk.tenant, "narrow", scopes=others))
    refused(reply(world, question, by=narrow), 403, "scope_missing")
    other = automation(token_for(world.desk.tenant, "other"))
    refused(reply(world, question, by=other), 403, "not_asked_of_you")
    refused(reply(world, question, by=world.foreign), 404, "not_found")
    assert not Answer.objects.exists()
    read = as_json(other.get(f"/proposals/{question.proposal_id}"))
    assert [(one["text"], one["answer"]) for one in read["questions"]] == [(None, None)]


def test_what_cannot_be_answered(world: World) -> None:
    proposal = world.proposed()
    question = asked(world, proposal)
    refused(reply(world, question, "   "), 422, "words_missing")
    question.pk = new_id()
    refused(reply(world, question), 404, "not_found")


def test_who_answers_too_late_is_told_who_came_first(world: World) -> None:
    proposal = world.proposed()
    question = asked(world, proposal)
    as_json(world.decide(proposal, "reject", reason="no"))
    details = refused(reply(world, question), 409, "already_decided")
    assert details["moved"]["to"] == "rejected"
    assert details["moved"]["by"] == f"user:{world.desk.ada.pk}"
    assert details["decision"]["decision"] == "reject"
    assert as_json(world.agent.get(f"/runs/{proposal['run_id']}"))["questions"] == []


def test_a_colleagues_question_is_none_of_the_automations(world: World) -> None:
    proposal = world.proposed()
    question = ask(
        tenant_id=world.desk.tenant.pk, proposal_id=proposal["id"], text=WORDS, colleague=world.desk.ben.pk,
        by=person(world.desk.ada), clock=db_clock,
    ).question  # fmt: skip
    assert as_json(world.agent.get(f"/proposals/{proposal['id']}"))["questions"] == []
    assert as_json(world.agent.get(f"/runs/{proposal['run_id']}"))["questions"] == []
    refused(reply(world, question), 403, "not_asked_of_you")
    told = answer(
        tenant_id=world.desk.tenant.pk, proposal_id=proposal["id"], question_id=question.pk, text="I did.",
        by=person(world.desk.ben), clock=db_clock,
    )  # fmt: skip
    assert not told.repeated


def test_words_are_sealed_and_the_history_has_none(world: World) -> None:
    question = asked(world, world.proposed())
    as_json(reply(world, question, "kanarienvogel says the second"))
    stored = as_superuser(
        "SELECT q.wording || a.wording FROM approvals_question q JOIN approvals_answer a ON true"
    )
    assert "kanarienvogel" not in str(stored)
    events = Event.objects.filter(kind__in=("proposal.question_asked", "proposal.question_answered"))
    assert sorted(events.values_list("kind", "performed_by")) == [
        ("proposal.question_answered", "api:intake"), ("proposal.question_asked", f"user:{world.desk.ada.pk}"),
    ]  # fmt: skip
    assert "kanarienvogel" not in str(list(events.values()))


def test_a_rejection_is_remembered_through_the_api_too(world: World) -> None:
    proposal = world.proposed()
    as_json(
        world.decide(proposal, "reject", reason="It is too much.", reason_code="wrong_amount", remember="day")
    )
    from tests.api.callers import proposal_body

    details = refused(world.agent.post("/proposals", proposal_body("k-2")), 409, "previously_rejected")
    assert details["proposal_id"] == proposal["id"]
    assert (details["reason_code"], details["reason"]) == ("wrong_amount", "It is too much.")
    # The same request again is answered with what became of it, as ever.
    again = as_json(world.agent.post("/proposals", proposal_body("k-1")))
    assert (again["id"], again["status"]) == (proposal["id"], "rejected")
    other = world.proposed("k-3", arguments={"order": "7", "amount": "10.00", "currency": "EUR"})
    refused(world.decide(other, "reject", reason="no", remember="always"), 422, "unknown_span")
