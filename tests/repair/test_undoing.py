"""Taking an effect back from the desk: from a packet and from the page of a run, with its dry run and its refusals."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from access.enums import Role
from approvals.models import Proposal
from audit.models import Event
from repair.choices.facts import Facts, Why
from repair.choices.rules import COMPENSATE, COMPLETE
from repair.models import RepairPacket
from tests.factories import make_tenant, make_user
from tests.repair.choosing import Operator, moves, now, operator, packet_of
from tests.workflows.conftest import Desk
from tests.workflows.later import fresh
from tests.workflows.together import in_threads
from tests.workflows.toy import PAID, ToyPay
from tests.workflows.toy_back import FLOW, RECIPIENT, PayBack, installed
from workflows.authoring import ToPerson, Verdict
from workflows.following import EffectFacts
from workflows.models import Command, Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def back(desk: Desk) -> Iterator[Desk]:
    with installed(desk):
        yield desk


@pytest.fixture
def opal(back: Desk) -> Operator:
    return operator(back)


def stopped_after(desk: Desk) -> tuple[Command, RepairPacket]:
    """It was paid, and then a later step stopped."""
    desk.till.stages["tell"] = ToPerson("odd")
    command = desk.approved(workflow=FLOW)
    desk.work()
    desk.advance()
    return fresh(command), packet_of(command.run_id)


def paid(desk: Desk) -> Command:
    command = desk.approved(workflow=FLOW)
    desk.work()
    desk.advance()
    return fresh(command)


def address(command: Command, kind: str = "undo", key: str = "pay") -> str:
    return reverse("repair:follow", args=[command.run_id, kind, key])


# -- rules ----------------------------------------------------------------------------------------------------------

DONE = {"happened": True, "counter": True}


@pytest.mark.parametrize(
    ("effect", "undo", "rest"),
    [
        ({"happened": False}, "nothing_happened", "not_in_part"),
        ({"happened": False, "in_doubt": True}, "outcome_unknown", "not_in_part"),
        (DONE, "", "not_in_part"),
        (DONE | {"counter": False}, "no_counter_action", "not_in_part"),
        (DONE | {"reference": False}, "no_reference", "not_in_part"),
        (DONE | {"undo": "open"}, "undo_under_way", "not_in_part"),
        (DONE | {"undo": "done"}, "already_undone", "not_in_part"),
        (DONE | {"in_part": True}, "", "no_remainder"),
        (DONE | {"in_part": True, "can_rest": True}, "", ""),
        (DONE | {"in_part": True, "can_rest": True, "rest": "open"}, "rest_under_way", "rest_under_way"),
        (DONE | {"in_part": True, "can_rest": True, "rest": "done"}, "", "rest_done"),
        (DONE | {"in_part": True, "can_rest": True, "undo": "open"}, "undo_under_way", "undo_under_way"),
        (DONE | {"in_part": True, "can_rest": True, "undo": "done"}, "already_undone", "already_undone"),
    ],
)
def test_when_it_is_offered(effect: dict[str, Any], undo: str, rest: str) -> None:
    facts = Facts(now=None, may_repair=True, packet="open", cause="x", effect=EffectFacts(**effect))  # type: ignore[arg-type]
    assert [code(COMPENSATE(facts)), code(COMPLETE(facts))] == [undo, rest]


def code(why: Why | None) -> str:
    return why.code if why is not None else ""


# -- from a packet --------------------------------------------------------------------------------------------------


def test_a_step_after_the_effect_stopped_and_the_effect_is_taken_back(back: Desk, opal: Operator) -> None:
    command, packet = stopped_after(back)
    assert (packet.step, opal.offered(packet)["compensate"]) == ("tell", "")
    plan = opal.page(packet, "compensate").content.decode()
    assert "Take back (toy.take_back, version 1)" in plan
    assert "re_1" in plan
    assert Proposal.objects.count() == 1
    look = opal.choose(packet, "compensate", decision="look").content.decode()
    assert "It is a toy. By rule toy.ask: 1 person must approve." in look
    assert "read just now; pins: order:1042 as v1" in look
    assert Proposal.objects.count() == 1
    assert opal.choose(packet, "compensate").status_code == 302
    proposal = Proposal.objects.get(operation="toy.take_back")
    assert (proposal.status, now(packet).status) == ("pending", "open")
    assert opal.offered(packet)["compensate"] == "undo_under_way"
    assert "undo_<wbr>proposed" in opal.client.get(f"/runs/{command.run_id}/").content.decode()
    back.decide(proposal)
    back.work()
    assert opal.offered(packet)["compensate"] == "already_undone"
    document = opal.client.get(f"/repair/{packet.pk}/").content.decode()
    assert "compensated" in document


def test_what_is_refused_says_why_and_is_in_the_history(back: Desk, opal: Operator) -> None:
    _, packet = stopped_after(back)
    back.till.verdict = Verdict("refuse", "toy.closed", "The till is closed.")
    look = opal.choose(packet, "compensate", decision="look")
    assert (look.status_code, "The till is closed." in look.content.decode()) == (422, True)
    assert opal.choose(packet, "compensate").status_code == 422
    assert moves(packet)[-1] == ("opal", "compensate", "refused_by_policy")
    assert not Run.objects.filter(kind="undo").exists()


def test_what_declares_no_counter_action_is_refused(back: Desk, opal: Operator) -> None:
    back.till.stages.pop("pay")
    back.till.stages["tell"] = ToPerson("odd")
    command = back.approved(workflow="toy-pay")
    back.work()
    back.advance()
    packet = packet_of(command.run_id)
    assert ToyPay.counter is None
    answer = opal.choose(packet, "compensate")
    assert (answer.status_code, "no_counter_action" in answer.content.decode()) == (409, True)


def test_two_at_once_and_one_compensation(back: Desk, opal: Operator) -> None:
    _, packet = stopped_after(back)
    people = [opal, operator(back, "otto", [Role.OWNER])]
    seen = opal.seen(packet)

    def at_once(number: int) -> int:
        return int(people[number].choose(packet, "compensate", seen=seen).status_code)

    assert sorted(in_threads(2, at_once)) == [302, 409]
    assert Run.objects.filter(kind="undo").count() == 1


# -- from a run -----------------------------------------------------------------------------------------------------


def test_a_completed_run_offers_it_to_those_who_repair(back: Desk, opal: Operator) -> None:
    command = paid(back)
    part = reverse("repair:of_run", args=[command.run_id])
    assert address(command) in opal.client.get(part).content.decode()
    reader = Client()
    reader.force_login(back.ada)
    assert address(command) not in reader.get(part).content.decode()
    assert reader.get(address(command)).status_code == 403
    assert reader.post(address(command), {"words": "x", "decision": "do"}).status_code == 403


def test_from_its_page_to_its_end(back: Desk, opal: Operator) -> None:
    command = paid(back)
    before = Event.objects.count()
    assert opal.client.get(address(command)).status_code == 200
    assert opal.client.post(address(command), {"decision": "look"}).status_code == 422
    look = opal.client.post(address(command), {"words": "It was too much.", "decision": "look"})
    assert "1 person must approve" in look.content.decode()
    assert Event.objects.count() == before
    done = opal.client.post(address(command), {"words": "It was too much.", "decision": "do"})
    assert (done.status_code, done["Location"]) == (302, f"/runs/{command.run_id}/")
    again = opal.client.post(address(command), {"words": "It was too much.", "decision": "do"})
    assert (again.status_code, "undo_under_way" in again.content.decode()) == (409, True)
    proposal = Proposal.objects.get(operation="toy.take_back")
    assert proposal.reason == "It was too much."
    back.decide(proposal)
    back.work()
    part = opal.client.get(reverse("repair:of_run", args=[command.run_id])).content.decode()
    assert reverse("workflows:run", args=[proposal.run_id]) in part
    assert "already_undone" in part
    first = opal.client.get(f"/runs/{proposal.run_id}/").content.decode()
    assert "Takes back what was done in" in first
    listed = opal.client.get("/runs/").content.decode()
    assert "compensated (first: paid)" in listed
    assert "Compensation" in listed


def test_pages_hold_no_personal_value(back: Desk, opal: Operator) -> None:
    command, packet = stopped_after(back)
    pages = [
        opal.page(packet, "compensate"), opal.choose(packet, "compensate", decision="look"),
        opal.client.get(address(command)),
        opal.client.post(address(command), {"words": "x", "decision": "look"}),
    ]  # fmt: skip
    texts = [page.content.decode() for page in pages]
    assert not [text for text in texts if RECIPIENT in text]
    assert "personal, not shown here" in texts[1]
    assert "personal, not shown here" in texts[3]


@pytest.mark.parametrize(("kind", "key"), [("undo", "read"), ("redo", "pay"), ("undo", "pay~twice")])
def test_what_is_not_there_is_not_found(back: Desk, opal: Operator, kind: str, key: str) -> None:
    assert opal.client.get(address(paid(back), kind, key)).status_code == 404


def test_another_tenant_finds_nothing(back: Desk, opal: Operator) -> None:
    command = paid(back)
    stranger = Client()
    stranger.force_login(make_user(make_tenant("linden"), "lena", roles=[Role.OPERATOR]))
    assert stranger.get(address(command)).status_code == 404
    assert stranger.post(address(command), {"words": "x", "decision": "do"}).status_code == 404
    part = stranger.get(reverse("repair:of_run", args=[command.run_id])).content.decode()
    assert part.strip() == ""


def test_no_token_takes_anything_back(back: Desk, opal: Operator) -> None:
    command = paid(back)
    answer = Client().post(
        address(command), {"words": "x", "decision": "do"}, headers={"Authorization": "Bearer nobody"}
    )
    assert answer.status_code in (302, 401, 403)
    assert not Run.objects.filter(kind="undo").exists()


def test_a_source_that_is_away_proposes_nothing(
    back: Desk, opal: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workflows.results import SourceDown

    command = paid(back)

    def away(*_: Any) -> Any:
        raise SourceDown("away")

    monkeypatch.setattr(ToyPay, "look", away)
    answer = opal.client.post(address(command), {"words": "x", "decision": "do"})
    assert (answer.status_code, "source_unavailable" in answer.content.decode()) == (503, True)
    assert PAID.reference in answer.content.decode()
    assert PayBack.counter is not None


def test_a_form_about_one_effect_proposes_nothing_for_another(back: Desk, opal: Operator) -> None:
    """Another effect has become known meanwhile, and has the name that the form was made of."""
    command = paid(back)
    assert 'name="effect" value="re_1"' in opal.client.get(address(command)).content.decode()
    form = {"words": "Too much.", "decision": "do", "effect": "re_late"}
    answer = opal.client.post(address(command), form)
    assert (answer.status_code, "another_effect" in answer.content.decode()) == (409, True)
    assert not Run.objects.filter(kind="undo").exists()
    assert opal.client.post(address(command), form | {"effect": "re_1"}).status_code == 302
