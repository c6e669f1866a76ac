"""A re-plan that changes nothing throws no approval away; an older action never overwrites a newer one."""

from datetime import timedelta
from typing import Any

import pytest

from approvals.models import Proposal
from audit.models import Event
from common.clock import db_clock
from common.ids import new_id
from tests.workflows.conftest import AGENT, Desk
from tests.workflows.later import age, end_of, fresh
from tests.workflows.test_worker_answers import answer
from tests.workflows.toy import ToyPay, ToyPolicy
from workflows.actions.outside import OutsideProposal, Proposed, propose_from_outside
from workflows.actions.runs import Source
from workflows.models import Command, Run
from workflows.results import EvidencePiece

pytestmark = pytest.mark.django_db


def plan(desk: Desk, supersedes: Proposal | None = None, **changes: Any) -> Proposed:
    arguments = {"order": "1042", "amount": "10.00", "currency": "EUR"} | changes.pop("arguments", {})
    request = OutsideProposal(**{
        "workflow": "toy-outside", "source": Source("agent", str(new_id()), key="1"), "operation": "toy.pay",
        "arguments": arguments, "reason": "because", "supersedes": supersedes.pk if supersedes else None,
    } | changes)  # fmt: skip
    return propose_from_outside(tenant=desk.tenant, request=request, by=AGENT, clock=db_clock)


def test_an_identical_plan_keeps_the_approval(desk: Desk) -> None:
    """Field report C2: approvals kept, event carried_over(reason=material_equal)."""
    old = plan(desk).proposal
    desk.decide(old)
    again = plan(desk, supersedes=old, reason="planned once more")
    assert (again.proposal.pk, again.created) == (old.pk, False)
    event = Event.objects.get(kind="proposal.carried_over")
    assert (event.subject_id, event.reason) == (old.pk, "material_equal")
    desk.work()
    assert Command.objects.get(proposal=old).status == "confirmed"
    assert len(desk.till.calls) == 1


def test_while_it_is_pending_too_and_the_same_request_gets_the_same_answer(desk: Desk) -> None:
    old = plan(desk).proposal
    source = Source("agent", "e-7", key="2")
    for _ in range(2):
        again = plan(desk, supersedes=old, source=source)
        assert (again.proposal.pk, again.created) == (old.pk, False)
    assert Proposal.objects.count() == Run.objects.count() == 1


def new_pin(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    desk.till.tags["1042"] = "v2"
    return {}


def new_policy(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(ToyPolicy, "version", 2)
    return {}


def new_evidence(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    return {"evidence": (EvidencePiece("photo", "The parcel", b"broken", db_clock()),)}


def new_amount(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Field report C10: the same fields, other values."""
    return {"arguments": {"amount": "11.00"}}


@pytest.mark.parametrize("change", [new_pin, new_policy, new_evidence, new_amount])
def test_anything_new_is_a_new_version_without_approvals(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    old = plan(desk).proposal
    desk.decide(old)
    made = plan(desk, supersedes=old, **change(desk, monkeypatch))
    assert (made.created, made.proposal.version, made.proposal.status) == (True, 2, "pending")
    assert end_of(Command.objects.get(proposal=old))["command"] == "void(superseded)"
    assert not made.proposal.decisions.exists()


def test_a_question_that_is_over_is_not_kept_alive(desk: Desk) -> None:
    old = plan(desk).proposal
    desk.decide(old)
    age(old.run_id, 3600, "approvals_proposal")
    assert plan(desk, supersedes=old).created


@pytest.fixture
def one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several actions on one record, which pins nothing."""
    monkeypatch.setattr(ToyPay, "target", lambda self, arguments: "customer:7")
    monkeypatch.setattr(ToyPay, "business_key", lambda self, arguments: f"pay:{arguments.order}")
    monkeypatch.setattr(ToyPay, "pins", lambda self, arguments, facts: {})


def test_an_older_action_does_not_overwrite_a_newer_one(desk: Desk, one_record: None) -> None:
    """Field report C8: it needs to be asked again."""
    older = desk.approved(order="1")
    desk.till.answers = [answer(429, retry_after=timedelta(seconds=60))]
    desk.work()
    newer = desk.approved(order="2")
    desk.work()
    assert fresh(newer).status == "confirmed"
    age(older.run_id, 61, "workflows_command")
    desk.work()
    assert end_of(older)["command"] == "void(pin)"
    assert len(desk.till.calls) == 2


def test_actions_on_one_record_in_their_order_all_go(desk: Desk, one_record: None) -> None:
    older, newer = desk.approved(order="1"), desk.approved(order="2")
    desk.work()
    desk.work()
    assert {fresh(older).status, fresh(newer).status} == {"confirmed"}
