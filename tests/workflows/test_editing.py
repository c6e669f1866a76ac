"""A reviewer changes what the operation lets them: a new version that somebody else approves."""

from datetime import timedelta
from typing import Annotated, Any, ClassVar

import pytest

from access.models import User
from approvals.actions import expire_due
from approvals.models import Proposal
from approvals.refusals import (
    AlreadyDecided,
    AuthorOfVersion,
    DigestMismatch,
    NotEligible,
    OwnProposal,
    Superseded,
)
from audit.models import Event
from common.clock import db_clock
from common.fields import Arguments, Currency, Identifier, Money, TextType, arg
from tests.access.test_people_identity import link
from tests.access.there import count_reviewers
from tests.factories import make_user
from tests.workflows.conftest import Desk, person
from tests.workflows.later import open_packets
from tests.workflows.test_carry_over import plan
from tests.workflows.together import in_threads
from tests.workflows.toy import ToyFlow, ToyPay
from workflows import registry
from workflows.actions.editing import Edit, NotEditable, NothingChanged, edit
from workflows.actions.outside import AlreadySuperseded, InvalidArguments, RefusedByPolicy
from workflows.actions.runs import Source
from workflows.contracts import read_contract
from workflows.models import Command, Run
from workflows.operations import Verdict

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def editable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyPay, "editable", ("amount",))


def edited(desk: Desk, old: Proposal, user: User | None = None, **changes: Any) -> Proposal:
    return edit(
        tenant_id=desk.tenant.pk, proposal_id=old.pk, edit=Edit(old.digest, changes or {"amount": "8.00"}),
        by=person(user or desk.ada), clock=db_clock,
    )  # fmt: skip


def test_an_edit_is_a_new_version_that_names_its_editor(desk: Desk) -> None:
    old = desk.proposed()
    new = edited(desk, old)
    old.refresh_from_db()
    assert (old.status, new.status, new.version, new.edited_by_id) == (
        "superseded",
        "pending",
        2,
        desk.ada.pk,
    )
    assert read_contract(bytes(new.contract))["arguments"] == {
        "order": "1042",
        "amount": "8.00",
        "currency": "EUR",
    }
    assert (new.run_id, new.step, new.proposed_by) == (old.run_id, old.step, old.proposed_by)
    assert "8.00" in new.consequence
    event = Event.objects.get(kind="proposal.edited")
    assert (event.subject_id, event.performed_by) == (new.pk, f"user:{desk.ada.pk}")
    assert event.body == {"of": str(old.pk), "changed": ["arguments/amount"]}


@pytest.mark.parametrize("kind", ["approve", "reject"])
def test_its_editor_is_not_its_approver(desk: Desk, kind: str) -> None:
    """Field report C4."""
    new = edited(desk, desk.proposed())
    with pytest.raises(AuthorOfVersion) as refused:
        desk.decide(new, kind)
    assert refused.value.code == "author_of_version"
    assert desk.decide(new, user=desk.ben).result == "approved"
    desk.work()
    assert [call.arguments.amount for call in desk.till.calls] == ["8.00"]


def test_nor_under_another_account_of_theirs(desk: Desk) -> None:
    other = make_user(desk.tenant, "ada-2")
    link(desk, desk.ada, other)
    new = edited(desk, desk.proposed())
    with pytest.raises(AuthorOfVersion):
        desk.decide(new, user=other)
    assert count_reviewers(desk.tenant.pk, None, new.excluded_users) == 1


def test_of_two_the_editor_is_none(desk: Desk) -> None:
    desk.till.verdict = Verdict("ask_two", "toy.two", "It is a big toy.")
    make_user(desk.tenant, "cleo")
    new = edited(desk, desk.proposed())
    assert desk.decide(new, user=desk.ben).result == "recorded"
    with pytest.raises(AuthorOfVersion):
        desk.decide(new)


