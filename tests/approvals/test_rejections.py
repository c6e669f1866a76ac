"""A remembered rejection answers whoever proposes the same again, by whichever way, until it is over or lifted."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from access.enums import Role
from access.models import User
from approvals.actions import expire_due
from approvals.actions_rejections import lift
from approvals.models import Proposal, Rejection
from approvals.refusals import (
    AlreadyLifted,
    NotEligible,
    NothingRemembered,
    PreviouslyRejected,
    ReasonRequired,
)
from audit.models import Event
from common.clock import db_clock
from common.ids import new_id
from tests.factories import make_user
from tests.workflows.conftest import AGENT, Desk, desk, person, state
from tests.workflows.later import age, as_superuser
from tests.workflows.together import in_threads
from tests.workflows.toy import ToyPay, ToyPolicy
from workflows.actions.asking_again import ask_again
from workflows.actions.editing import Edit, edit
from workflows.actions.outside import OutsideProposal, propose_from_outside
from workflows.actions.runs import Source
from workflows.models import Run

__all__ = ["desk"]
pytestmark = pytest.mark.django_db
WORDS = "The parcel was insured for less."


def propose(
    desk: Desk, *, amount: str = "10.00", order: str = "1042", by: Any = AGENT, **more: Any
) -> Proposal:
    request = OutsideProposal(
        workflow="toy-outside", source=Source("agent", str(new_id()), key="1"), operation="toy.pay",
        arguments={"order": order, "amount": amount, "currency": "EUR"}, reason="because", **more,
    )  # fmt: skip
    return propose_from_outside(tenant=desk.tenant, request=request, by=by, clock=db_clock).proposal


def rejected(desk: Desk, remember: str = "day", **what: Any) -> Proposal:
    proposal = propose(desk, **what)
    desk.decide(proposal, "reject", reason=WORDS, reason_code="wrong_amount", remember=remember)
    return proposal


def lifted(
    desk: Desk, proposal: Proposal, user: User | None = None, why: str = "It was a mistake."
) -> Rejection:
    return lift(
        tenant_id=desk.tenant.pk,
        proposal_id=proposal.pk,
        why=why,
        by=person(user or desk.ben),
        clock=db_clock,
    )


def over(rejection: Rejection) -> None:
    """As time makes it."""
    past = db_clock() - timedelta(seconds=1)
    as_superuser(
        "UPDATE approvals_rejection SET until = %s, rejected_at = %s WHERE id = %s",
        past, past - timedelta(days=1), rejection.pk,
    )  # fmt: skip


# -- what is remembered ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "days"), [("day", 1), ("week", 7), ("month", 30)])
def test_for_as_long_as_the_reviewer_says(desk: Desk, word: str, days: int) -> None:
    proposal = rejected(desk, word)
    rejection = Rejection.objects.get(proposal=proposal)
    assert rejection.until - rejection.rejected_at == timedelta(days=days)
    assert rejection.material_digest == proposal.material_digest
    event = Event.objects.get(kind="proposal.rejection_remembered")
    assert (event.subject_id, event.performed_by) == (proposal.pk, f"user:{desk.ada.pk}")


def test_where_the_reviewer_says_nothing_the_policy_does(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyPolicy, "remember_rejections", timedelta(days=14), raising=False)
    rejection = Rejection.objects.get(proposal=rejected(desk, ""))
    assert rejection.until - rejection.rejected_at == timedelta(days=14)


@pytest.mark.parametrize("remember", ["none", ""])
def test_not_at_all_where_nobody_wants_it(desk: Desk, remember: str) -> None:
    rejected(desk, remember)
    assert not Rejection.objects.exists()
    assert propose(desk).status == "pending"


def test_the_reviewer_may_say_none_where_the_policy_says_a_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyPolicy, "remember_rejections", timedelta(days=14), raising=False)
    rejected(desk, "none")
    assert not Rejection.objects.exists()


# -- every way of proposing --------------------------------------------------------------------------------------


def test_an_agent_is_answered_at_once_with_the_earlier_reason(desk: Desk) -> None:
    """Field report M3."""
    first = rejected(desk)
    before = (Proposal.objects.count(), Run.objects.count())
    for _ in range(3):
        with pytest.raises(PreviouslyRejected) as refused:
            propose(desk)
        details = refused.value.details
        assert (details["proposal_id"], details["reason_code"]) == (str(first.pk), "wrong_amount")
        assert details["reason"] == WORDS
    assert (Proposal.objects.count(), Run.objects.count()) == before


def test_another_proposer_is_not_given_the_words(desk: Desk) -> None:
    rejected(desk)
    with pytest.raises(PreviouslyRejected) as refused:
        propose(desk, by=replace(AGENT, performed_by="api:other"))
    assert "reason" not in refused.value.details
    assert refused.value.details["reason_code"] == "wrong_amount"


def test_the_engine_takes_the_no_for_an_answer(desk: Desk) -> None:
    rejected(desk)
    run = desk.start()
    desk.advance()
    assert state(run.pk) == (
        "completed", {"read": "completed", "judge": "completed", "pay": "skipped", "tell": "completed"}
    )  # fmt: skip
    run.refresh_from_db()
    assert run.outcome == "declined"
    assert not Proposal.objects.filter(run_id=run.pk).exists()
    event = Event.objects.get(kind="step.previously_rejected")
    assert (event.run_id, event.reason) == (run.pk, "wrong_amount")


def test_a_new_version_is_answered_too_and_the_old_one_stays(desk: Desk) -> None:
    rejected(desk, amount="11.00")
    old = propose(desk)
    with pytest.raises(PreviouslyRejected):
        propose(desk, amount="11.00", supersedes=old.pk)
    old.refresh_from_db()
    assert old.status == "pending"


def test_asking_again_is_answered_too(desk: Desk) -> None:
    operator = make_user(desk.tenant, "olga", roles=[Role.OPERATOR])
    waiting = desk.proposed()
    twin = propose(desk)
    age(waiting.run_id, 24 * 3600, "approvals_proposal")
    expire_due(clock=db_clock)
    desk.decide(twin, "reject", remember="day")
    with pytest.raises(PreviouslyRejected):
        ask_again(
            tenant_id=desk.tenant.pk, run_id=waiting.run_id, step="pay", by=person(operator), clock=db_clock
        )


def test_an_edit_is_answered_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToyPay, "editable", ("amount",))
    rejected(desk, amount="11.00")
    old = propose(desk)
    with pytest.raises(PreviouslyRejected):
        edit(
            tenant_id=desk.tenant.pk, proposal_id=old.pk, edit=Edit(old.digest, {"amount": "11.00"}),
            by=person(desk.ada), clock=db_clock,
        )  # fmt: skip
    old.refresh_from_db()
    assert old.status == "pending"


def test_another_action_is_asked(desk: Desk) -> None:
    rejected(desk)
    assert propose(desk, amount="10.01").status == "pending"
    assert propose(desk, order="1043").status == "pending"


# -- the end of it -----------------------------------------------------------------------------------------------


def test_its_time_is_over_on_the_clock_alone(desk: Desk) -> None:
    proposal = rejected(desk)
    rejection = Rejection.objects.get(proposal=proposal)
    over(rejection)
    assert propose(desk).status == "pending"
    with pytest.raises(NothingRemembered):
        lifted(desk, proposal)


def test_lifting_lets_it_be_asked_and_is_written_down(desk: Desk) -> None:
    proposal = rejected(desk)
    rejection = lifted(desk, proposal)
    assert propose(desk).status == "pending"
    fresh = Rejection.objects.get(pk=rejection.pk)
    assert (fresh.lifted_by_id, fresh.lifted_why) == (desk.ben.pk, "It was a mistake.")
    event = Event.objects.get(kind="proposal.rejection_lifted")
    assert (event.subject_id, event.performed_by) == (proposal.pk, f"user:{desk.ben.pk}")
    assert "mistake" not in str(event.body)


def test_who_comes_second_is_told_who_was_first(desk: Desk) -> None:
    proposal = rejected(desk)
    lifted(desk, proposal)
    with pytest.raises(AlreadyLifted) as refused:
        lifted(desk, proposal, desk.ada)
    assert refused.value.details["by"] == str(desk.ben)


def test_only_who_could_decide_on_it_lifts_it_and_says_why(desk: Desk) -> None:
    proposal = rejected(desk)
    admin = make_user(desk.tenant, "root", roles=[Role.ADMIN])
    with pytest.raises(NotEligible):
        lifted(desk, proposal, admin)
    with pytest.raises(ReasonRequired):
        lifted(desk, proposal, why="  ")
    with pytest.raises(NothingRemembered):
        lifted(desk, propose(desk, amount="99.00"))


def test_lifting_and_proposing_at_once_end_well_whoever_is_first(desk: Desk) -> None:
    proposal = rejected(desk)
    racers = (lambda: lifted(desk, proposal), lambda: lifted(desk, proposal, desk.ada), lambda: propose(desk))
    results = in_threads(3, lambda number: racers[number]())
    lifts = [one for one in results[:2] if isinstance(one, Rejection)]
    assert len(lifts) == 1
    assert {type(one) for one in results[:2]} == {Rejection, AlreadyLifted}
    assert isinstance(results[2], Proposal | PreviouslyRejected)
    assert propose(desk, amount="10.00").status == "pending"


def test_rejecting_and_proposing_at_once_leave_one_pending_or_none(desk: Desk) -> None:
    proposal = propose(desk)
    racers = (lambda: desk.decide(proposal, "reject", remember="day"), lambda: propose(desk))
    results = in_threads(2, lambda number: racers[number]())
    assert not isinstance(results[0], Exception), results[0]
    assert isinstance(results[1], Proposal | PreviouslyRejected)
    with pytest.raises(PreviouslyRejected):
        propose(desk)
