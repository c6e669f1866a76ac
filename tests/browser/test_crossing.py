"""Answers that cross: what comes for a place that has left the page changes nothing, and nothing gets lost."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from access.models import User
from approvals.enums import ProposalStatus
from approvals.models import Proposal
from common.models import Tenant
from tests import factories, rows
from tests.browser.desks import sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse", display_name="Ilse V.")


@pytest.fixture
def desk(page: Page, live_server: Any, reviewer: User) -> Callable[[str], Page]:
    sign_in(page, live_server.url, reviewer)

    def opened(path: str) -> Page:
        page.goto(f"{live_server.url}{path}")
        return page

    return opened


class Held:
    """The first answer of one address, kept from the page until it is given. ``asked`` holds the question back too."""

    def __init__(self, page: Page, address: str, method: str, *, asked: bool = False) -> None:
        self.page = page
        self.method = method
        self.asked = asked
        self.kept: list[tuple[Route, APIResponse | None]] = []
        page.route(address, self._keep)

    def _keep(self, route: Route) -> None:
        if route.request.method != self.method or self.kept:
            route.continue_()
        else:
            self.kept.append((route, None if self.asked else route.fetch()))

    def wait(self) -> None:
        for _ in range(200):
            if self.kept:
                return
            self.page.wait_for_timeout(100)
        raise AssertionError("the address was never asked")

    def give(self) -> None:
        route, response = self.kept[0]
        with self.page.expect_response(route.request.url):
            route.fulfill(response=response or route.fetch())
        self.page.wait_for_timeout(200)  # the page has it: whatever it does with it, it does now


def console_of(page: Page) -> list[str]:
    said: list[str] = []
    page.on("console", lambda line: said.append(line.text) if line.type == "error" else None)
    return said


def two(tenant: Tenant) -> list[Proposal]:
    return [
        factories.make_proposal(
            tenant=tenant, summary=f"Refund {number}", decide_by=rows.now() + timedelta(minutes=20 + number)
        )
        for number in range(2)
    ]


def expect_open(page: Page, proposal: Proposal) -> None:
    expect(page.locator(f"#pane #decide[action*='{proposal.pk}']")).to_be_visible()


def reject(page: Page, words: str = "The account is new.") -> None:
    page.click("#decide [popovertarget=sheet-reject]")
    page.fill("#reject-reason", words)
    page.click("#sheet-reject [value=reject]")


def test_a_bar_that_comes_after_the_decision_is_left_out(desk: Callable[[str], Page], tenant: Tenant) -> None:
    first, _ = two(tenant)
    page = desk(f"/review/{first.pk}/")
    errors = console_of(page)
    bar = Held(page, f"**/review/{first.pk}/bar/*", "GET", asked=True)
    page.evaluate("document.body.dispatchEvent(new CustomEvent('time-over'))")
    bar.wait()
    reject(page)
    expect(page.locator("#result")).to_contain_text("Ilse V. rejected this version.")
    bar.give()
    expect(page.locator("#decide[data-over]")).to_be_visible()
    expect(page.locator("#facts")).to_contain_text("Rejected")
    assert errors == []


@pytest.mark.parametrize(("words", "told"), [("The account is new.", False), ("", True)])
def test_a_decision_that_is_answered_after_the_pane_has_moved_on(
    desk: Callable[[str], Page], tenant: Tenant, words: str, told: bool
) -> None:
    """The proposal that is open now keeps its own facts; what was recorded leaves the list, what was not is told."""
    first, second = two(tenant)
    page = desk("/review/")
    errors = console_of(page)
    expect(page.locator("#pane #say")).to_be_visible()
    answer = Held(page, f"**/review/{first.pk}/decide/", "POST")
    reject(page, words)
    answer.wait()
    page.evaluate("document.querySelectorAll(':popover-open').forEach((one) => one.hidePopover())")
    page.keyboard.press("Escape")
    page.click(f"#row-{second.pk} > a")
    expect_open(page, second)
    page.evaluate("document.getElementById('facts').mine = true")
    answer.give()
    if told:
        expect(page.locator("#toasts")).to_contain_text("answered after you had left that proposal")
    else:
        expect(page.locator(f"#row-{first.pk}")).to_have_count(0)
    expect_open(page, second)
    assert page.evaluate("document.getElementById('facts').mine")
    assert Proposal.objects.get(pk=second.pk).status == ProposalStatus.PENDING
    assert [error for error in errors if "status of 4" not in error] == []


def test_who_skips_twice_in_a_breath_skips_two(desk: Callable[[str], Page], tenant: Tenant) -> None:
    _, second = two(tenant)
    third = factories.make_proposal(
        tenant=tenant, summary="Refund 2", decide_by=rows.now() + timedelta(minutes=30)
    )
    page = desk("/review/")
    expect(page.locator("#pane #say")).to_be_visible()
    slow = Held(page, f"**/review/{second.pk}/", "GET")
    page.keyboard.press("s")
    slow.wait()
    page.keyboard.press("s")
    expect(page.locator(f"#row-{third.pk} > a[aria-current]")).to_be_visible()
    expect_open(page, third)
