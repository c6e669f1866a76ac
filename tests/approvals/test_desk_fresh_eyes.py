"""What a second look at the desk found: ticks over a step-up, questions to oneself, differences that drown, order."""

from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from access.models import User
from approvals import kept
from approvals.models import Proposal
from approvals.pulse import reading
from approvals.pulse.memory import Memory
from approvals.screens.changes import difference_says
from approvals.shown import view_of
from tests import factories
from tests.approvals.desk_rows import make_full
from tests.approvals.test_asking import answer, ask, colleague, theirs
from tests.approvals.test_differences import rows_of
from tests.approvals.test_step_up import confirm, old, risky
from tests.approvals.test_views import decide, desk, page_of, reviewer, sent, tenant

__all__ = ["colleague", "desk", "old", "reviewer", "tenant", "theirs"]
pytestmark = pytest.mark.django_db


# -- a step-up keeps what was done on the page ----------------------------------------------------------------


@pytest.fixture
def strict(settings: Any) -> None:
    """What `make_full` makes is of high risk here."""
    settings.PLACET_HIGH_RISK = 2


def opened_page(client: Client, proposal: Proposal) -> tuple[str, str]:
    """The page with its folded part open, and that part."""
    part = next(field.part for field in view_of(proposal).fields if field.folded)
    data = {"open": part, **sent(proposal, "", page_of(client, proposal))}
    return client.post(f"/review/{proposal.pk}/part/", data).content.decode(), part


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("htmx", [False, True])
def test_ticks_and_opened_parts_are_there_again_after_confirming(
    client: Client, old: Client, tenant: Any, htmx: bool
) -> None:
    proposal = make_full(tenant, needed=2)
    opened, part = opened_page(old, proposal)
    answered = decide(old, proposal, "approve", opened, htmx=htmx, opened=[part])
    assert answered.status_code == 403
    confirm(old, proposal)
    again = page_of(old, proposal)
    assert again.count("data-need checked") == len(view_of(proposal).to_acknowledge)
    assert f'name="opened" value="{part}"' in again
    assert decide(old, proposal, "approve", again, opened=[part]).status_code == 302
    assert kept.KEY not in old.session


@pytest.mark.usefixtures("strict")
def test_they_are_kept_for_this_version_this_person_and_a_while(
    old: Client, tenant: Any, monkeypatch: Any
) -> None:
    proposal, other = make_full(tenant, needed=2), make_full(tenant, needed=2)
    html, part = opened_page(old, proposal)
    decide(old, proposal, "approve", html, opened=[part], reject_reason="words of a person")
    assert "data-need checked" in page_of(old, proposal)
    assert "data-need checked" not in page_of(old, other)
    assert "words of a person" not in str(dict(old.session))
    somebody = Client()
    somebody.force_login(factories.make_user(tenant, "nadia"))
    assert "data-need checked" not in page_of(somebody, proposal)
    monkeypatch.setattr(kept, "LIFE_S", -1)
    assert "data-need checked" not in page_of(old, proposal)


def test_a_refusal_of_another_kind_keeps_nothing(old: Client, tenant: Any) -> None:
    proposal = risky(tenant)
    decide(old, proposal, "approve", page_of(old, proposal), digest="0" * 64)
    assert kept.KEY not in old.session


# -- questions to oneself -------------------------------------------------------------------------------------


def test_what_colleagues_ask_stands_in_a_list_until_it_is_answered(
    desk: Client, theirs: Client, colleague: User, tenant: Any
) -> None:
    proposal = make_full(tenant)
    ask(desk, proposal, "Is this \u202eyours?", ask_of=str(colleague.pk))
    ask(desk, proposal, "Not for Tomás")
    page = theirs.get("/review/questions/").content.decode()
    assert "Is this" in page and "U+202E" in page and "\u202e" not in page
    assert "Not for Tomás" not in page
    question = proposal.questions.get(colleague=colleague)
    assert f'href="/review/{proposal.pk}/#q-{question.pk}"' in page
    assert "Nobody waits for your answer" in desk.get("/review/questions/").content.decode()
    answer(theirs, question, "Yes.")
    assert "Nobody waits for your answer" in theirs.get("/review/questions/").content.decode()


