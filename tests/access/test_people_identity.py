"""People, not accounts: votes, words and *their own* are counted by person; a team of one says that it is one."""

from datetime import timedelta
from typing import Any

import pytest

from access import actions, actions_people, actions_posture
from access.actions_people import OwnAccounts, SameAccount
from access.actions_posture import BreakGlassEnd, BreakGlassOn
from access.enums import DutyKind, Role
from access.models import BreakGlass, Membership, User
from access.policies import NotAMember, ReasonNeeded, RoleMissing
from access.selectors import break_glass_of
from approvals.models import Decision, Proposal
from approvals.refusals import DecisionRefused, NotEligible, OwnProposal
from audit.actors import Actor, Owner, Via
from audit.models import Event
from common.clock import db_clock
from common.errors import Refused
from tests.access.people import INSTALLER
from tests.access.there import count_reviewers
from tests.factories import make_group, make_tenant, make_user
from tests.workflows.conftest import AGENT, Desk, desk, person
from tests.workflows.counter import open_counter, takes_two
from tests.workflows.later import as_superuser, end_of
from workflows.actions.runs import Requester, Source, start_run
from workflows.models import Command, Run
from workflows.operations import Verdict
from workflows.receipt import receipt

__all__ = ["desk"]
pytestmark = pytest.mark.django_db
BY: dict[str, Any] = {"by": INSTALLER, "clock": db_clock}
SOON = timedelta(hours=1)


def link(of: Desk, user: User, other: User, **changes: Any) -> None:
    actions_people.link_accounts(**({"tenant": of.tenant, "user": user, "other": other} | BY | changes))


def asked_by(of: Desk, user: User, order: str = "1042") -> Proposal:
    """A proposal that an automation made on behalf of this person."""
    started = start_run(
        tenant_id=of.tenant.pk, workflow="toy-pay", input={"order": order}, by=AGENT, clock=db_clock,
        source=Source("test", f"own-{order}"), requester=Requester(f"user:{user.pk}", (user.pk,)),
    )  # fmt: skip
    of.advance()
    return Proposal.objects.get(run_id=started.run.pk)


def two_people(of: Desk) -> Proposal:
    of.till.verdict = Verdict("ask_two", "toy.two", "It is a big toy.")
    return of.proposed()


def refusal_of(of: Desk, proposal: Proposal, user: User) -> str:
    with pytest.raises(DecisionRefused) as refused:
        of.decide(proposal, user=user)
    return refused.value.code


# -- other accounts of the same person ---------------------------------------------------------------------------


def test_what_one_account_asked_for_no_other_account_decides(desk: Desk) -> None:
    other = make_user(desk.tenant, "ada-admin")
    link(desk, desk.ada, other)
    proposal = asked_by(desk, desk.ada)
    assert refusal_of(desk, proposal, other) == "own_proposal"
    desk.decide(proposal, user=desk.ben)


@pytest.mark.parametrize("turned", [False, True])
def test_it_counts_too_when_they_are_put_together_later(desk: Desk, turned: bool) -> None:
    other = make_user(desk.tenant, "ada-admin")
    proposal = asked_by(desk, desk.ada)
    link(desk, *((other, desk.ada) if turned else (desk.ada, other)))
    assert refusal_of(desk, proposal, other) == "own_proposal"


def test_a_vote_before_that_no_longer_counts_when_it_is_sent(desk: Desk) -> None:
    other = make_user(desk.tenant, "ada-admin")
    proposal = asked_by(desk, desk.ada)
    desk.decide(proposal, user=other)
    command = Command.objects.get(proposal=proposal)
    link(desk, desk.ada, other)
    desk.work()
    assert desk.till.calls == []
    assert end_of(command)["command"] == "void(reviewer)"


def test_two_accounts_of_one_person_are_one_of_two(desk: Desk) -> None:
    other = make_user(desk.tenant, "ada-admin")
    link(desk, desk.ada, other)
    proposal = two_people(desk)
    assert desk.decide(proposal).votes == 1
    again = desk.decide(proposal, user=other)
    assert (again.replayed, again.votes, again.proposal_status) == (True, 1, "pending")
    assert desk.decide(proposal, user=desk.ben).proposal_status == "approved"


