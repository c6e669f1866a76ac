"""From a proposal that waits to mails in a real letterbox: who is told, what stands there, and how often."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from access.enums import Role
from access.models import Group, GroupMembership, Membership, User
from approvals.models import Proposal
from audit.actions import record
from audit.actors import INSTALLATION, clock_actor
from audit.models import Event
from audit.sealer import seal
from common.clock import db_clock
from notify.actions.following import follow
from notify.actions.spreading import spread_due
from notify.models import Dispatch, Follower, Message, Notice
from tests.factories import make_user
from tests.notify.conftest import told
from tests.notify.letterbox import Letterbox
from tests.workflows.conftest import Desk
from tests.workflows.later import as_superuser

pytestmark = pytest.mark.django_db


def outcomes(kind: str = "asked") -> list[tuple[str, str]]:
    rows = Dispatch.objects.filter(message__kind=kind).order_by("created_at", "id")
    return sorted(rows.values_list("status", "problem"))


def people_told(kind: str = "asked") -> list[str]:
    return sorted(Notice.objects.filter(message__kind=kind).values_list("user__username", flat=True))


def test_each_reviewer_gets_one_mail_that_leads_with_the_effect(
    desk: Desk, box: Letterbox, settings: Any
) -> None:
    proposal = desk.proposed(order="1042")
    told()
    assert sorted(box.recipients) == ["ada@post.example", "ben@post.example"]
    digits = proposal.digest[:16]
    mark = " ".join(digits[start : start + 4] for start in range(0, 16, 4))
    for mail, text in ((box.taken[0], box.plain(0)), (box.taken[1], box.plain(1))):
        assert mail["Subject"] == f"{proposal.summary} [{mark}]"
        assert text.splitlines()[:2] == [proposal.summary, f"Digest {mark}"]
        assert f"{settings.PLACET_BASE_URL}/notices/" in text
        assert mail["Auto-Submitted"] == "auto-generated"
        assert mail["List-Id"] == "Placet notices <notices.harbour.localhost>"
        assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]
    assert len(set(box.ids)) == 2
    assert outcomes() == [("delivered", ""), ("delivered", "")]
    told()
    assert len(box.taken) == 2, "once"
    assert set(Event.objects.filter(kind__startswith="dispatch.").values_list("kind", flat=True)) == {
        "dispatch.delivered"
    }


def test_the_side_that_asks_is_not_asked_nor_who_is_not_of_the_group(desk: Desk, box: Letterbox) -> None:
    group = Group.objects.create(tenant=desk.tenant, name="Payments")
    carl = make_user(desk.tenant, "carl", roles=[Role.REVIEWER], groups=[group], email="carl@post.example")
    make_user(desk.tenant, "olga", roles=[Role.OPERATOR], groups=[group], email="olga@post.example")
    gone = make_user(desk.tenant, "gus", roles=[Role.REVIEWER], groups=[group], email="gus@post.example")
    Membership.objects.filter(user=gone).update(is_active=False)
    twice = make_user(desk.tenant, "carl-2", roles=[Role.REVIEWER], groups=[group])
    own = make_user(desk.tenant, "otto", roles=[Role.REVIEWER], groups=[group], email="otto@post.example")
    Membership.objects.filter(user__in=[carl, twice]).update(person_id=carl.pk)
    proposal = desk.proposed()
    unbound(proposal, group_id=group.pk, excluded_users=[own.pk])
    told()
    assert people_told() == ["carl"], "one person, one notice, under the account with an address"
    assert box.recipients == ["carl@post.example"]
    assert GroupMembership.objects.filter(group=group).count() == 5


def unbound(proposal: Proposal, **fields: Any) -> None:
    """Change what is bound, as no role of the product can."""
    for name, value in fields.items():
        cast = "uuid[]" if isinstance(value, list) else "uuid"
        as_superuser(f"UPDATE approvals_proposal SET {name} = %s::{cast} WHERE id = %s", value, proposal.pk)


def test_a_decision_before_the_mail_leaves_makes_it_moot(desk: Desk, box: Letterbox) -> None:
    proposal = desk.proposed()
    seal(db_clock)
    follow(clock=db_clock)
    spread_due(clock=db_clock)
    assert outcomes() == [("pending", ""), ("pending", "")]
    desk.decide(proposal)
    told()
    assert box.taken == []
    assert outcomes() == [("moot", "over"), ("moot", "over")]
    assert Notice.objects.filter(message__kind="asked", over_at=None).count() == 0


def test_those_who_have_not_decided_are_reminded_when_three_quarters_of_the_time_are_over(
    desk: Desk, box: Letterbox
) -> None:  # field report D8
    proposal = desk.proposed()
    told()
    length = proposal.decide_by - proposal.created_at
    at = proposal.created_at + length * 0.75
    told(lambda: at - timedelta(seconds=1))
    assert people_told("expiring") == []
    told(lambda: at + timedelta(seconds=1))
    assert people_told("expiring") == ["ada", "ben"]
    assert len(box.taken) == 4
    told(lambda: at + timedelta(minutes=1))
    assert len(box.taken) == 4


def test_whoever_has_decided_is_not_asked_again(desk: Desk, box: Letterbox) -> None:
    proposal = desk.proposed()
    as_two(proposal)
    told()
    desk.decide(proposal)
    told()
    assert people_told("second") == ["ben"]
    assert box.recipients[2:] == ["ben@post.example"]
    at = proposal.created_at + (proposal.decide_by - proposal.created_at) * 0.8
    told(lambda: at)
    assert people_told("expiring") == ["ben"]


def as_two(proposal: Proposal) -> None:
    as_superuser("UPDATE approvals_proposal SET needed = 2 WHERE id = %s", proposal.pk)


def test_nobody_who_can_decide_is_an_alarm_to_admins(desk: Desk, box: Letterbox, admin: User) -> None:
    # field report T4
    Membership.objects.filter(user__in=[desk.ada, desk.ben]).update(roles=[Role.OPERATOR])
    desk.proposed()
    told()
    assert people_told("unmanned") == ["adam"]
    assert box.recipients == ["adam@post.example"]


def test_a_proposal_costs_the_proposer_and_the_decider_no_row(desk: Desk) -> None:
    proposal = desk.proposed()
    desk.decide(proposal)
    assert (Message.objects.count(), Notice.objects.count(), Dispatch.objects.count()) == (0, 0, 0)


def test_what_belongs_to_no_tenant_is_nobodys_news(desk: Desk) -> None:
    with transaction.atomic():
        record(
            by=clock_actor(), kind="user.sign_in_failed", tenant_id=INSTALLATION, subject_type="user",
            subject_id=INSTALLATION,
        )  # fmt: skip
    desk.proposed()
    seal(db_clock)
    follow(clock=db_clock)
    assert set(Follower.objects.values_list("tenant_id", flat=True)) == {desk.tenant.pk}


def test_an_upgrade_tells_nobody_of_last_year(desk: Desk, box: Letterbox) -> None:
    desk.proposed()
    as_superuser("UPDATE audit_event SET at = at - interval '2 days'")
    told()
    assert Message.objects.count() == 0
    desk.proposed(order="9")
    told()
    assert Message.objects.filter(kind="asked").count() == 1
