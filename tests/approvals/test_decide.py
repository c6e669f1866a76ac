"""Deciding: every refusal has its own clear answer, a yes counts once, and nothing but a yes counts as one."""

import threading
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections, transaction

from access.enums import Role
from access.models import Membership, User
from approvals import refusals
from approvals.actions import UnknownDecision, UnknownProposal, UnknownReason, decide, expire_due, withdraw
from approvals.models import Decision, Proposal
from approvals.receipts import issue
from audit.actors import Via
from audit.models import Event
from common.clock import db_clock
from common.errors import Refused
from common.ids import new_id
from tests.factories import make_group, make_tenant, make_user
from tests.workflows.conftest import AGENT, Desk, desk, person
from tests.workflows.later import age, as_superuser, changed_by_hand, open_packets
from tests.workflows.together import at_once
from workflows.actions.runs import Requester, Source, start_run
from workflows.models import Command, Run
from workflows.operations import Verdict

__all__ = ["desk"]
pytestmark = pytest.mark.django_db

TWO = Verdict("ask_two", "toy.two", "It is a big toy.")


def refused(desk: Desk, proposal: Proposal, error: type[Refused], **how: Any) -> Refused:
    """The decision is refused with this, nothing is recorded but the attempt, and the proposal is as it was."""
    before = Proposal.objects.filter(pk=proposal.pk).values().get()
    with pytest.raises(error) as info:
        desk.decide(proposal, **how)
    assert type(info.value) is error
    assert Proposal.objects.filter(pk=proposal.pk).values().get() == before
    assert not Command.objects.exists()
    attempt = Event.objects.filter(kind="proposal.decision_refused").latest("at")
    assert (attempt.subject_id, attempt.reason) == (proposal.pk, error.code)
    return info.value


# -- who ---------------------------------------------------------------------------------------------------------


def test_nobody_decides_on_their_own_proposal(desk: Desk) -> None:
    started = start_run(
        tenant_id=desk.tenant.pk, workflow="toy-pay", input={}, by=person(desk.ada), clock=db_clock,
        source=Source("test", "1"), requester=Requester(excluded_users=(desk.ada.pk,)),
    )  # fmt: skip
    desk.advance()
    proposal = Proposal.objects.get(run_id=started.run.pk)
    for kind in ("approve", "reject", "request_changes"):
        refused(desk, proposal, refusals.OwnProposal, kind=kind)
    assert desk.decide(proposal, user=desk.ben).result == "approved"


def not_eligible(desk: Desk, who: str) -> User:
    user = make_user(desk.tenant, who, roles=[Role.OPERATOR] if who == "operator" else [Role.REVIEWER])
    if who == "deactivated":
        User.objects.filter(pk=user.pk).update(is_active=False)
    if who == "former":
        Membership.objects.filter(user=user).update(is_active=False)
    if who == "stranger":
        Membership.objects.filter(user=user).update(tenant=make_tenant("elsewhere"))
    return user


@pytest.mark.parametrize("who", ["operator", "deactivated", "former", "stranger"])
@pytest.mark.parametrize("kind", ["approve", "reject"])
def test_who_is_no_reviewer_here_decides_nothing(desk: Desk, who: str, kind: str) -> None:
    """Field reports K6, K12: neither a yes nor a veto."""
    refused(desk, desk.proposed(), refusals.NotEligible, kind=kind, user=not_eligible(desk, who))


def test_another_group_is_asked(desk: Desk) -> None:
    group = make_group(desk.tenant, "Big refunds")
    desk.till.verdict = Verdict("ask_one", "toy.big", "It is big.", group="Big refunds")
    proposal = desk.proposed()
    assert proposal.group_id == group.pk
    refused(desk, proposal, refusals.NotEligible)
    member = make_user(desk.tenant, "cleo", groups=[group])
    assert desk.decide(proposal, user=member).result == "approved"


@pytest.mark.parametrize("via", [via for via in Via if via != Via.SESSION])
def test_no_token_decides_whoever_holds_it(desk: Desk, via: Via) -> None:
    """Field report K4."""
    proposal = desk.proposed()
    submission = desk.submission(proposal, desk.ada)
    with pytest.raises(refusals.TokenCannotDecide):
        decide(
            tenant_id=desk.tenant.pk, proposal_id=proposal.pk, submission=submission, clock=db_clock,
            by=replace(person(desk.ada), via=via),
        )  # fmt: skip
    assert not Decision.objects.exists()