def test_two_votes_become_one_when_their_accounts_turn_out_to_be_one_person(desk: Desk) -> None:
    proposal = two_people(desk)
    desk.decide(proposal)
    desk.decide(proposal, user=desk.ben)
    command = Command.objects.get(proposal=proposal)
    link(desk, desk.ada, desk.ben)
    desk.work()
    assert desk.till.calls == []
    assert end_of(command)["command"] == "void(reviewer)"


def test_a_person_changes_their_mind_under_another_account(desk: Desk) -> None:
    other = make_user(desk.tenant, "ada-admin")
    link(desk, desk.ada, other)
    proposal = two_people(desk)
    desk.decide(proposal)
    assert desk.decide(proposal, "reject", user=other).proposal_status == "rejected"
    assert Decision.objects.filter(proposal=proposal, replaced_at__isnull=False).get().user == desk.ada


def test_words_about_an_unknown_outcome_are_counted_by_person(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes_two(monkeypatch)
    counter = open_counter(desk)
    link(desk, counter.opal, counter.otto)
    assert counter.say("happened").given == 1
    assert counter.say("happened", counter.otto).given == 1
    assert counter.stays_unknown()
    third = make_user(desk.tenant, "olga", roles=[Role.OPERATOR])
    assert counter.say("happened", third).settled


def test_a_word_no_longer_counts_once_its_speaker_turns_out_to_be_who_asked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes_two(monkeypatch)
    counter = open_counter(desk)
    assert counter.say("happened").given == 1
    as_superuser("UPDATE approvals_proposal SET excluded_users = %s", [desk.ada.pk])
    link(desk, desk.ada, counter.opal)
    assert counter.say("happened", counter.otto).given == 1
    assert counter.stays_unknown()


def test_no_account_says_what_became_of_what_another_one_asked_for(desk: Desk) -> None:
    counter = open_counter(desk)
    as_superuser("UPDATE approvals_proposal SET excluded_users = %s", [desk.ada.pk])
    link(desk, desk.ada, counter.opal)
    with pytest.raises(OwnProposal):
        counter.say("happened")


def test_how_many_people_could_decide_counts_people(desk: Desk) -> None:
    other = make_user(desk.tenant, "ada-admin")
    assert count_reviewers(desk.tenant.pk, None, []) == 3
    link(desk, desk.ada, other)
    assert count_reviewers(desk.tenant.pk, None, []) == 2
    assert count_reviewers(desk.tenant.pk, None, [other.pk]) == 1
    group = make_group(desk.tenant)
    assert count_reviewers(desk.tenant.pk, group.pk, []) == 0


def test_accounts_are_put_together_in_one_organisation_only(desk: Desk) -> None:
    stranger = make_user(make_tenant("lagoon"), "eve")
    with pytest.raises(NotAMember):
        link(desk, desk.ada, stranger)
    with pytest.raises(SameAccount):
        link(desk, desk.ada, desk.ada)
    with pytest.raises(RoleMissing):
        link(desk, desk.ada, desk.ben, by=person(desk.ada))


def test_three_accounts_are_one_person_and_come_apart_one_by_one(desk: Desk) -> None:
    third = make_user(desk.tenant, "third")
    link(desk, desk.ada, desk.ben)
    link(desk, third, desk.ben)
    assert Membership.objects.get(user=desk.ada).accounts == {desk.ada.pk, desk.ben.pk, third.pk}
    with pytest.raises(ReasonNeeded):
        actions_people.unlink_account(tenant=desk.tenant, user=third, reason="", **BY)
    actions_people.unlink_account(tenant=desk.tenant, user=third, reason="another Ben", **BY)
    assert Membership.objects.get(user=desk.ada).accounts == {desk.ada.pk, desk.ben.pk}
    actions.set_roles(tenant=desk.tenant, user=desk.ben, roles=[Role.ADMIN, Role.REVIEWER], **BY)
    with pytest.raises(OwnAccounts):
        actions_people.unlink_account(
            tenant=desk.tenant, user=desk.ada, reason="I want to", by=person(desk.ben), clock=db_clock
        )


# -- what a person answers for -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "version", "closed"),
    [
        (DutyKind.OWNER, None, True), (DutyKind.POLICY_EDITOR, None, True), (DutyKind.POLICY_EDITOR, 1, True),
        (DutyKind.POLICY_EDITOR, 2, False),
    ],
)  # fmt: skip
def test_owner_and_policy_editor_do_not_decide(
    desk: Desk, kind: DutyKind, version: int | None, closed: bool
) -> None:
    other = make_user(desk.tenant, "ada-admin")
    link(desk, desk.ada, other)
    actions_people.give_duty(
        tenant=desk.tenant, user=desk.ada, kind=kind, workflow="toy-pay", policy_version=version, **BY
    )
    proposal = desk.proposed()
    for user in (desk.ada, other):
        if closed:
            assert refusal_of(desk, proposal, user) == "own_proposal"
    desk.decide(proposal, user=desk.ben if closed else desk.ada)


