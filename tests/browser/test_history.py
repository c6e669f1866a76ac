"""The history in a real browser: filters, a row that opens in place, the chain; with and without script."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.enums import Role
from access.models import User
from audit.sealer import seal
from common.clock import db_clock
from tests import factories
from tests.browser.desks import look_at, scene, sign_in, without_script
from tests.browser.shots import shoot, violations
from tests.workflows.conftest import Desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def auditor(toy: Desk) -> User:
    return factories.make_user(toy.tenant, "aude", roles=[Role.AUDITOR], display_name="Aude L.")


def test_the_list_an_open_row_and_an_event(page: Page, live_server: Any, toy: Desk, auditor: User) -> None:
    made = scene(toy)
    sign_in(page, live_server.url, auditor)
    page.goto(f"{live_server.url}/history/")
    look_at(page, "history")
    alone = """(marks) => marks.filter((one) => one.getClientRects().length
      && one.getBoundingClientRect().top >= one.previousElementSibling.getBoundingClientRect().bottom).length"""
    assert page.locator(".only").evaluate_all(alone) == 0  # none on a line of its own
    page.goto(f"{live_server.url}/history/?run={made['done']}&kind=command.")
    link = page.get_by_role("link", name="command.confirmed")
    link.focus()
    page.keyboard.press("Enter")
    expect(page.locator("tr.detail")).to_contain_text("Hash fits the stored event")
    expect(link).to_have_attribute("aria-expanded", "true")
    expect(link).to_be_focused()
    assert violations(page) == []
    shoot(page, "history-open")
    page.get_by_role("link", name="This event alone").click()
    expect(page.locator("h1")).to_have_text("command.confirmed")
    look_at(page, "event")


def test_a_row_closes_again_and_filters_swap_the_list(
    page: Page, live_server: Any, toy: Desk, auditor: User
) -> None:
    scene(toy)
    sign_in(page, live_server.url, auditor)
    page.goto(f"{live_server.url}/history/")
    first = page.locator("tbody a.stretch").first
    first.click()
    expect(page.locator("tr.detail")).to_have_count(1)
    first.click()
    expect(page.locator("tr.detail")).to_have_count(0)
    page.locator("#id_kind").select_option("proposal.rejected")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody a.stretch")).to_have_count(1)
    page.get_by_role("link", name="Event: proposal.rejected").click()
    expect(page.locator("tbody a.stretch")).not_to_have_count(1)


def test_on_a_phone_codes_break_at_their_colon_and_the_search_stands_in_the_menu(
    page: Page, live_server: Any, toy: Desk, auditor: User
) -> None:
    toy.proposed()
    sign_in(page, live_server.url, auditor)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{live_server.url}/history/")
    who = page.locator("td.who bdi", has_text="api:tester").first
    lines = who.evaluate(
        """element => [...element.childNodes].filter(node => node.nodeType === 3).map(node => {
            const range = document.createRange();
            range.selectNodeContents(node);
            return range.getClientRects().length; })"""
    )
    assert lines == [1, 1]
    search = page.get_by_role("search", name="Search, in the menu")
    expect(search).to_be_hidden()
    page.locator(".me-menu > summary").click()
    expect(search).to_be_visible()
    assert violations(page) == []
    search.get_by_role("searchbox").fill("order:1042")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{live_server.url}/history/?q=order%3A1042")


def test_everything_works_without_script(
    browser: Browser, live_server: Any, toy: Desk, auditor: User
) -> None:
    toy.approved(order="1001")
    toy.work()
    toy.advance()
    seal(db_clock)
    with without_script(browser, live_server.url, auditor) as page:
        page.goto(f"{live_server.url}/history/?kind=command.confirmed")
        page.locator("tbody a.stretch").click()
        expect(page.locator("h1")).to_have_text("command.confirmed")
        page.get_by_role("link", name="Whole story of the run").click()
        expect(page.get_by_role("heading", name="Who let it through")).to_be_visible()
        page.get_by_role("link", name="Its events as a list").click()
        expect(page.locator("tbody a.stretch").first).to_have_text("run.completed")
        page.get_by_role("button", name="Check the whole chain now").click()
        expect(page.locator(".proof").first).to_contain_text("The chain holds")
