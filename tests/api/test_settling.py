"""``/commands/{id}/attestations`` and ``/runs/{id}/steps/{step}/ask-again``: signed-in people only, whole and once."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from access.models import Agent
from approvals.models import Proposal
from common.clock import db_clock
from common.ids import new_id
from tests.api.callers import ROOT, Caller, as_json, refused, signed_in, token_for
from tests.api.conftest import World
from tests.api.test_strict_bodies import CASES
from tests.factories import make_user
from tests.workflows.later import SWEEP, age, fresh
from tests.workflows.toy import NOTHING_CAME, ToyPay
from workflows.models import Attestation, Command
from workflows.worker.recover import void_lapsed

pytestmark = pytest.mark.django_db
SETTLED = 40


class Counter:
    """An unknown command of an agent's proposal, and the people of its tenant who may say what became of it."""

    def __init__(self, world: World) -> None:
        self.world, self.desk = world, world.desk
        self.opal = signed_in(make_user(self.desk.tenant, "opal", roles=[Role.OPERATOR]))
        self.otto = signed_in(make_user(self.desk.tenant, "otto", roles=[Role.OWNER]))
        self.desk.till.answers = [NOTHING_CAME]
        self.proposal = world.approved()
        self.desk.work()
        self.command = Command.objects.get(pk=self.proposal["command_id"])

    @property
    def path(self) -> str:
        return f"/commands/{self.command.pk}"

    def say(self, says: str = "happened", person: Caller | None = None, **changes: Any) -> Any:
        named = {} if says == "did_not_happen" else {"provider_reference": "re_9"}
        body = {"says": says, "reason": "I saw it."} | named | changes
        return (person or self.opal).post(f"{self.path}/attestations", body)

    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = as_json(self.world.agent.get(self.path))
        return found

    def is_unsaid(self) -> bool:
        return fresh(self.command).status == "unknown" and not Attestation.objects.exists()


@pytest.fixture
def counter(world: World) -> Counter:
    return Counter(world)


# -- attesting ---------------------------------------------------------------------------------------------------


def test_one_word_settles(counter: Counter) -> None:
    outcome = as_json(counter.say())
    assert outcome == {
        "result": "settled", "says": "happened", "given": 1, "needed": 1, "command_id": str(counter.command.pk),
        "status": "confirmed", "effect": "happened", "state_version": fresh(counter.command).state_version,
        "next_action": "fetch_result", "retry_after": None,
    }  # fmt: skip
    shown = counter.shown()
    assert (shown["settled_by"], shown["provider_reference"], shown["settling"]) == ("person", "re_9", None)
    [word] = shown["attestations"]
    assert (word["says"], word["role"], word["provider_reference"], word["replaced_at"]) == (
        "happened", "operator", "re_9", None,
    )  # fmt: skip
    assert "I saw it." not in str(shown)


def test_the_first_of_two_is_recorded(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyPay, "second_person_from", Decimal(10))
    outcome = as_json(counter.say("partial"), 202)
    assert (outcome["result"], outcome["given"], outcome["needed"]) == ("recorded", 1, 2)
    assert (outcome["status"], outcome["effect"], outcome["next_action"], outcome["retry_after"]) == (
        "unknown", "unknown", "wait", 5,
    )  # fmt: skip
    settling = counter.shown()["settling"]
    assert (settling["given"], settling["needed"], settling["says"]) == (1, 2, "partial")
    refused(counter.say("happened", counter.otto), 409, "contradicts")
    assert as_json(counter.say("partial", counter.otto))["effect"] == "partial"


def test_a_command_says_which_words_are_safe_now(counter: Counter) -> None:
    settling = counter.shown()["settling"]
    assert (settling["may_attest"], settling["given"], settling["needed"], settling["says"]) == (
        ["happened", "partial"], 0, 1, None,
    )  # fmt: skip
    assert settling["late_answer"] is False
    details = refused(counter.say("did_not_happen"), 409, "not_settled_yet")
    assert details["until"].startswith(settling["may_attest_from"].removesuffix("Z"))
    age(counter.command.run_id, SETTLED, "workflows_command")
    assert counter.shown()["settling"]["may_attest"] == ["happened", "partial", "did_not_happen"]
    outcome = as_json(counter.say("did_not_happen"))
    assert (outcome["result"], outcome["status"], outcome["next_action"]) == ("settled", "ready", "wait")


def test_who_comes_too_late_is_told_what_stands(counter: Counter) -> None:
    as_json(counter.say())
    details = refused(counter.say("happened", counter.otto), 409, "already_settled")
    assert (details["status"], details["effect"], details["settled_by"]) == (
        "confirmed",
        "happened",
        "person",
    )


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"provider_reference": None}, "reference_missing"),
        ({"reason": ""}, "reason_missing"),
        ({"says": "did_not_happen", "provider_reference": "re_9"}, "reference_unexpected"),
        ({"says": "yes"}, "unknown_testimony"),
        ({"says": True}, "invalid"),
        ({"says": None}, "invalid"),
        ({"by": "user:1"}, "invalid"),
        ({"reason": "x" * 501}, "invalid"),
        ({"provider_reference": "x" * 201}, "invalid"),
        ({"provider_reference": 17}, "invalid"),
    ],
)
def test_what_is_said_must_fit(counter: Counter, changes: dict[str, Any], code: str) -> None:
    refused(counter.say(**changes), 422, code)
    assert counter.is_unsaid()


