"""Asking and answering on the desk: with script and without, and without losing one's place."""

import re
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from access.models import User
from approvals.models import Answer, Proposal, Question
from tests import factories
from tests.approvals.desk_rows import make_full
from tests.approvals.test_views import HTMX, desk, page_of, reviewer, sent, tenant

__all__ = ["desk", "reviewer", "tenant"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def colleague(tenant: Any) -> User:
    return factories.make_user(tenant, "tomas", roles=[Role.AUDITOR], display_name="Tomás R.")


@pytest.fixture
def theirs(colleague: User) -> Client:
    client = Client()
    client.force_login(colleague)
    return client


def ask(
    client: Client, proposal: Proposal, text: str = "Did anybody call?", *, htmx: bool = False, **more: Any
) -> Any:
    data = {"question_text": text, "decision": "ask"} | more
    return client.post(f"/review/{proposal.pk}/ask/", data, headers=HTMX if htmx else {})


def answer(client: Client, question: Question, text: str, *, htmx: bool = False, **more: Any) -> Any:
    data = {"question": str(question.pk), f"{question.pk}_answer_text": text} | more
    return client.post(f"/review/{question.proposal_id}/answer/", data, headers=HTMX if htmx else {})


def test_a_question_keeps_what_was_typed_ticked_and_opened(desk: Client, tenant: Any) -> None:
    proposal = make_full(tenant)
    html = page_of(desk, proposal)
    part = re.findall(r'name="open" value="([^"]+)"', html)[0]
    data = sent(
        proposal, "ask", html, reject_reason="Half a sen", reason_code="other", opened=[part], remember="week"
    )
    answered = ask(desk, proposal, **data)
    page = answered.content.decode()
    assert answered.status_code == 200
    assert "Half a sen" in page
    assert 'value="other" checked' in page
    assert 'value="week" checked' in page
    assert page.count("data-need checked") == len(data["acknowledged"])
    assert f'name="opened" value="{part}"' in page
    assert "“Did anybody call?”" in page
    assert Question.objects.get().of == "proposer"
    assert proposal.decisions.count() == 0


def test_with_script_only_list_sheet_and_button_are_swapped(
    desk: Client, tenant: Any, colleague: User
) -> None:
    proposal = make_full(tenant)
    page = ask(desk, proposal, htmx=True, ask_of=str(colleague.pk)).content.decode()
    assert "“Did anybody call?”" in page
    assert 'id="sheet-ask"' in page and 'id="ask-button"' in page
    assert 'id="decide"' not in page and 'id="sheet-reject"' not in page
    assert "Did anybody call?</textarea>" not in page
    assert Question.objects.get().colleague == colleague


def test_the_same_question_sent_twice_is_one(desk: Client, tenant: Any) -> None:
    proposal = make_full(tenant)
    for _ in range(2):
        ask(desk, proposal)
    assert Question.objects.count() == 1


def test_nothing_to_tell_sends_nobody_elsewhere(desk: Client, tenant: Any) -> None:
    proposal = make_full(tenant)
    answered = ask(desk, proposal)
    assert (answered.status_code, answered["Location"]) == (302, f"/review/{proposal.pk}/")


def test_it_has_a_page_of_its_own(desk: Client, tenant: Any, colleague: User) -> None:
    proposal = make_full(tenant)
    page = desk.get(f"/review/{proposal.pk}/ask/").content.decode()
    assert "Tomás R." in page and "Ilse V.</option>" not in page
    refused = ask(desk, proposal, "", alone="1")
    assert refused.status_code == 422
    assert ask(desk, proposal, alone="1").status_code == 302
    assert "“Did anybody call?”" in page_of(desk, proposal)


@pytest.mark.parametrize("htmx", [False, True])
def test_an_empty_question_is_refused_in_the_bar_with_everything_kept(
    desk: Client, tenant: Any, htmx: bool
) -> None:
    proposal = make_full(tenant)
    refused = ask(desk, proposal, "  ", htmx=htmx, reject_reason="Half a sen")
    page = refused.content.decode()
    assert refused.status_code == 422
    assert "Nothing was written" in page or "nothing was written" in page
    assert "Half a sen" in page
    assert 'class="sheet still" id="sheet-ask"' in page
    assert not htmx or refused["HX-Retarget"] == "#decide"


def test_who_asks_too_late_is_told_who_decided_and_keeps_the_words(desk: Client, tenant: Any) -> None:
    from tests.approvals.test_views import decide

    ben = factories.make_user(tenant, "ben", display_name="Ben K.")
    other = Client()
    other.force_login(ben)
    proposal = make_full(tenant)
    decide(other, proposal, "reject", page_of(other, proposal), reject_reason="no")
    for htmx in (False, True):
        refused = ask(desk, proposal, htmx=htmx, reject_reason="Half a sen")
        page = refused.content.decode()
        assert refused.status_code == 409
        assert "Ben K. rejected it at" in page
        for words in ("Did anybody call?", "Half a sen"):
            assert f"<q>{words}</q>" in page


def test_a_colleague_answers_on_the_page_once(
    desk: Client, theirs: Client, tenant: Any, colleague: User
) -> None:
    proposal = make_full(tenant)
    ask(desk, proposal, ask_of=str(colleague.pk))
    question = Question.objects.get()
    field = f'name="{question.pk}_answer_text"'
    assert field in page_of(theirs, proposal)
    assert field not in page_of(desk, proposal)
    assert answer(theirs, question, "").status_code == 422
    assert answer(theirs, question, "I did.", htmx=True).status_code == 200
    html = page_of(desk, proposal)
    assert "“I did.”" in html and "Tomás R." in html
    assert field not in page_of(theirs, proposal)
    refused = answer(theirs, question, "I did not.")
    assert refused.status_code == 409
    assert "Tomás R." in refused.content.decode()
    assert Answer.objects.get().wording == "I did."


def test_only_who_was_asked_answers(desk: Client, theirs: Client, tenant: Any, colleague: User) -> None:
    proposal = make_full(tenant, excluded_users=[colleague.pk])
    ask(desk, proposal)
    question = Question.objects.get()
    assert answer(desk, question, "I guess.").status_code == 403
    assert answer(theirs, question, "For the automation: yes.").status_code == 302
    assert Answer.objects.get().user == colleague


def test_words_are_for_who_may_read_them(desk: Client, tenant: Any) -> None:
    operator = factories.make_user(tenant, "olga", roles=[Role.OPERATOR])
    proposal = make_full(tenant)
    ask(desk, proposal, "kanarienvogel?")
    client = Client()
    client.force_login(operator)
    assert "kanarienvogel" not in page_of(client, proposal)
    assert ask(client, proposal).status_code == 403
    assert ask(desk, proposal, ask_of=str(operator.pk)).status_code == 422


def test_foreign_words_are_shown_as_they_are(desk: Client, tenant: Any) -> None:
    proposal = make_full(tenant)
    ask(desk, proposal, "<b>Approve</b> \u202eyes")
    html = page_of(desk, proposal)
    assert "&lt;b&gt;Approve&lt;/b&gt;" in html
    assert "\u202e" not in html.partition('id="questions"')[2]
