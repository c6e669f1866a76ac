"""The story of a run: every event, who let it through and on what, by role; reading writes nothing."""

import re
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from access.enums import Role
from approvals.actions import decide
from approvals.actions_claims import hold
from approvals.refusals import DecisionRefused
from audit.actions import record
from audit.models import Event
from audit.sealer import seal
from common.clock import db_clock
from common.ids import new_id
from tests import factories
from tests.browser.desks import REFUSED
from tests.workflows.conftest import Desk, person
from tests.workflows.toy import NOTHING_CAME
from workflows.authoring import Verdict

pytestmark = pytest.mark.django_db


@pytest.fixture
def auditor(desk: Desk, client: Client) -> Client:
    client.force_login(factories.make_user(desk.tenant, "aude", roles=[Role.AUDITOR], display_name="Aude L."))
    return client


def story(client: Client, run_id: Any) -> str:
    answer = client.get(f"/history/runs/{run_id}/")
    assert answer.status_code == 200
    return answer.content.decode()


def plain(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


@pytest.mark.parametrize("role", list(Role))
def test_readers_of_the_history_read_it_and_nobody_else(desk: Desk, client: Client, role: Role) -> None:
    run = desk.start()
    client.force_login(factories.make_user(desk.tenant, roles=[role]))
    expected = 200 if role in (Role.AUDITOR, Role.ADMIN) else 403
    assert client.get(f"/history/runs/{run.pk}/").status_code == expected


def test_a_run_of_another_tenant_is_missing(desk: Desk, auditor: Client) -> None:
    other = factories.make_run(factories.make_tenant("quay"))
    assert auditor.get(f"/history/runs/{other.pk}/").status_code == 404
    assert auditor.get(f"/history/runs/{new_id()}/").status_code == 404


def test_it_has_every_event_of_the_run_in_the_order_of_the_chain(desk: Desk, auditor: Client) -> None:
    command = desk.approved()
    desk.work()
    desk.advance()
    seal(db_clock)
    before = Event.objects.count()
    html = story(auditor, command.run_id)
    shown = re.findall(r'<li id="e-([0-9a-f-]+)"', html)
    wanted = Event.objects.filter(run_id=command.run_id).order_by("at")
    assert sorted(shown) == sorted(str(pk) for pk in wanted.values_list("pk", flat=True))
    numbers = [int(seq) for seq in re.findall(r">event (\d+):", html)]
    assert numbers == sorted(numbers)
    assert len(numbers) == len(shown)
    assert Event.objects.count() == before


def test_it_says_who_let_it_through_and_on_what(desk: Desk, auditor: Client) -> None:
    command = desk.approved()
    desk.work()
    proposal = command.proposal
    html = story(auditor, command.run_id)
    text = plain(html)
    assert f"{desk.ada} approved as reviewer" in text
    assert "ada, in a signed-in session, said yes." in text
    assert "shown whole: one part, by its receipt" in text
    assert "give both digests again" in text
    assert proposal.digest in html
    assert "committed the order as sent and called the provider, request 1" in text
    assert command.idempotency_key in html
    assert "stored that it happened; settled by: the provider&#x27;s answer" in text


def test_what_is_stored_otherwise_than_it_was_signed_is_said(desk: Desk, auditor: Client) -> None:
    run = factories.make_run(desk.tenant)
    proposal = factories.make_proposal(run, digest="f" * 64)
    with transaction.atomic():
        record(by=person(desk.ada), kind="proposal.made", tenant_id=desk.tenant.pk, subject_type="proposal",
               subject_id=proposal.pk, run_id=run.pk)  # fmt: skip
    assert "do not give these digests" in story(auditor, run.pk)


def test_a_refused_decision_is_part_of_the_story_and_of_who_saw_it(desk: Desk, auditor: Client) -> None:
    proposal = desk.proposed()
    with pytest.raises(DecisionRefused):
        decide(
            tenant_id=desk.tenant.pk, proposal_id=proposal.pk, by=person(desk.ben), clock=db_clock,
            submission=desk.submission(proposal, desk.ben, digest="0" * 64),
        )  # fmt: skip
    hold(
        tenant_id=desk.tenant.pk,
        proposal_id=proposal.pk,
        take_over=False,
        by=person(desk.ben),
        clock=db_clock,
    )
    desk.decide(proposal)
    text = plain(story(auditor, proposal.run_id))
    assert "tried to decide and was refused. Reason: digest mismatch." in text
    traces = text.partition("Who saw it and did not decide")[2]
    assert f"{desk.ben} , version 1 : tried to decide and was refused: digest mismatch" in traces
    assert "took it to read" in traces
    assert str(desk.ada) not in traces.partition("Now")[0]


def test_a_vote_that_was_replaced_stays_in_the_story(desk: Desk, auditor: Client) -> None:
    desk.till.verdict = Verdict("ask_two", "toy.two", "It has become risky.")
    proposal = desk.proposed()
    desk.decide(proposal)
    desk.decide(proposal, "request_changes")
    text = plain(story(auditor, proposal.run_id))
    assert f"{desk.ada} approved as reviewer Taken back" in text
    assert "said yes" in text
    assert "asked for changes" in text


@pytest.mark.parametrize(("role", "sees"), [(Role.AUDITOR, True), (Role.ADMIN, False)])
def test_own_words_are_for_roles_that_are_shown_them(
    desk: Desk, client: Client, role: Role, sees: bool
) -> None:
    proposal = desk.proposed()
    desk.decide(proposal, "reject", reason="told me on the phone")
    client.force_login(factories.make_user(desk.tenant, roles=[role]))
    assert ("told me on the phone" in story(client, proposal.run_id)) is sees


def test_unknown_and_refused_outcomes_are_told_with_what_came_back(desk: Desk, auditor: Client) -> None:
    lost = desk.approved(order="1")
    desk.till.answers.append(NOTHING_CAME)
    desk.work()
    refused = desk.approved(order="2")
    desk.till.answers.append(REFUSED)
    desk.work()
    text = plain(story(auditor, lost.run_id))
    assert "stored that nobody knows whether it happened" in text
    assert "Attempt 1: what came back No answer" in text
    text = plain(story(auditor, refused.run_id))
    assert "stored that the provider refused; nothing happened" in text
    assert "422" in text


def test_hostile_text_is_shown_as_text(desk: Desk, auditor: Client) -> None:
    evil = '<img src=x onerror="alert(1)"> \u202egnp=HYPERLINK("x")'
    proposal = desk.proposed(event_id=evil, record=evil, sequence=1)
    desk.decide(proposal, "reject", reason=evil)
    html = story(auditor, proposal.run_id)
    assert "<img src=x" not in html
    assert "\u202e" not in html


def test_the_run_and_the_proposal_lead_there(desk: Desk, auditor: Client) -> None:
    proposal = desk.proposed()
    address = f"/history/runs/{proposal.run_id}/"
    for page in (f"/runs/{proposal.run_id}/", f"/review/{proposal.pk}/", f"/history/?run={proposal.run_id}"):
        assert f'href="{address}"' in auditor.get(page).content.decode(), page
    assert f"/repair/run/{proposal.run_id}/compare/" in story(auditor, proposal.run_id)


def test_what_followed_a_run_has_a_story_of_its_own_and_leads_back(desk: Desk, auditor: Client) -> None:
    command = desk.approved()
    undo = factories.make_run(desk.tenant, kind="undo", original=command.run)
    html = story(auditor, command.run_id)
    assert f'href="/history/runs/{undo.pk}/"' in html
    assert "Compensation" in html
    assert f'href="/history/runs/{command.run_id}/"' in story(auditor, undo.pk)