def test_another_tenants_proposal_is_none(desk: Desk) -> None:
    """Field report K1: the same answer as for an id that nobody has."""
    proposal, elsewhere = desk.proposed(), make_tenant("elsewhere")
    submission = desk.submission(proposal, desk.ada)
    for tenant_id, proposal_id in ((elsewhere.pk, proposal.pk), (desk.tenant.pk, new_id())):
        with pytest.raises(UnknownProposal) as info:
            decide(
                tenant_id=tenant_id, proposal_id=proposal_id, submission=submission, by=person(desk.ada),
                clock=db_clock,
            )  # fmt: skip
        assert (info.value.code, info.value.details) == ("not_found", {})


# -- when --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "approved"), [(-1, True), (0, False), (1, False)])
def test_decide_by_counts_without_the_sweep(desk: Desk, seconds: int, approved: bool) -> None:
    """Field report D2: one second after it, with the sweep stopped."""
    proposal = desk.proposed()
    at = proposal.decide_by + timedelta(seconds=seconds)
    if approved:
        assert desk.decide(proposal, clock=lambda: at).result == "approved"
    else:
        error = refused(desk, proposal, refusals.Expired, clock=lambda: at)
        assert error.details == {"decide_by": proposal.decide_by.isoformat()}


def test_a_decision_that_waits_for_the_row_beyond_decide_by_is_expired(desk: Desk) -> None:
    """The clock is read after the lock: *now()*, and a clock inside the locking statement, would approve late."""
    proposal = desk.proposed()
    as_superuser(
        "UPDATE approvals_proposal SET decide_by = clock_timestamp() + interval '1 second' WHERE id = %s",
        proposal.pk,
    )
    proposal.refresh_from_db()
    holds, may_end = threading.Event(), threading.Event()

    def hold_the_row() -> None:
        with transaction.atomic():
            Proposal.objects.select_for_update().get(pk=proposal.pk)
            holds.set()
            may_end.wait(10)
        connections.close_all()

    holder = threading.Thread(target=hold_the_row)
    holder.start()
    holds.wait(10)
    threading.Timer(1.5, may_end.set).start()
    began = time.monotonic()
    refused(desk, proposal, refusals.Expired)
    assert time.monotonic() - began > 1
    holder.join(10)


def test_the_sweep_only_says_what_the_clock_said(desk: Desk) -> None:
    """Field reports A10, Q4: a timer that comes late changes nothing, and expiry records nobody as decider."""
    decided, due = desk.proposed(), desk.proposed(order="7")
    desk.decide(decided)
    for proposal in (decided, due):
        age(proposal.run_id, 5 * 3600, "approvals_proposal")
    assert expire_due(clock=db_clock) == 1
    assert expire_due(clock=db_clock) == 0
    due.refresh_from_db()
    assert (due.status, due.decided_at, due.end_reason) == ("expired", None, "expired")
    assert not Decision.objects.filter(proposal=due).exists()
    assert Proposal.objects.get(pk=decided.pk).status == "approved"
    with pytest.raises(refusals.Expired):
        desk.decide(due)


def withdrawn(desk: Desk, proposal: Proposal) -> None:
    withdraw(tenant_id=desk.tenant.pk, proposal_id=proposal.pk, reason="x", by=AGENT, clock=db_clock)


def rejected(desk: Desk, proposal: Proposal) -> None:
    desk.decide(proposal, "reject", user=desk.ben)


def changes_requested(desk: Desk, proposal: Proposal) -> None:
    desk.decide(proposal, "request_changes", user=desk.ben)


def superseded(desk: Desk, proposal: Proposal) -> None:
    as_superuser(
        "UPDATE approvals_proposal SET status = 'superseded', ended_at = now() WHERE id = %s", proposal.pk
    )


def invalidated(desk: Desk, proposal: Proposal) -> None:
    as_superuser(
        "UPDATE approvals_proposal SET status = 'invalidated', ended_at = now() WHERE id = %s", proposal.pk
    )


