"""The runs desk in a real browser: the list, one run that moves by itself, receipts; with and without script."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.enums import Role
from access.models import User
from tests import factories
from tests.browser.desks import look_at, scene, sign_in, without_script
from tests.workflows.conftest import Desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(toy: Desk) -> User:
    return factories.make_user(
        toy.tenant, "omar", roles=[Role.OPERATOR, Role.AUDITOR], display_name="Omar T."
    )


def test_the_list_and_each_kind_of_run(page: Page, live_server: Any, toy: Desk, operator: User) -> None:
    made = scene(toy)
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/runs/")
    look_at(page, "runs")
    for name in ("done", "waiting", "unknown", "refused", "declined", "held", "odd"):
        page.goto(f"{live_server.url}/runs/{made[name]}/")
        look_at(page, f"run-{name}")
    page.goto(f"{live_server.url}/runs/{made['done']}/receipts/pay/")
    look_at(page, "receipt")


def test_a_run_shows_by_itself_what_happens_to_it(
    page: Page, live_server: Any, toy: Desk, operator: User
) -> None:
    proposal = toy.proposed(order="1042")
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/runs/{proposal.run_id}/")
    page.locator("details.dry summary").click()
    page.wait_for_timeout(2500)
    expect(page.locator("details.dry")).to_have_attribute(
        "open", ""
    )  # nothing moved, so nothing was replaced
    toy.decide(proposal)
    toy.work()
    toy.advance()
    expect(page.locator(".notice")).to_contain_text("Completed: paid.")
    expect(page.get_by_text("Attempt 1")).to_be_visible()
    expect(page.locator("#run")).not_to_have_attribute("hx-trigger", "every 2s")


def test_filters_and_views_swap_the_list_and_can_be_gone_back_from(
    page: Page, live_server: Any, toy: Desk, operator: User
) -> None:
    scene(toy)
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/runs/")
    page.get_by_role("link", name="Outcome unknown 1").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.url.endswith("/runs/?view=unknown")
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(8)
    page.locator("#id_q").fill("1002")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody")).to_contain_text("order:1002")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("order:1002")


def test_everything_works_without_script(
    browser: Browser, live_server: Any, toy: Desk, operator: User
) -> None:
    made = scene(toy)
    with without_script(browser, live_server.url, operator) as page:
        page.goto(f"{live_server.url}/runs/")
        page.locator("#id_q").fill("1001")
        page.get_by_role("button", name="Filter").click()
        page.locator("tbody a.stretch").click()
        expect(page.locator(".notice")).to_contain_text("Completed: paid.")
        page.get_by_role("link", name="Receipt").click()
        expect(page.locator(".notice")).to_contain_text("Final.")
        page.goto(f"{live_server.url}/runs/{made['done']}/")
        page.get_by_role("link", name="protected, by reference").click()
        page.get_by_role("button", name="Open it").click()
        expect(page.locator(".lines")).to_contain_text("1001")
