"""Choices in a real browser: what is offered and what is not, a dry run, doing it, and the same for many."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.enums import Role
from access.models import User
from tests import factories
from tests.browser.desks import look_at, sign_in, without_script
from tests.browser.shots import shoot
from tests.repair.choosing import CAUSE, lapsed, not_supplied, now, refused, unknown
from tests.workflows.conftest import Desk
from tests.workflows.later import end_of
from tests.workflows.test_worker_answers import CONFIRMED
from tests.workflows.toy import ToyPay

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(toy: Desk) -> User:
    return factories.make_user(toy.tenant, "omar", roles=[Role.OPERATOR], display_name="Omar T.")


def test_an_unknown_outcome_is_confirmed_from_its_page(
    page: Page, live_server: Any, toy: Desk, operator: User
) -> None:
    command, packet = unknown(toy)
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/repair/{packet.pk}/")
    page.get_by_text("Not offered now, and why").click()
    look_at(page, "choices-packet")
    page.get_by_role("link", name="Confirm that it did not happen").click()
    expect(page.get_by_text("What was checked")).to_be_visible()
    look_at(page, "choice-did-not-happen")
    page.go_back()
    page.get_by_role("link", name="Confirm that it happened").click()
    page.get_by_role("button", name="It happened").click()
    expect(page.get_by_text("takes the provider's own reference")).to_be_visible()
    look_at(page, "choice-errors")
    page.get_by_label("The provider's reference").fill("re_9")
    page.get_by_label("What was the cause").select_option(CAUSE)
    page.get_by_label("How you know").fill("It stands in the provider's list.")
    page.get_by_role("button", name="It happened").click()
    expect(page.get_by_text("What was chosen")).to_be_visible()
    assert end_of(command) == CONFIRMED
    look_at(page, "choices-after")


def test_two_at_once(page: Page, browser: Browser, live_server: Any, toy: Desk, operator: User) -> None:
    _, packet = unknown(toy)
    other = factories.make_user(toy.tenant, "olga", roles=[Role.OPERATOR], display_name="Olga P.")
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/repair/{packet.pk}/choices/cancel/")
    with without_script(browser, live_server.url, other) as hers:
        hers.goto(f"{live_server.url}/repair/{packet.pk}/choices/take/")
        hers.get_by_role("button", name="Take the case").click()
        expect(hers.get_by_text("It is yours now.")).to_be_visible()
    page.locator("#choice-words").fill("No longer wanted.")
    page.get_by_label("What was the cause").select_option(CAUSE)
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_role("alert")).to_contain_text("Olga P. was faster: “Take the case”")
    look_at(page, "choice-overtaken")
    assert now(packet).status == "in_progress"


def test_correct_it_in_two_steps_without_script(
    browser: Browser, live_server: Any, toy: Desk, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyPay, "editable", ("amount",))
    _, packet = refused(toy)
    with without_script(browser, live_server.url, operator) as page:
        page.goto(f"{live_server.url}/repair/{packet.pk}/choices/correct/")
        page.get_by_label("Amount").fill("7.50")
        page.get_by_label("What was wrong").fill("The amount was above what was paid.")
        page.get_by_label("What was the cause").select_option(CAUSE)
        page.get_by_role("button", name="Look what it would do").click()
        expect(page.get_by_text("10.00 → 7.50")).to_be_visible()
        shoot(page, "choice-correct")
        page.get_by_role("button", name="Propose it anew").click()
        expect(page.get_by_text("Version 2 waits for a decision.")).to_be_visible()


def test_data_and_many_at_once(page: Page, live_server: Any, toy: Desk, operator: User) -> None:
    _, packet = not_supplied(toy)
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/repair/{packet.pk}/choices/supply/")
    look_at(page, "choice-supply")
    del toy.till.stages["judge"]
    for order in ("1", "2"):
        lapsed(toy, order)
    page.goto(f"{live_server.url}/repair/")
    look_at(page, "repair-with-bulk")
    page.get_by_role("link", name="Ask again").click()
    look_at(page, "bulk")
    page.get_by_label("What was the cause").select_option(CAUSE)
    page.get_by_role("button", name="Ask again, for each that is ticked").click()
    expect(page.get_by_role("heading", name="2 of 2 done")).to_be_visible()
    look_at(page, "bulk-done")
