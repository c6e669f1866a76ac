"""Nobody there in time is an alarm when it is proposed; who else is asked, and when; what follows when nobody is."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from access import actions, actions_people
from access.actions_absence import end_absence
from access.actions_hours import set_hours
from access.enums import Role
from access.models import Absence, Group, Membership, User
from approvals.actions import expire_due
from approvals.escalating import escalate_due
from approvals.models import Escalation, Proposal
from approvals.refusals import NotEligible
from audit.actors import clock_actor
from audit.models import Event
from common.clock import db_clock
from repair.models import RepairPacket
from tests.access.people import INSTALLER
from tests.factories import make_group, make_user
from tests.workflows import modes
from tests.workflows.conftest import Desk, person, state
from workflows import registry
from workflows.actions.manning import recheck_manning
from workflows.models import Run
from workflows.operations import Verdict

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
CLOCK = clock_actor()


@pytest.fixture
def group(desk: Desk) -> Group:
    made = make_group(desk.tenant, "Refund desk")
    for user in (desk.ada, desk.ben):
        actions.add_to_group(group=made, user=user, by=INSTALLER, clock=db_clock)
    ask(desk, "ask_one")
    return made


def ask(desk: Desk, verdict: Any) -> None:
    desk.till.verdict = Verdict(verdict, "toy.ask", "It is a toy.", group="Refund desk")


def away(desk: Desk, user: User, deputy: User | None = None, start: float = -1, end: float = 9) -> Absence:
    now = db_clock()
    return Absence.objects.create(
        tenant=desk.tenant, user=user, deputy=deputy, starts_at=now + start * HOUR, ends_at=now + end * HOUR,
        zone="UTC", created_at=now, created_by="test",
    )  # fmt: skip


def packets(proposal: Proposal) -> list[tuple[str, str]]:
    return list(RepairPacket.objects.filter(run_id=proposal.run_id).values_list("cause", "status"))


def test_all_away_is_an_alarm_with_the_reason(desk: Desk, group: Group, client: Client) -> None:
    """# field report T4"""
    for user in (desk.ada, desk.ben):
        away(desk, user)
    proposal = desk.proposed()
    by = proposal.decide_by.strftime("%Y-%m-%d %H:%M UTC")
    assert proposal.unmanned == (
        f"Not enough people may decide this before {by}: 1 person is needed, 0 can. "
        "Of 2 who are asked: 2 away all that time."
    )
    [event] = Event.objects.filter(kind="proposal.unmanned")
    assert (event.body, event.digest) == ({"why": proposal.unmanned}, proposal.digest)
    [packet] = RepairPacket.objects.filter(run_id=proposal.run_id)
    assert (packet.cause, packet.summary, packet.owner) == ("nobody_eligible", proposal.unmanned, "toy-desk")
    client.force_login(desk.ada)
    for address in (f"/review/{proposal.pk}/", "/review/", f"/runs/{proposal.run_id}/"):
        shown = client.get(address).content.decode()
        assert "Not enough people" in shown or "Too few there" in shown, address


def test_whoever_comes_back_in_time_is_there(desk: Desk, group: Group) -> None:
    """The time to decide is four hours: who is back in three can answer, who is back in five cannot."""
    away(desk, desk.ada)
    absence = away(desk, desk.ben, end=3)
    assert desk.proposed().unmanned == ""
    Absence.objects.filter(pk=absence.pk).update(ended_at=db_clock())
    away(desk, desk.ben, end=5)
    assert desk.proposed(order="2").unmanned


def test_a_deputy_fills_the_place_and_counts_once(desk: Desk, group: Group) -> None:
    xan = make_user(desk.tenant, "xan")
    away(desk, desk.ada, xan)
    away(desk, desk.ben, xan)
    assert desk.proposed().unmanned == ""
    ask(desk, "ask_two")
    assert "2 people are needed, 1 can" in desk.proposed(order="2").unmanned


def test_an_absent_person_and_their_deputy_are_one_place(desk: Desk, group: Group) -> None:
    """Ada is back within the time, and Xan is there meanwhile: still one place of two."""
    ask(desk, "ask_two")
    xan = make_user(desk.tenant, "xan")
    away(desk, desk.ada, xan, end=2)
    away(desk, desk.ben)
    assert "2 people are needed, 1 can" in desk.proposed().unmanned