def test_where_nobody_else_is_left_it_is_said_at_once(desk: Desk) -> None:
    User.objects.filter(pk=desk.ben.pk).update(is_active=False)
    new = edited(desk, desk.proposed())
    assert "nobody_eligible" in open_packets(new.run_id)


def test_who_edited_may_edit_once_more(desk: Desk) -> None:
    new = edited(desk, desk.proposed())
    newer = edited(desk, new, amount="7.00")
    assert (newer.version, newer.edited_by_id) == (3, desk.ada.pk)


def test_an_editor_of_an_earlier_version_stays_out(desk: Desk) -> None:
    newest = edited(desk, edited(desk, desk.proposed()), desk.ben, amount="7.00")
    for user in (desk.ada, desk.ben):
        with pytest.raises(OwnProposal):
            desk.decide(newest, user=user)


def test_the_policy_runs_again_and_may_refuse(desk: Desk) -> None:
    old = desk.proposed()
    desk.till.verdict = Verdict("ask_two", "toy.two", "It is a big toy.")
    make_user(desk.tenant, "cleo")
    assert edited(desk, old).needed == 2
    old = desk.proposed(order="2")
    desk.till.verdict = Verdict("refuse", "toy.no", "Never.")
    with pytest.raises(RefusedByPolicy):
        edited(desk, old)
    assert Proposal.objects.get(pk=old.pk).status == "pending"


def test_no_rule_approves_an_edit(desk: Desk) -> None:
    """On stage *execute* a person is asked all the same: the editor would be its only author."""
    old = desk.proposed(workflow="toy-execute")
    desk.till.verdict = Verdict("auto", "toy.small", "It is a small toy.")
    new = edited(desk, old)
    assert (new.status, new.needed) == ("pending", 1)
    assert not Command.objects.exists()


def test_preflight_runs_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    old = desk.proposed()
    desk.till.tags["1042"] = "v2"
    assert read_contract(bytes(edited(desk, old).contract))["pins"] == {"order:1042": "v2"}


# -- what is refused ----------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_named_by_its_field_and_changes_nothing(desk: Desk) -> None:
    old = desk.proposed()
    for value in ("8.001", 8, "eight", None, ""):
        with pytest.raises(InvalidArguments) as refused:
            edited(desk, old, amount=value)
        assert [error["path"] for error in refused.value.details["errors"]] == ["/amount"]
    assert Proposal.objects.get(pk=old.pk).status == "pending"


