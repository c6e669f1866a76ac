"""A packet becomes the draft of a validation rule, and a closed case is marked as something to learn from."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from approvals.models import Proposal
from audit.models import Event
from common.clock import db_clock
from common.ids import new_id
from repair.fixtures import WORDS, fixture_of
from repair.models import RepairMove
from tests.repair.choosing import REFUSED, Operator, moves, now, operator, packet_of, refused
from tests.workflows.conftest import AGENT, Desk
from tests.workflows.toy import ToyPay
from tests.workflows.toy_back import FLOW, RECIPIENT, installed
from workflows.actions.runs import Source, start_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def opal(desk: Desk) -> Operator:
    return operator(desk)


def drafted(packet_id: object) -> dict[str, Any]:
    out = io.StringIO()
    call_command("rule", str(packet_id), stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_it_names_the_arguments_the_record_and_the_answer(desk: Desk) -> None:
    _, packet = refused(desk)
    draft = drafted(packet.pk)
    assert (draft["format"], draft["operation"], draft["operation_version"]) == (
        "placet.rule-draft.v1",
        "toy.pay",
        1,
    )
    assert draft["conditions"] == [
        {"where": "argument", "name": "order", "was": "1043"},
        {"where": "argument", "name": "amount", "was": "10.00"},
        {"where": "argument", "name": "currency", "was": "EUR"},
        {"where": "record", "name": "order", "changed_since": False},
        {"where": "answer", "name": "over_limit"},
    ]
    assert "the operation's check" in draft["belongs_to"]
    assert draft["test"]["expect"]["state"] == "TO BE SAID"
    assert {"id", "title", "input", "decide", "expect", "unacceptable"} == set(draft["test"])
    assert Event.objects.get(kind="packet.exported").body == {"as": "rule"}


def test_what_people_changed_is_the_condition(
    desk: Desk, opal: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyPay, "editable", ("amount",))
    _, packet = refused(desk)
    assert opal.choose(packet, "correct", asked_amount="7.50").status_code == 302
    found = [row for row in drafted(packet.pk)["conditions"] if row["where"] == "argument"]
    assert found == [{"where": "argument", "name": "amount", "was": "10.00", "became": "7.50"}]


def test_personal_arguments_are_taken_out_by_their_class(desk: Desk) -> None:
    with installed(desk):
        command = desk.approved(workflow=FLOW)
        desk.till.answers = [REFUSED]
        desk.work()
        draft = drafted(packet_of(command.run_id).pk)
    told = next(row for row in draft["conditions"] if row["name"] == "told")
    assert told == {"where": "argument", "name": "told", "was": "somebody@example.com"}
    assert RECIPIENT not in json.dumps(draft)


def test_a_packet_that_is_not_there(desk: Desk) -> None:
    with pytest.raises(CommandError, match="no packet"):
        drafted(new_id())


def test_a_closed_case_is_marked_once_as_each(desk: Desk, opal: Operator) -> None:
    _, packet = refused(desk)
    assert opal.offered(packet)["to_rule"] == "packet_open"
    assert opal.choose(packet, "to_rule").status_code == 409
    assert opal.choose(packet, "cancel").status_code == 302
    closed = now(packet)
    page = opal.page(closed, "to_rule").content.decode()
    assert f"./placet rule {packet.pk}" in page
    for code in ("to_rule", "to_fixture", "to_runbook"):
        assert opal.choose(closed, code, words="").status_code == 302
        assert opal.offered(closed)[code] == "already_marked"
    assert opal.choose(closed, "to_rule").status_code == 409
    assert [move for move in moves(packet) if move[1] == "to_rule"] == [
        ("opal", "to_rule", "packet_open"), ("opal", "to_rule", ""), ("opal", "to_rule", "already_marked"),
    ]  # fmt: skip
    assert now(packet).status == closed.status
    assert Event.objects.filter(kind="packet.chosen", body__choice="to_rule").count() == 1
    assert RepairMove.objects.filter(choice="to_runbook", root_cause__isnull=True).count() == 1
    assert "Let it become a validation rule" in opal.client.get(f"/repair/{packet.pk}/").content.decode()


def test_names_that_the_author_did_not_choose_stay_here(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record without a kind is its id, and a member that nobody declared is what somebody wrote."""
    monkeypatch.setattr(ToyPay, "pins", lambda self, arguments, facts: {RECIPIENT: "v1"})
    desk.till.answers = [REFUSED]
    started = start_run(
        tenant_id=desk.tenant.pk, workflow="toy-pay", input={"order": "1042", RECIPIENT: "is the customer"}, by=AGENT,
        clock=db_clock, source=Source("test", "event-7"),
    )  # fmt: skip
    desk.advance()
    desk.decide(Proposal.objects.get(run_id=started.run.pk))
    desk.work()
    packet = packet_of(started.run.pk)
    draft = drafted(packet.pk)
    assert RECIPIENT not in json.dumps([draft, fixture_of(packet, by=AGENT)])
    assert {"where": "record", "name": "record", "changed_since": False} in draft["conditions"]
    assert draft["test"]["input"] == {"order": WORDS}