def test_an_admin_does_not_approve_their_own_with_a_role_they_gave_themself(desk: Desk) -> None:
    admin = make_user(desk.tenant, "adam", roles=[Role.ADMIN])
    proposal = asked_by(desk, admin)
    with pytest.raises(NotEligible):
        desk.decide(proposal, user=admin)
    actions.set_roles(
        tenant=desk.tenant, user=admin, roles=[Role.ADMIN, Role.REVIEWER], reason="nobody else is here",
        by=person(admin), clock=db_clock,
    )  # fmt: skip
    assert refusal_of(desk, proposal, admin) == "own_proposal"


# -- break-glass -------------------------------------------------------------------------------------------------


def turn_on(of: Desk, **changes: Any) -> BreakGlass:
    said = {"tenant": of.tenant, "reason": "I am alone", "ends_at": db_clock() + SOON}
    return actions_posture.turn_on(**(said | BY | changes))


def test_a_team_of_one_approves_its_own_and_everything_says_so(desk: Desk) -> None:
    proposal = asked_by(desk, desk.ada)
    assert refusal_of(desk, proposal, desk.ada) == "own_proposal"
    turn_on(desk)
    desk.decide(proposal)
    vote = Decision.objects.get(proposal=proposal)
    event = Event.objects.get(kind="proposal.vote", subject_id=proposal.pk)
    assert (vote.posture, event.body["posture"], event.body["own"]) == ("break_glass", "break_glass", True)
    actions_posture.turn_off(tenant=desk.tenant, **BY)
    desk.work()
    assert len(desk.till.calls) == 1
    [said] = receipt(desk.tenant.pk, proposal.run_id, proposal.step)["decision"]["votes"]
    assert said["posture"] == "break_glass"
    kinds = list(
        Event.objects.filter(kind__startswith="break_glass.").order_by("at").values_list("kind", flat=True)
    )
    assert kinds == ["break_glass.on", "break_glass.off"]


def test_ordinary_decisions_say_nothing_of_it(desk: Desk) -> None:
    proposal = desk.proposed()
    desk.decide(proposal)
    assert Decision.objects.get(proposal=proposal).posture == ""
    assert "posture" not in Event.objects.get(kind="proposal.vote", subject_id=proposal.pk).body
    [said] = receipt(desk.tenant.pk, proposal.run_id, proposal.step)["decision"]["votes"]
    assert "posture" not in said


def test_a_quorum_of_two_stays_two(desk: Desk) -> None:
    turn_on(desk)
    other = make_user(desk.tenant, "ada-admin")
    link(desk, desk.ada, other)
    desk.till.verdict = Verdict("ask_two", "toy.two", "It is a big toy.")
    proposal = asked_by(desk, desk.ada)
    assert desk.decide(proposal).votes == 1
    assert desk.decide(proposal, user=other).proposal_status == "pending"
    assert desk.decide(proposal, user=desk.ben).proposal_status == "approved"


