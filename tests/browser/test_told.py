"""The story of a run in a real browser, on a desk and on a phone, in light and dark."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from access.enums import Role
from tests import factories
from tests.browser.desks import look_at, scene, sign_in
from tests.workflows.conftest import Desk

pytestmark = pytest.mark.django_db


def test_who_let_it_through_is_answered_from_the_history_in_two_clicks(
    page: Page, live_server: Any, toy: Desk
) -> None:
    made = scene(toy)
    sign_in(page, live_server.url, factories.make_user(toy.tenant, "aude", roles=[Role.AUDITOR]))
    page.goto(f"{live_server.url}/history/?run={made['done']}")
    page.get_by_role("link", name="its story").first.click()
    expect(page.get_by_role("heading", name="Who let it through")).to_be_visible()
    expect(page.locator("main")).to_contain_text("ada approved as reviewer")
    look_at(page, "story")
    page.goto(f"{live_server.url}/history/runs/{made['unknown']}/")
    expect(page.locator("main")).to_contain_text("nobody knows whether it happened")
    look_at(page, "story-unknown")


def test_what_somebody_let_through_is_found_from_the_history_and_leads_to_the_story(
    page: Page, live_server: Any, toy: Desk
) -> None:
    scene(toy)
    sign_in(page, live_server.url, factories.make_user(toy.tenant, "aude", roles=[Role.AUDITOR]))
    page.goto(f"{live_server.url}/history/")
    page.get_by_role("link", name="What was let through").click()
    page.get_by_role("textbox", name="Person").fill("ada")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody tr")).to_have_count(3)
    look_at(page, "let-through")
    with page.expect_download() as taken:
        page.get_by_role("button", name="CSV").click()
    assert taken.value.suggested_filename == "let-through.csv"
    page.locator("tbody a.stretch").first.click()
    expect(page.get_by_role("heading", name="Who let it through")).to_be_visible()


def test_each_cell_of_a_row_narrows_the_list_to_it(page: Page, live_server: Any, toy: Desk) -> None:
    made = scene(toy)
    sign_in(page, live_server.url, factories.make_user(toy.tenant, "aude", roles=[Role.AUDITOR]))
    page.goto(f"{live_server.url}/history/?run={made['done']}")
    row = page.locator("tbody", has=page.get_by_role("link", name="proposal.vote"))
    row.get_by_role("button", name="Only this event").click()
    expect(page.locator("tbody a.stretch")).to_have_count(1)
    expect(page.get_by_role("link", name="Event: proposal.vote")).to_be_visible()
    look_at(page, "history-only")