@pytest.mark.parametrize(
    ("ended", "error"),
    [
        (withdrawn, refusals.Withdrawn), (rejected, refusals.AlreadyDecided),
        (changes_requested, refusals.AlreadyDecided), (superseded, refusals.Superseded),
        (invalidated, refusals.Invalidated),
    ],
)  # fmt: skip
def test_what_has_ended_is_not_decided_and_says_how_it_ended(
    desk: Desk, ended: Any, error: type[Refused]
) -> None:
    proposal = desk.proposed()
    ended(desk, proposal)
    for kind in ("approve", "reject"):
        info = refused(desk, proposal, error, kind=kind)
        assert info.details["status"] == Proposal.objects.get(pk=proposal.pk).status


# -- what --------------------------------------------------------------------------------------------------------


def test_an_old_digest(desk: Desk) -> None:
    proposal = desk.proposed()
    error = refused(desk, proposal, refusals.DigestMismatch, digest="0" * 64)
    assert error.details == {"digest": proposal.digest}
    refused(desk, proposal, refusals.DigestMismatch, kind="reject", digest="")


def test_an_old_view_digest(desk: Desk) -> None:
    proposal = desk.proposed()
    refused(desk, proposal, refusals.ViewMismatch, view_digest="0" * 64)


@pytest.mark.parametrize("how", ["plain", "sealed"])
@pytest.mark.parametrize("column", ["contract", "view"])
def test_bytes_changed_by_a_superuser_before_the_decision(desk: Desk, column: str, how: str) -> None:
    """Field report A14: the digests are recomputed from the stored bytes, never taken from the row alone."""
    proposal = desk.proposed()
    submission = desk.submission(proposal, desk.ada)
    if how == "plain":
        changed_by_hand(proposal.pk, column, "10.00", "99.00")
    else:  # a bit of the ciphertext
        last = f"set_byte({column}, length({column}) - 1, get_byte({column}, length({column}) - 1) # 1)"
        as_superuser(f"UPDATE approvals_proposal SET {column} = {last} WHERE id = %s", proposal.pk)
    error = refusals.DigestMismatch if column == "contract" else refusals.ViewMismatch
    with pytest.raises(error):
        decide(
            tenant_id=desk.tenant.pk, proposal_id=proposal.pk, submission=submission, by=person(desk.ada),
            clock=db_clock,
        )  # fmt: skip
    assert Proposal.objects.get().status == "pending"


def test_a_part_that_was_not_shown(desk: Desk) -> None:
    proposal = desk.proposed()
    receipts = desk.submission(proposal, desk.ada).view_receipts
    error = refused(desk, proposal, refusals.NotAllShown, view_receipts=receipts[1:])
    assert len(error.details["parts"]) == 1
    refused(desk, proposal, refusals.NotAllShown, view_receipts=())


@pytest.mark.parametrize("whose", ["another person's", "another proposal's", "another view's", "forged"])
def test_receipts_of_something_else_show_nothing(desk: Desk, whose: str) -> None:
    proposal, other = desk.proposed(), desk.proposed(order="7")
    parts = {
        "user_id": desk.ada.pk, "proposal_id": proposal.pk, "digest": proposal.digest,
        "view_digest": proposal.view_digest,
    }  # fmt: skip
    parts |= {
        "another person's": {"user_id": desk.ben.pk}, "another proposal's": {"proposal_id": other.pk},
        "another view's": {"view_digest": other.view_digest}, "forged": {},
    }[whose]  # fmt: skip
    from approvals.shown import view_of

    receipts = tuple(issue(**parts, part=part, at=db_clock()) for part in view_of(proposal).parts)
    if whose == "forged":
        receipts = tuple(receipt[:-2] + "xx" for receipt in receipts)
    refused(desk, proposal, refusals.NotAllShown, view_receipts=receipts)


def test_a_warning_that_was_not_acknowledged(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tests.workflows.toy.ToyPay.warnings",
        lambda *_: (("second_today", "order", "It is the second today."),),
    )
    proposal = desk.proposed()
    error = refused(desk, proposal, refusals.NotAcknowledged, acknowledged=())
    [warning] = error.details["warnings"]
    refused(desk, proposal, refusals.NotAcknowledged, acknowledged=("something",))
    assert desk.decide(proposal, acknowledged=(warning, "something" * 99)).result == "approved"
    assert Decision.objects.get().acknowledged == [warning]