def test_only_what_the_operation_lets_reviewers_change(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    old = desk.proposed()
    with pytest.raises(NotEditable) as refused:
        edited(desk, old, amount="8.00", order="7")
    assert refused.value.details == {"arguments": ["order"]}
    monkeypatch.setattr(ToyPay, "editable", ())
    with pytest.raises(NotEditable):
        edited(desk, old)


def test_the_same_again_is_no_edit(desk: Desk) -> None:
    with pytest.raises(NothingChanged):
        edited(desk, desk.proposed(), amount="10.00")


def test_only_who_may_decide_on_it(desk: Desk) -> None:
    old = desk.proposed()
    with pytest.raises(NotEligible):
        edited(desk, old, make_user(desk.tenant, "vera", roles=[]))
    Proposal.objects.using("owner").filter(pk=old.pk).update(excluded_users=[desk.ada.pk])
    with pytest.raises(OwnProposal):
        edited(desk, old)


def test_who_is_too_late_is_told_by_what(desk: Desk) -> None:
    decided, superseded = desk.proposed(order="1"), desk.proposed(order="2")
    desk.decide(decided, user=desk.ben)
    with pytest.raises(AlreadyDecided):
        edited(desk, decided)
    edited(desk, superseded)
    with pytest.raises(Superseded):
        edited(desk, superseded, desk.ben)
    stale = desk.proposed(order="3")
    stale.digest = "0" * 64
    with pytest.raises(DigestMismatch):
        edited(desk, stale)


def test_of_two_who_edit_at_once_one_wins(desk: Desk) -> None:
    old = desk.proposed()
    racers = ((desk.ada, "8.00"), (desk.ben, "7.00"))
    results = in_threads(2, lambda number: edited(desk, old, racers[number][0], amount=racers[number][1]))
    assert {type(one) for one in results} == {Proposal, Superseded}
    assert Proposal.objects.filter(status="pending").count() == 1


def test_deciding_and_editing_at_once_leave_one_of_both(desk: Desk) -> None:
    old = desk.proposed()
    racers = (lambda: desk.decide(old, user=desk.ben), lambda: edited(desk, old))
    results = in_threads(2, lambda number: racers[number]())
    lost = [one for one in results if isinstance(one, Exception)]
    assert [type(one) for one in lost] in ([Superseded], [AlreadyDecided])
    assert Proposal.objects.filter(status__in=("pending", "approved")).count() == 1


# -- the automation that proposed it --------------------------------------------------------------------------------


def test_its_key_leads_to_the_edited_version_and_asks_nothing_new(desk: Desk) -> None:
    """Field report B5."""
    source = Source("agent", "e-1", key="1")
    old = plan(desk, source=source).proposal
    new = edited(desk, old)
    desk.decide(new, user=desk.ben)
    desk.work()
    again = plan(desk, source=source)
    assert (again.proposal.pk, again.created, again.proposal.status) == (new.pk, False, "consumed")
    assert Run.objects.count() == 1


def test_a_newer_plan_of_the_agent_comes_after_the_edit(desk: Desk) -> None:
    old = plan(desk).proposal
    new = edited(desk, old)
    with pytest.raises(AlreadySuperseded) as refused:
        plan(desk, supersedes=old, arguments={"amount": "9.00"})
    assert refused.value.details == {"proposal_id": str(new.pk)}
    newest = plan(desk, supersedes=new, arguments={"amount": "9.00"}).proposal
    assert (newest.version, newest.edited_by_id) == (3, None)


# -- votes ----------------------------------------------------------------------------------------------------------


def test_dropped_votes_are_written_down_with_what_did_it(desk: Desk) -> None:
    """Field report C10."""
    desk.till.verdict = Verdict("ask_two", "toy.two", "It is a big toy.")
    make_user(desk.tenant, "cleo")
    old = desk.proposed()
    vote = desk.decide(old, user=desk.ben).decision_id
    new = edited(desk, old)
    event = Event.objects.get(kind="proposal.votes_dropped")
    assert event.subject_id == new.pk
    assert event.body == {"of": str(old.pk), "votes": [str(vote)], "changed": ["arguments/amount"]}
    assert not new.decisions.exists()


# -- what an operation may declare -----------------------------------------------------------------------------------


class TypedArguments(Arguments):
    order: Identifier = arg(label="Order", data_class="business")
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
    note: Annotated[str, TextType(max_length=200)] = arg(
        "", label="Note", data_class="business", material=False
    )


def test_what_is_not_bound_is_not_editable(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd(ToyPay):
        arguments: ClassVar[type[Arguments]] = TypedArguments
        editable: ClassVar[tuple[str, ...]] = ("note",)

    class OddFlow(ToyFlow):
        name: ClassVar[str] = "odd"
        operations: ClassVar[Any] = (Odd,)

    with pytest.raises(TypeError, match="note"):
        registry.register(OddFlow)


def test_what_reviewers_may_change_needs_no_new_number() -> None:
    """It changes nothing of what approvals bind to."""

    class One:
        editable: ClassVar[tuple[str, ...]] = ("a",)
        other = 1

    first = registry._content_hash(One)

    class One:  # type: ignore[no-redef]
        editable: ClassVar[tuple[str, ...]] = ()
        other = 1

    assert registry._content_hash(One) == first


def test_editing_does_not_stop_the_clock(desk: Desk) -> None:
    """The new version has its own time; the old one is over."""
    old = desk.proposed()
    new = edited(desk, old)
    assert new.decide_by - new.created_at <= timedelta(hours=4)
    assert expire_due(clock=lambda: old.decide_by - timedelta(seconds=1)) == 0
