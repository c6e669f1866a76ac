"""Asking, answering, editing and lifting in a real browser: nobody loses their place."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.enums import Role
from access.models import User
from approvals.actions_questions import ask
from approvals.models import Proposal, Question
from common.clock import db_clock
from tests import factories
from tests.approvals.desk_rows import make_full
from tests.browser.desks import look_at, sign_in, without_script
from tests.browser.test_review import desk, press, reviewer, tenant, tick_all
from tests.workflows.conftest import Desk, person
from tests.workflows.toy import ToyPay

__all__ = ["desk", "reviewer", "tenant"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def colleague(tenant: Any) -> User:
    return factories.make_user(tenant, "tomas", roles=[Role.AUDITOR], display_name="Tomás R.")


def test_a_question_by_key_loses_nothing(desk: Callable[[str], Page], tenant: Any, colleague: User) -> None:
    proposal = make_full(tenant)
    page = desk(f"/review/{proposal.pk}/")
    tick_all(page)
    press(page, "r")
    page.fill("#reject-reason", "Half a sen")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    press(page, "q")
    expect(page.locator("#question-text")).to_be_focused()
    page.fill("#question-text", "Did anybody call the customer about the new account?")
    page.select_option("#ask-of", label="Tomás R.")
    look_at(page, "ask-sheet")
    page.click("#sheet-ask button[type=submit]")
    expect(page.locator("#questions .said")).to_contain_text("Did anybody call")
    expect(page.locator("#sheet-ask")).to_be_hidden()
    expect(page.locator("#ask-button")).to_be_focused()
    expect(page.locator("#toasts")).to_contain_text("Asked.")
    assert page.locator("#reject-reason").input_value() == "Half a sen"
    assert page.locator("#question-text").input_value() == ""
    assert page.locator("input[name=acknowledged]:not(:checked)").count() == 0
    look_at(page, "asked")
    press(page, "q")
    page.click("#sheet-ask button[type=submit]")
    expect(page.locator("#sheet-ask.still")).to_be_visible()
    assert page.locator("#reject-reason").input_value() == "Half a sen"
    look_at(page, "ask-refused")


def test_a_colleague_answers(
    page: Page, live_server: Any, reviewer: User, tenant: Any, colleague: User
) -> None:
    proposal = make_full(tenant)
    question = ask(
        tenant_id=tenant.pk, proposal_id=proposal.pk, text="Did anybody call?", colleague=colleague.pk,
        by=person(reviewer), clock=db_clock,
    ).question  # fmt: skip
    sign_in(page, live_server.url, colleague)
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    page.fill(f"#answer-{question.pk}", "I did, at nine.")
    look_at(page, "answering")
    page.click("#questions button[type=submit]")
    expect(page.locator("#questions")).to_contain_text("“I did, at nine.”")
    assert Question.objects.get().answer.wording == "I did, at nine."


def test_without_script_one_asks_from_the_sheet_and_on_a_page(
    browser: Browser, live_server: Any, reviewer: User, tenant: Any
) -> None:
    proposal = make_full(tenant)
    with without_script(browser, live_server.url, reviewer) as page:
        page.goto(f"{live_server.url}/review/{proposal.pk}/")
        page.locator("input[name=acknowledged]").first.check()
        page.click("#ask-button")
        page.fill("#question-text", "Which parcel?")
        page.click("#sheet-ask button[type=submit]")
        expect(page.locator("#questions")).to_contain_text("“Which parcel?”")
        assert page.locator("input[name=acknowledged]").first.is_checked()
        page.goto(f"{live_server.url}/review/{proposal.pk}/ask/")
        page.fill("#question-text", "And when?")
        page.click("main button[type=submit]")
        expect(page.locator("#questions")).to_contain_text("“And when?”")


def test_editing_rejecting_and_lifting(
    page: Page, live_server: Any, toy: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyPay, "editable", ("amount",))
    proposal = toy.proposed()
    sign_in(page, live_server.url, toy.ada)
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    press(page, "e")
    page.wait_for_url("**/edit/")
    page.fill("#edit-amount_text", "8.001")
    page.click("main button[type=submit]")
    expect(page.locator("#edit-amount_text_error")).to_be_visible()
    look_at(page, "edit")
    page.fill("#edit-amount_text", "8.00")
    page.click("main button[type=submit]")
    made = Proposal.objects.get(supersedes=proposal)
    page.wait_for_url(f"**/review/{made.pk}/")
    expect(page.locator("#decide")).to_contain_text("You edited this version")
    look_at(page, "edited")
    sign_in(page, live_server.url, toy.ben)
    page.goto(f"{live_server.url}/review/{made.pk}/")
    press(page, "r")
    page.check("#sheet-reject input[name=reason_code][value=wrong_amount]")
    page.check("#sheet-reject input[name=remember][value=week]")
    look_at(page, "reject-remember")
    page.click("#sheet-reject button[type=submit]")
    expect(page.locator("#result")).to_contain_text("Remembered.")
    look_at(page, "remembered")
    page.click("text=Lift it")
    page.fill("textarea", "It was the wrong one.")
    look_at(page, "lift")
    page.click("main button[type=submit]")
    expect(page.locator("#result")).to_contain_text("The same may be asked again.")