@pytest.mark.parametrize("kind", ["reject", "request_changes"])
def test_a_no_needs_a_reason(desk: Desk, kind: str) -> None:
    proposal = desk.proposed()
    refused(desk, proposal, refusals.ReasonRequired, kind=kind, reason=" \n")
    assert desk.decide(proposal, kind, reason="", reason_code="suspicious").proposal_status in (
        "rejected", "changes_requested",
    )  # fmt: skip


@pytest.mark.parametrize(
    "kind", [None, "", "Approve", "Approve ", "approve ", "yes", "true", True, 1, "APPROVE"]
)
def test_nothing_but_the_three_words_is_a_decision(desk: Desk, kind: Any) -> None:
    """Field report B11: a closed list that fails closed."""
    proposal = desk.proposed()
    with pytest.raises(UnknownDecision):
        decide(
            tenant_id=desk.tenant.pk, proposal_id=proposal.pk, by=person(desk.ada), clock=db_clock,
            submission=replace(desk.submission(proposal, desk.ada), kind=kind),
        )  # fmt: skip
    assert Proposal.objects.get().status == "pending"
    assert not Decision.objects.exists()


def test_a_reason_code_is_one_of_the_list(desk: Desk) -> None:
    with pytest.raises(UnknownReason):
        desk.decide(desk.proposed(), "reject", reason_code="x" * 40)


# -- once --------------------------------------------------------------------------------------------------------


def test_the_same_decision_again_gives_the_original(desk: Desk) -> None:
    """Field report G3."""
    proposal = desk.proposed()
    first = desk.decide(proposal)
    again = desk.decide(proposal)
    assert again == replace(first, replayed=True)
    assert (Decision.objects.count(), Command.objects.count()) == (1, 1)
    desk.work()
    assert desk.decide(proposal).result == "approved"
    with pytest.raises(refusals.AlreadyDecided):  # field report A2: the opposite is not the same again
        desk.decide(proposal, "reject")


def test_a_change_of_mind_before_the_end_replaces_the_vote_and_keeps_the_history(desk: Desk) -> None:
    """Field report G4."""
    desk.till.verdict = TWO
    proposal = desk.proposed()
    assert desk.decide(proposal).result == "recorded"
    outcome = desk.decide(proposal, "reject")
    assert (outcome.result, outcome.votes, outcome.proposal_status) == ("rejected", 0, "rejected")
    votes = Decision.objects.order_by("at").values_list("kind", "replaced_at")
    assert [(kind, replaced is not None) for kind, replaced in votes] == [
        ("approve", True),
        ("reject", False),
    ]
    assert Event.objects.filter(kind="proposal.vote").count() == 2


def test_who_voted_before_another_said_no_is_not_told_that_it_was_approved(desk: Desk) -> None:
    desk.till.verdict = TWO
    proposal = desk.proposed()
    desk.decide(proposal)
    desk.decide(proposal, "reject", user=desk.ben)
    again = desk.decide(proposal)
    assert (again.result, again.proposal_status, again.replayed) == ("recorded", "rejected", True)


# -- two people --------------------------------------------------------------------------------------------------


def test_a_quorum_counts_distinct_people(desk: Desk) -> None:
    """Field report G1."""
    desk.till.verdict = TWO
    proposal = desk.proposed()
    first = desk.decide(proposal)
    assert (first.result, first.votes, first.needed, first.command_id) == ("recorded", 1, 2, None)
    assert desk.decide(proposal).votes == 1
    second = desk.decide(proposal, user=desk.ben)
    assert (second.result, second.votes, second.proposal_status) == ("approved", 2, "approved")
    assert second.command_id == Command.objects.get().pk


def test_who_is_deactivated_before_the_quorum_is_met_does_not_count(desk: Desk) -> None:
    desk.till.verdict = TWO
    proposal = desk.proposed()
    desk.decide(proposal)
    User.objects.filter(pk=desk.ada.pk).update(is_active=False)
    second = desk.decide(proposal, user=desk.ben)
    assert (second.result, second.votes, second.proposal_status) == ("recorded", 1, "pending")
    third = desk.decide(proposal, user=make_user(desk.tenant, "cleo"))
    assert (third.result, third.votes) == ("approved", 2)


