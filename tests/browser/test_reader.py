"""What a screen reader is told of the desk: names, order, roles; and what is announced without being asked for."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from access.models import User
from common.models import Tenant
from tests import factories, rows
from tests.approvals.desk_rows import make_full
from tests.browser.desks import sign_in
from tests.browser.shots import violations

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def desk(page: Page, live_server: Any, tenant: Tenant) -> Callable[[str], Page]:
    reviewer: User = factories.make_user(tenant, "ilse", display_name="Ilse V.")
    sign_in(page, live_server.url, reviewer)

    def opened(path: str) -> Page:
        page.goto(f"{live_server.url}{path}")
        return page

    return opened


def test_the_queue_is_a_list_of_links_with_the_time_left(desk: Callable[[str], Page], tenant: Tenant) -> None:
    for number in (1, 2):
        until = rows.now() + timedelta(minutes=20 + number)
        factories.make_proposal(tenant=tenant, summary=f"Refund {number}", decide_by=until)
    page = desk("/review/")
    expect(page.locator("#queue")).to_match_aria_snapshot(
        """
        - heading "Review" [level=1]
        - navigation "Views of the queue"
        - search "Filter the queue"
        - region:
          - list:
            - listitem:
              - link "Refund 1"
            - listitem:
              - link "Refund 2"
        """
    )
    described = page.locator(".item > a").first.get_attribute("aria-describedby")
    assert described
    left = page.locator(", ".join(f"#{name}" for name in described.split()))
    expect(left.first).to_contain_text("time left")
    expect(page.locator("#pane")).to_have_attribute("aria-label", "Open proposal")


def test_the_proposal_says_the_consequence_first_and_the_decision_last(
    desk: Callable[[str], Page], tenant: Tenant
) -> None:
    proposal = make_full(tenant)
    page = desk(f"/review/{proposal.pk}/")
    expect(page.locator("main")).to_match_aria_snapshot(
        """
        - article:
          - heading /Refund EUR 1,284.50/ [level=1]
          - paragraph: /Why a person is asked/
          - region "Before you approve":
            - heading "Before you approve" [level=2]
            - list:
              - listitem:
                - checkbox /Message, seen/
              - listitem
              - listitem
          - region "What you sign":
            - term: /Amount/
            - definition: EUR 1,284.50
          - region "Evidence"
          - complementary "Policy, people and history"
          - form "Decision":
            - button /Reject/
            - button "Approve" [disabled]
        """
    )
    for box in page.locator("input[data-need]").all():
        assert "seen:" in box.evaluate("(one) => one.labels[0].textContent")


@pytest.mark.parametrize(
    ("key", "sheet"),
    [
        ("a", "sheet-approve"),
        ("r", "sheet-reject"),
        ("c", "sheet-changes"),
        ("q", "sheet-ask"),
        ("?", "sheet-keys"),
    ],
)
def test_sheets_are_dialogs_with_a_name_and_give_the_focus_back(
    desk: Callable[[str], Page], tenant: Tenant, key: str, sheet: str
) -> None:
    page = desk(f"/review/{factories.make_proposal(tenant=tenant).pk}/")
    page.keyboard.press(key)
    opened = page.locator(f"#{sheet}")
    expect(opened).to_be_visible()
    expect(opened).to_have_attribute("role", "dialog")
    assert page.evaluate(f"document.getElementById('{sheet}').contains(document.activeElement)")
    title = page.locator(f"#{opened.get_attribute('aria-labelledby')}")
    expect(title).to_be_visible()
    assert violations(page) == []
    page.locator(f"#{sheet}").evaluate("(one) => one.querySelector('button, textarea, input').focus()")
    page.keyboard.press("Escape")
    expect(opened).not_to_be_visible()
    if sheet != "sheet-keys":
        expect(page.locator(f"[popovertarget={sheet}] >> visible=true")).to_be_focused()


def test_what_happens_is_announced(desk: Callable[[str], Page], tenant: Tenant) -> None:
    """Into regions that stand in the page from the start: one that comes with its words is often not read."""
    proposal = factories.make_proposal(tenant=tenant)
    page = desk("/review/")
    expect(page.locator("#pane #say")).to_be_visible()
    for region in ("#toasts", "#announce", ".newpill"):
        expect(page.locator(region)).to_have_attribute("role", "status")
    page.keyboard.press("r")
    page.click("#sheet-reject [value=reject]")
    expect(page.locator("#decide [role=alert]")).to_be_focused()
    page.fill("#reject-reason", "No.")
    page.click("#decide .acts [value=reject]")
    expect(page.locator("#toasts")).to_contain_text("Rejected. Nothing is sent.")
    expect(page.locator("#result")).to_be_focused()
    assert proposal.pk