def test_one_person_with_two_accounts_does_not_make_two(desk: Desk, group: Group) -> None:
    actions_people.link_accounts(
        tenant=desk.tenant, user=desk.ada, other=desk.ben, by=INSTALLER, clock=db_clock
    )
    ask(desk, "ask_two")
    assert "2 people are needed, 1 can" in desk.proposed().unmanned


def closed_for(now: datetime, hours: int) -> tuple[Any, ...]:
    """A week in which nobody works for the next hours, and everybody does after them."""
    opens = now + timedelta(hours=hours)
    week: list[Any] = [None] * 7
    week[opens.weekday()] = (opens.hour * 60, 1440)
    return tuple(week)


def test_outside_working_hours_nobody_is_there_and_it_says_when_they_are(desk: Desk, group: Group) -> None:
    set_hours(
        tenant=desk.tenant,
        group=group,
        zone="UTC",
        week=closed_for(db_clock(), 30),
        by=INSTALLER,
        clock=db_clock,
    )
    why = desk.proposed().unmanned
    assert "Of 2 who are asked: 2 not at work before then." in why
    assert "Work begins again at 20" in why
    desk.till.verdict = Verdict("ask_one", "toy.ask", "It is a toy.")
    assert (
        desk.proposed(order="2").unmanned == ""
    )  # every reviewer is asked: the hours are of the group alone


def test_the_organisations_hours_are_those_of_groups_without_any(desk: Desk, group: Group) -> None:
    set_hours(
        tenant=desk.tenant,
        group=None,
        zone="UTC",
        week=closed_for(db_clock(), 30),
        by=INSTALLER,
        clock=db_clock,
    )
    assert desk.proposed().unmanned
    set_hours(
        tenant=desk.tenant, group=group, zone="UTC", week=((0, 1440),) * 7, by=INSTALLER, clock=db_clock
    )
    assert desk.proposed(order="2").unmanned == ""


def test_it_is_counted_again_when_people_change_and_the_packet_closes(desk: Desk, group: Group) -> None:
    absences = [away(desk, user) for user in (desk.ada, desk.ben)]
    proposal = desk.proposed()
    assert recheck_manning(by=CLOCK, clock=db_clock) == 0  # nothing has changed
    end_absence(tenant=desk.tenant, absence_id=absences[0].pk, by=person(desk.ada), clock=db_clock)
    assert recheck_manning(by=CLOCK, clock=db_clock) == 1
    proposal.refresh_from_db()
    assert (proposal.unmanned, packets(proposal)) == ("", [("nobody_eligible", "resolved")])
    assert Event.objects.filter(kind="proposal.manned").count() == 1
    actions.deactivate_membership(tenant=desk.tenant, user=desk.ada, by=INSTALLER, clock=db_clock)
    assert recheck_manning(by=CLOCK, clock=db_clock) == 1
    proposal.refresh_from_db()
    assert "Of 1 who are asked: 1 away all that time." in proposal.unmanned
    assert ("nobody_eligible", "open") in packets(proposal)
    assert recheck_manning(by=CLOCK, clock=db_clock) == 0


def test_what_was_bound_is_what_it_was(desk: Desk, group: Group) -> None:
    proposal = desk.proposed()
    before = (bytes(proposal.view), bytes(proposal.contract), proposal.digest, proposal.view_digest)
    Membership.objects.update(roles=[Role.OPERATOR])
    recheck_manning(by=CLOCK, clock=db_clock)
    proposal = Proposal.objects.get()
    assert proposal.unmanned
    assert before == (bytes(proposal.view), bytes(proposal.contract), proposal.digest, proposal.view_digest)


# -- escalation --------------------------------------------------------------------------------------------------


@pytest.fixture
def hurried(desk: Desk, group: Group) -> Proposal:
    modes.install()
    registry.register_definitions(clock=db_clock)
    return desk.proposed(workflow="toy-hurried")


def at(instant: datetime) -> Any:
    return lambda: instant