# -- at the same instant -----------------------------------------------------------------------------------------


def test_twenty_people_approve_in_the_same_instant(desk: Desk) -> None:
    """Field report A4."""
    proposal = desk.proposed()
    people = [make_user(desk.tenant, f"user{number}") for number in range(20)]
    answers = at_once(20, lambda number: desk.decide(proposal, user=people[number]).result)
    assert answers == {"approved": 1, "already_decided": 19}
    assert (Command.objects.count(), Decision.objects.count()) == (1, 1)
    assert Event.objects.filter(kind="proposal.approved").count() == 1


def test_one_person_from_twenty_browsers(desk: Desk) -> None:
    """Invariant I11: a double click is one decision, and each click gets its answer."""
    proposal = desk.proposed()
    outcomes = at_once(20, lambda _: desk.decide(proposal).replayed)
    assert outcomes == {"False": 1, "True": 19}
    assert (Command.objects.count(), Decision.objects.count()) == (1, 1)


def test_yes_and_no_in_the_same_instant(desk: Desk) -> None:
    kinds = ("approve", "reject")
    for order in range(5):
        proposal = desk.proposed(order=str(order))
        answers = at_once(
            2, lambda n, p=proposal: desk.decide(p, kinds[n], user=(desk.ada, desk.ben)[n]).result
        )
        assert answers["already_decided"] == 1
        assert Decision.objects.filter(proposal=proposal).count() == 1


def test_approve_and_the_expiring_sweep_in_the_same_instant(desk: Desk) -> None:
    for order in range(5):
        proposal = desk.proposed(order=str(order))
        as_superuser(
            "UPDATE approvals_proposal SET decide_by = clock_timestamp() + interval '20 ms' WHERE id = %s",
            proposal.pk,
        )
        proposal.refresh_from_db()

        def race(number: int, proposal: Proposal = proposal) -> str:
            time.sleep(max(0.0, (proposal.decide_by - db_clock()).total_seconds() - 0.003))
            return desk.decide(proposal).result if number else str(expire_due(clock=db_clock))

        at_once(2, race)
        expire_due(clock=db_clock)
        ended = Proposal.objects.get(pk=proposal.pk)
        assert ended.status in ("approved", "expired")
        assert Command.objects.filter(proposal=proposal).count() == (ended.status == "approved")
        assert Decision.objects.filter(proposal=proposal).count() == (ended.status == "approved")


# -- one action per thing ----------------------------------------------------------------------------------------


def test_a_second_proposal_for_the_same_order_is_told_which_command_is_doing_it(desk: Desk) -> None:
    """Field report A13. It stays pending, and can be decided once the first has ended."""
    first, second = desk.proposed(), desk.proposed()
    command_id = desk.decide(first).command_id
    error = refused_in_progress(desk, second)
    assert error.details == {"command_id": str(command_id)}
    assert desk.decide(second, "reject").result == "rejected"


def refused_in_progress(desk: Desk, proposal: Proposal) -> Refused:
    with pytest.raises(refusals.ActionInProgress) as info:
        desk.decide(proposal)
    assert Proposal.objects.get(pk=proposal.pk).status == "pending"
    assert not Decision.objects.filter(proposal=proposal).exists()
    return info.value


def test_two_proposals_for_one_order_approved_in_the_same_instant(desk: Desk) -> None:
    pair = [desk.proposed(), desk.proposed()]
    answers = at_once(2, lambda number: desk.decide(pair[number]).result)
    assert answers == {"approved": 1, "action_in_progress": 1}
    assert Command.objects.count() == 1


def test_a_rule_that_finds_the_same_thing_being_done_leaves_it_to_people(desk: Desk) -> None:
    desk.till.verdict = Verdict("auto", "toy.small", "It is small.")
    runs = [desk.start(workflow="toy-execute") for _ in range(2)]
    desk.advance()
    assert Command.objects.count() == 1
    waiting = Proposal.objects.get(status="pending")
    assert open_packets(waiting.run_id) == ["action_in_progress"]
    assert {Run.objects.get(pk=run.pk).status for run in runs} == {"executing", "waiting_for_approval"}
    approved = Event.objects.filter(kind="run.executing")
    assert approved.count() == 1
    refused_in_progress(desk, waiting)
