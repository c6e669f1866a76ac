"""Deciding in somebody's stead: who may, what it counts for, what ends it, and that both names stand everywhere."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from access import actions
from access.actions_absence import end_absence
from access.enums import Role
from access.models import Absence, Group, User
from approvals.models import Decision, Proposal
from approvals.policies import standing_votes, valid_approvals
from approvals.refusals import NotEligible, OwnProposal
from approvals.standing import effects_of_leaving
from audit.models import Event
from common.clock import db_clock
from common.tx import action
from tests.access.people import INSTALLER
from tests.factories import make_group, make_user
from tests.workflows.conftest import Desk, desk, person
from workflows.actions.runs import Source, start_run
from workflows.models import Command
from workflows.operations import Verdict

__all__ = ["desk"]
pytestmark = pytest.mark.django_db


class Scene:
    """Ada and Ben review for the desk; Xan reviews too, and is in no group."""

    def __init__(self, of: Desk) -> None:
        self.desk = of
        self.group: Group = make_group(of.tenant, "Refund desk")
        for user in (of.ada, of.ben):
            actions.add_to_group(group=self.group, user=user, by=INSTALLER, clock=db_clock)
        self.xan = make_user(of.tenant, "xan", display_name="Xan Oduya")
        User.objects.filter(pk=of.ada.pk).update(display_name="Ada Lind")
        self.ask("ask_one")

    def ask(self, verdict: Any) -> None:
        self.desk.till.verdict = Verdict(verdict, "toy.ask", "It is a toy.", group="Refund desk")

    def away(self, user: User, deputy: User | None, **more: Any) -> Absence:
        now = db_clock()
        values = {
            "starts_at": now - timedelta(hours=1), "ends_at": now + timedelta(hours=1), "zone": "UTC",
            "created_at": now, "created_by": "test",
        }  # fmt: skip
        return Absence.objects.create(tenant=self.desk.tenant, user=user, deputy=deputy, **(values | more))

    def counted(self, proposal: Proposal) -> int:
        @action
        def count() -> int:
            return valid_approvals(proposal, standing_votes(proposal), lock=True)

        return count()


@pytest.fixture
def scene(desk: Desk) -> Scene:
    return Scene(desk)


def test_a_deputy_decides_and_both_names_are_kept(scene: Scene, client: Client) -> None:
    proposal = scene.desk.proposed()
    with pytest.raises(NotEligible):
        scene.desk.decide(proposal, user=scene.xan)
    absence = scene.away(scene.desk.ada, scene.xan)
    scene.desk.decide(proposal, user=scene.xan)
    vote = Decision.objects.get(proposal=proposal)
    assert (vote.user_id, vote.in_stead_of_id, vote.group_id) == (
        scene.xan.pk,
        scene.desk.ada.pk,
        scene.group.pk,
    )
    event = Event.objects.get(kind="proposal.vote")
    assert (event.performed_by, event.on_behalf_of) == (f"user:{scene.xan.pk}", f"user:{scene.desk.ada.pk}")
    assert event.body["in_stead_of"] == str(scene.desk.ada.pk)
    assert event.body["absence"] == str(absence.pk)
    client.force_login(scene.desk.ben)
    assert "Xan Oduya for Ada Lind" in client.get(f"/review/{proposal.pk}/").content.decode()


def test_what_a_deputy_approved_is_sent_also_when_the_absence_is_over(scene: Scene) -> None:
    """A delegation that merely ended does not revoke a vote."""
    proposal = scene.desk.proposed()
    absence = scene.away(scene.desk.ada, scene.xan)
    scene.desk.decide(proposal, user=scene.xan)
    end_absence(tenant=scene.desk.tenant, absence_id=absence.pk, by=person(scene.desk.ada), clock=db_clock)
    assert scene.counted(proposal) == 1
    scene.desk.work()
    assert Command.objects.get().status == "confirmed"


@pytest.mark.parametrize("who", ["away", "deputy"])
@pytest.mark.parametrize("how", ["role", "account", "group"])
def test_a_vote_falls_with_the_role_of_either(scene: Scene, who: str, how: str) -> None:
    proposal = scene.desk.proposed()
    scene.away(scene.desk.ada, scene.xan)
    scene.desk.decide(proposal, user=scene.xan)
    user = scene.desk.ada if who == "away" else scene.xan
    say: dict[str, Any] = {"user": user, "by": INSTALLER, "clock": db_clock}
    if how == "role":
        actions.set_roles(tenant=scene.desk.tenant, roles=[Role.OPERATOR], **say)
    elif how == "account":
        actions.deactivate_membership(tenant=scene.desk.tenant, **say)
    else:
        actions.remove_from_group(group=scene.group, **say)
    counts = 1 if (who, how) == ("deputy", "group") else 0  # the deputy never was in the group
    assert scene.counted(proposal) == counts
    scene.desk.work()
    assert Command.objects.get().status == ("confirmed" if counts else "void")


def test_one_person_is_one_vote_and_one_place_is_one_vote(scene: Scene) -> None:
    """Neither Xan for two people, nor Ada with Xan for her, are two."""
    scene.ask("ask_two")
    proposal = scene.desk.proposed()
    scene.away(scene.desk.ada, scene.xan)
    scene.away(scene.desk.ben, scene.xan)
    first = scene.desk.decide(proposal, user=scene.xan)
    again = scene.desk.decide(proposal, user=scene.xan)
    assert (first.votes, again.votes, again.replayed) == (1, 1, True)
    taken = Decision.objects.get(proposal=proposal).in_stead_of
    outcome = scene.desk.decide(
        proposal, user=taken
    )  # back, and says it in person: that takes the deputy's place
    assert (outcome.votes, outcome.result, outcome.replayed) == (1, "recorded", False)
    assert Decision.objects.filter(proposal=proposal, replaced_at=None).get().user_id == taken.pk
    other = scene.desk.ben if taken == scene.desk.ada else scene.desk.ada
    assert scene.desk.decide(proposal, user=other).result == "approved"


def test_in_the_stead_of_whoever_has_spoken_nobody_speaks(scene: Scene) -> None:
    scene.ask("ask_two")
    proposal = scene.desk.proposed()
    scene.desk.decide(proposal, user=scene.desk.ada)
    scene.away(scene.desk.ada, scene.xan)
    with pytest.raises(NotEligible):
        scene.desk.decide(proposal, user=scene.xan)
    scene.away(scene.desk.ben, scene.xan)
    assert scene.desk.decide(proposal, user=scene.xan).result == "approved"


def test_nobody_decides_in_the_stead_of_the_proposers_side_nor_on_their_own(scene: Scene) -> None:
    for side, refusal in ((scene.desk.ada, NotEligible), (scene.xan, OwnProposal)):
        run = start_run(
            tenant_id=scene.desk.tenant.pk, workflow="toy-pay", input={"order": "1"}, by=person(side),
            clock=db_clock, source=Source(system="test", event_id=str(side.pk)),
        ).run  # fmt: skip
        scene.desk.advance()
        proposal = Proposal.objects.get(run_id=run.pk)
        assert proposal.excluded_users == [side.pk]
        absence = scene.away(scene.desk.ada, scene.xan)
        with pytest.raises(refusal):
            scene.desk.decide(proposal, user=scene.xan)
        Absence.objects.filter(pk=absence.pk).update(ended_at=db_clock())


def test_before_it_begins_and_after_it_ends_nothing_is_held(scene: Scene) -> None:
    proposal, now = scene.desk.proposed(), db_clock()
    hour = timedelta(hours=1)
    scene.away(scene.desk.ada, scene.xan, starts_at=now + hour, ends_at=now + 2 * hour)
    scene.away(scene.desk.ben, scene.xan, starts_at=now - 2 * hour, ends_at=now - hour)
    with pytest.raises(NotEligible):
        scene.desk.decide(proposal, user=scene.xan)


def test_an_admin_is_told_what_hangs_on_whoever_was_away(scene: Scene) -> None:
    scene.ask("ask_two")
    proposal = scene.desk.proposed()
    scene.away(scene.desk.ada, scene.xan)
    scene.desk.decide(proposal, user=scene.xan)
    for account in (scene.desk.ada.pk, scene.xan.pk):
        assert effects_of_leaving(scene.desk.tenant.pk, [account])[0].startswith("1 proposal with their")