def test_the_plan_stands_with_the_proposal_in_order(hurried: Proposal) -> None:
    rows = list(Escalation.objects.select_related("group"))
    assert [(row.position, row.role, row.group.name if row.group else "") for row in rows] == [
        (0, "", "Second line"), (1, "owner", ""),
    ]  # fmt: skip
    whole = hurried.decide_by - hurried.created_at
    assert abs(rows[0].due_at - (hurried.decide_by - whole / 4)) < timedelta(milliseconds=1)
    assert rows[1].due_at == hurried.decide_by - timedelta(minutes=10)
    assert rows[1].because == "when 10 min are left"


def test_it_is_asked_of_more_people_and_nothing_bound_changes(
    desk: Desk, hurried: Proposal, client: Client
) -> None:
    second = make_user(desk.tenant, "sue", groups=[Group.objects.get(name="Second line")])
    olaf = make_user(desk.tenant, "olaf", roles=[Role.OWNER])
    for user in (second, olaf):
        with pytest.raises(NotEligible):
            desk.decide(hurried, "reject", user=user)
    first, last = Escalation.objects.all()
    assert escalate_due(by=CLOCK, clock=at(first.due_at - timedelta(microseconds=1))) == 0
    assert escalate_due(by=CLOCK, clock=at(first.due_at)) == 1
    assert escalate_due(by=CLOCK, clock=at(first.due_at)) == 0
    changed = Proposal.objects.get()
    assert (changed.group_id, changed.also_groups) == (hurried.group_id, [first.group_id])
    assert (changed.digest, changed.view_digest) == (hurried.digest, hurried.view_digest)
    with pytest.raises(NotEligible):
        desk.decide(hurried, "reject", user=olaf)
    [event] = Event.objects.filter(kind="proposal.escalated")
    assert (event.reason, event.body["group"]) == ("when 25 % of the time is left", str(first.group_id))
    client.force_login(second)
    assert "Second line" in client.get(f"/review/{hurried.pk}/").content.decode()
    assert desk.decide(hurried, user=second).result == "approved"
    desk.work()
    assert Run.objects.get().status in ("running", "queued", "completed", "executing")
    assert escalate_due(by=CLOCK, clock=at(last.due_at)) == 0
    last.refresh_from_db()
    assert last.outcome == "not_needed"


def test_a_role_is_asked_with_its_own_rights(desk: Desk, hurried: Proposal) -> None:
    olaf = make_user(desk.tenant, "olaf", roles=[Role.OWNER])
    escalate_due(by=CLOCK, clock=at(hurried.decide_by - timedelta(seconds=1)))
    assert desk.decide(hurried, user=olaf).result == "approved"
    desk.work()
    assert Proposal.objects.get().status == "consumed"


def test_a_widened_group_fills_the_empty_place(desk: Desk, hurried: Proposal) -> None:
    for user in (desk.ada, desk.ben):
        away(desk, user)
    recheck_manning(by=CLOCK, clock=db_clock)
    assert Proposal.objects.get().unmanned
    make_user(desk.tenant, "sue", groups=[Group.objects.get(name="Second line")])
    recheck_manning(by=CLOCK, clock=db_clock)
    assert Proposal.objects.get().unmanned
    escalate_due(by=CLOCK, clock=at(Escalation.objects.all()[0].due_at))
    recheck_manning(by=CLOCK, clock=db_clock)
    assert Proposal.objects.get().unmanned == ""


def test_when_nobody_decides_it_expires_into_the_manual_queue(
    desk: Desk, hurried: Proposal, client: Client
) -> None:
    escalate_due(by=CLOCK, clock=at(hurried.decide_by))
    assert {row.outcome for row in Escalation.objects.all()} == {"not_needed"}
    assert expire_due(clock=at(hurried.decide_by)) == 1
    assert state(hurried.run_id)[0] == "manual_repair"
    assert ("approval_expired", "open") in packets(hurried)
    client.force_login(desk.ada)
    assert "Nobody decided in time" in client.get(f"/runs/{hurried.run_id}/").content.decode()
    assert "Nobody approved it" in client.get(f"/review/{hurried.pk}/").content.decode()