def test_only_the_roles_for_it(counter: Counter) -> None:
    refused(counter.say(person=counter.world.ada), 403, "role_missing")
    assert counter.is_unsaid()


def test_the_person_behind_the_agent_does_not_attest(world: World) -> None:
    """Field report K4."""
    otto = make_user(world.desk.tenant, "behind", roles=[Role.OPERATOR])
    Agent.objects.filter(name="intake").update(acts_for=otto)
    counter = Counter(world)
    refused(counter.say(person=signed_in(otto)), 403, "own_proposal")
    assert counter.is_unsaid()


# -- asking again ------------------------------------------------------------------------------------------------


@pytest.fixture
def lapsed(world: World) -> dict[str, Any]:
    """An approved proposal of an agent that was not executed in time."""
    proposal = world.approved()
    age(proposal["run_id"], 700, "approvals_proposal")
    assert void_lapsed(by=SWEEP, clock=db_clock) == 1
    return proposal


def again(person: Caller, proposal: dict[str, Any], body: Any = None, step: str = "action") -> Any:
    return person.post(f"/runs/{proposal['run_id']}/steps/{step}/ask-again", {} if body is None else body)


def test_what_lapsed_is_asked_again(world: World, lapsed: dict[str, Any]) -> None:
    opal = signed_in(make_user(world.desk.tenant, "opal", roles=[Role.OPERATOR]))
    asked = as_json(again(opal, lapsed), 201)
    proposal = Proposal.objects.get(pk=asked["proposal_id"])
    assert asked == {
        "proposal_id": str(proposal.pk), "supersedes": lapsed["id"], "run_id": lapsed["run_id"], "step": "action",
        "version": 2, "status": "pending", "needed": 1, "same_key": True, "state_version": proposal.state_version,
        "decide_by": proposal.decide_by.isoformat().replace("+00:00", "Z"), "next_action": "wait", "retry_after": 5,
    }  # fmt: skip
    assert refused(again(opal, lapsed), 409, "already_superseded") == {"proposal_id": str(proposal.pk)}
    as_json(world.decide({"id": asked["proposal_id"]}))
    world.desk.work()
    assert as_json(world.agent.get(f"/runs/{lapsed['run_id']}"))["status"] == "completed"


def test_what_is_not_offered(world: World) -> None:
    opal = signed_in(make_user(world.desk.tenant, "opal", roles=[Role.OPERATOR]))
    proposal = world.proposed()
    details = refused(again(opal, proposal), 409, "nothing_to_ask_again")
    assert details == {"step": "waiting", "proposal_status": "pending"}
    refused(again(opal, proposal, step="other"), 404, "not_found")
    refused(again(opal, proposal, step="a%00b"), 404, "not_found")


def test_asking_again_takes_no_words_and_the_role(world: World, lapsed: dict[str, Any]) -> None:
    refused(again(world.ada, lapsed), 403, "role_missing")
    opal = signed_in(make_user(world.desk.tenant, "opal", roles=[Role.OPERATOR]))
    refused(again(opal, lapsed, {"arguments": {"amount": "99.00"}}), 422, "invalid")
    assert Proposal.objects.count() == 1


# -- sessions only -----------------------------------------------------------------------------------------------


def both(counter: Counter) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{counter.path}/attestations", {"says": "happened", "provider_reference": "re_9", "reason": "so"}),
        (f"/runs/{counter.command.run_id}/steps/action/ask-again", {}),
    ]


def test_no_token_ever(counter: Counter) -> None:
    """Invariant 6: whatever is in the header, and whatever comes beside it."""
    good = token_for(counter.desk.tenant, "second")
    for path, body in both(counter):
        refused(counter.world.agent.post(path, body), 403, "token_cannot_attest")
        for header in (f"Bearer {good}", "Bearer plc_nonsense", "Basic eDp5", ""):
            answer = counter.opal.post(path, body, headers={"Authorization": header})
            refused(answer, 403, "token_cannot_attest")
    assert counter.is_unsaid()


def test_a_session_needs_its_csrf_token(counter: Counter) -> None:
    for path, body in both(counter):
        refused(Caller(counter.opal.client, {}).post(path, body), 403, "csrf_failed")
        refused(Caller(Client(), {}).post(path, body), 401, "not_authenticated")
        answer = counter.opal.client.get(ROOT + path)
        assert answer.status_code == 405
    assert counter.is_unsaid()


@pytest.mark.parametrize(("raw", "code"), CASES)
def test_bodies_are_strict(counter: Counter, raw: bytes, code: str) -> None:
    for path, _ in both(counter):
        refused(counter.opal.post(path, raw), 400, code)
    assert counter.is_unsaid()


def test_another_tenants_people_find_nothing(counter: Counter) -> None:
    eve = counter.world.foreign_reviewer
    for path, body in both(counter):
        refused(eve.post(path, body), 404, "not_found")
        nobodys = path.replace(path.split("/")[2], str(new_id()))
        refused(counter.opal.post(nobodys, body), 404, "not_found")
    assert counter.is_unsaid()