def test_a_word_about_their_own_counts_as_one_and_is_marked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = open_counter(desk)
    as_superuser("UPDATE approvals_proposal SET excluded_users = %s", [counter.opal.pk])
    turn_on(desk)
    takes_two(monkeypatch)
    assert not counter.say("happened").settled
    event = Event.objects.get(kind="command.attested")
    assert (event.body["posture"], event.body["own"]) == ("break_glass", True)
    assert counter.say("happened", counter.otto).settled


def test_it_ends_by_the_clock_whether_or_not_anybody_looks(desk: Desk) -> None:
    turn_on(desk)
    as_superuser(
        "UPDATE access_breakglass SET ends_at = clock_timestamp(), created_at = created_at - interval '1 h'"
    )
    assert break_glass_of(desk.tenant.pk) is None
    assert refusal_of(desk, asked_by(desk, desk.ada), desk.ada) == "own_proposal"
    assert actions_posture.expire_postures(by=INSTALLER, clock=db_clock) == 1
    assert actions_posture.expire_postures(by=INSTALLER, clock=db_clock) == 0
    row = BreakGlass.objects.get()
    assert row.ended_at == row.ends_at
    assert Event.objects.filter(kind="break_glass.expired").count() == 1
    turn_on(desk)


def test_it_is_of_one_organisation(desk: Desk) -> None:
    other = make_tenant("lagoon")
    turn_on(desk, tenant=other)
    assert refusal_of(desk, asked_by(desk, desk.ada), desk.ada) == "own_proposal"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"reason": "  "}, ReasonNeeded), ({"ends_at": "past"}, BreakGlassEnd), ({"ends_at": "far"}, BreakGlassEnd),
        ({"by": "reviewer"}, RoleMissing), ({"by": "token"}, RoleMissing),
    ],
)  # fmt: skip
def test_how_it_is_not_switched_on(desk: Desk, changes: dict[str, Any], error: type[Refused]) -> None:
    token = Actor(performed_by="api:x", via=Via.TOKEN, owner=Owner.AUTOMATION, user_id=desk.ada.pk)
    values = {
        "past": db_clock() - SOON, "far": db_clock() + timedelta(days=91), "reviewer": person(desk.ada), "token": token,
    }  # fmt: skip
    with pytest.raises(error):
        turn_on(desk, **{name: values.get(value, value) for name, value in changes.items()})
    assert not BreakGlass.objects.exists()


def test_it_is_on_once(desk: Desk) -> None:
    turn_on(desk)
    with pytest.raises(BreakGlassOn):
        turn_on(desk)


def test_a_proposal_of_a_team_of_one_finds_somebody_who_may_decide(desk: Desk) -> None:
    actions.deactivate_membership(tenant=desk.tenant, user=desk.ben, **BY)
    first = asked_by(desk, desk.ada, "1")
    assert Event.objects.filter(kind="packet.opened", run_id=first.run_id).exists()
    turn_on(desk)
    second = asked_by(desk, desk.ada, "2")
    assert not Event.objects.filter(kind="packet.opened", run_id=second.run_id).exists()


# -- who is gone -------------------------------------------------------------------------------------------------


def test_what_a_deactivated_person_approved_goes_back_to_review(desk: Desk) -> None:
    command = desk.approved()
    actions.deactivate_membership(tenant=desk.tenant, user=desk.ada, **BY)
    desk.work()
    assert desk.till.calls == []
    ended = end_of(command)
    assert (ended["command"], ended["proposal"]) == ("void(reviewer)", "invalidated")
    again = Proposal.objects.get(run_id=command.run_id, status="pending")
    assert (again.version, again.supersedes_id) == (2, command.proposal_id)
    with pytest.raises(NotEligible):
        desk.decide(again, user=desk.ada)
    actions_people.reactivate_membership(tenant=desk.tenant, user=desk.ada, **BY)
    desk.decide(again, user=desk.ada)
    assert Run.objects.get(pk=command.run_id).status == "executing"