def test_what_was_decided_is_asked_no_more(
    desk: Client, theirs: Client, colleague: User, tenant: Any
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    ask(desk, proposal, ask_of=str(colleague.pk))
    assert "Did anybody call?" in theirs.get("/review/questions/").content.decode()
    decide(desk, proposal, "reject", page_of(desk, proposal), reason_code="other", reject_reason="no")
    assert "Did anybody call?" not in theirs.get("/review/questions/").content.decode()


def test_what_the_proposer_is_asked_stands_with_whom_it_acts_for(
    desk: Client, theirs: Client, colleague: User, tenant: Any
) -> None:
    proposal = factories.make_proposal(tenant=tenant, excluded_users=[colleague.pk])
    ask(desk, proposal, "Which parcel?")
    page = theirs.get("/review/questions/").content.decode()
    assert "Which parcel?" in page
    assert "asked the proposer" in page
    assert "Which parcel?" not in desk.get("/review/questions/").content.decode()
    answer(theirs, proposal.questions.get(), "The second.")
    assert "Nobody waits for your answer" in theirs.get("/review/questions/").content.decode()


def test_the_queue_leads_to_them(desk: Client) -> None:
    assert 'href="/review/questions/"' in desk.get("/review/").content.decode()


def test_another_organisation_asks_nobody_here(desk: Client, colleague: User, tenant: Any) -> None:
    proposal = make_full(tenant)
    ask(desk, proposal, ask_of=str(colleague.pk))
    elsewhere = Client()
    elsewhere.force_login(factories.make_user(factories.make_tenant("other"), "eve", roles=[Role.REVIEWER]))
    assert "Did anybody call?" not in elsewhere.get("/review/questions/").content.decode()


# -- a difference that would drown ----------------------------------------------------------------------------


def test_single_values_stand_before_three_hundred_lines(tenant: Any) -> None:
    before = {"message": "\n".join(f"a {n}" for n in range(300)), "subject": "one"}
    after = {"message": "\n".join(f"b {n}" for n in range(300)), "subject": "two"}
    found = rows_of(tenant, before, after)
    assert [row.record for row in found[:2]] == ["Subject", "Message"]
    assert difference_says(found) == "Subject and Message differ; fields that are not named are the same"
    assert difference_says(found[:1]) == "Subject differs; fields that are not named are the same"


# -- what matters comes first ---------------------------------------------------------------------------------


def test_the_checklist_comes_before_everything_else_that_can_be_pressed(desk: Client, tenant: Any) -> None:
    html = page_of(desk, make_full(tenant))
    places = [html.index(mark) for mark in ('id="checks"', 'id="result"', 'id="hold"', 'id="slip-title"')]
    assert places == sorted(places)


# -- votes ----------------------------------------------------------------------------------------------------


def test_a_vote_is_told_to_open_pages_and_the_last_one_by_its_end(desk: Client, tenant: Any) -> None:
    memory = Memory()
    proposals = [factories.make_proposal(tenant=tenant, needed=needed) for needed in (2, 1)]
    reading.look(memory)
    for proposal in proposals:
        assert decide(desk, proposal, "approve", page_of(desk, proposal)).status_code == 302
    reading.look(memory)
    told = [(change.told["is"], change.told["id"]) for change in memory.changes[tenant.pk]]
    assert ("vote", str(proposals[0].pk)) in told
    assert ("over", str(proposals[1].pk)) in told
    assert ("vote", str(proposals[1].pk)) not in told
    assert [change.told["who"] for change in memory.changes[tenant.pk]][-2:] == ["Ilse V.", "Ilse V."]


def test_after_a_vote_only_people_and_facts_are_asked_for(desk: Client, tenant: Any) -> None:
    proposal = factories.make_proposal(tenant=tenant, needed=2)
    decide(desk, proposal, "approve", page_of(desk, proposal))
    headers = {"HX-Request": "true", "HX-Target": "people"}
    html = desk.get(f"/review/{proposal.pk}/", headers=headers).content.decode()
    assert 'id="people"' in html and 'id="facts" hx-swap-oob="true"' in html and "1 of 2" in html
    assert "<!doctype" not in html.lower() and "textarea" not in html and 'name="receipt"' not in html
