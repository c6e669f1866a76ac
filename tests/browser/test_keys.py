"""Single keys and the focus: what they press, where they lead, and what a swap must not lose."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from access.models import User
from approvals.enums import ProposalStatus
from approvals.models import Proposal
from common.models import Tenant
from tests import factories, rows
from tests.approvals.desk_rows import make_full
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


def three(tenant: Tenant) -> list[Proposal]:
    return [
        factories.make_proposal(
            tenant=tenant, summary=f"Refund {number}", decide_by=rows.now() + timedelta(minutes=20 + number)
        )
        for number in range(3)
    ]


def test_skip_opens_the_next_row_and_leaves_this_one_alone(
    desk: Callable[[str], Page], tenant: Tenant
) -> None:
    first, second, third = three(tenant)
    page = desk("/review/")
    expect(page.locator("#pane #say")).to_be_visible()
    page.keyboard.press("s")
    expect(page.locator(".item > a[aria-current]")).to_have_text("Refund 1")
    expect(page.locator("#say")).to_be_focused()
    page.keyboard.press("s")
    expect(page.locator(".item > a[aria-current]")).to_have_text("Refund 2")
    assert {row.status for row in Proposal.objects.all()} == {ProposalStatus.PENDING}
    page.keyboard.press("Escape")
    expect(page.locator(f"#row-{third.pk} > a")).to_be_focused()
    desk(f"/review/{first.pk}/")  # on a page of its own too
    page.keyboard.press("s")
    page.wait_for_url(f"**/review/{second.pk}/")


def test_a_key_to_decide_opens_the_row_that_has_the_focus_first(
    desk: Callable[[str], Page], tenant: Tenant
) -> None:
    """The pane shows one proposal and the focus stands on another: nobody means the one in the pane."""
    three(tenant)
    page = desk("/review/")
    expect(page.locator("#pane #say")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.locator(".item > a[aria-current]")).to_have_text("Refund 2")
    expect(page.locator("#sheet-approve")).not_to_be_visible()
    expect(page.locator("#say")).to_be_focused()
    page.keyboard.press("a")
    expect(page.locator("#sheet-approve")).to_be_visible()


def test_space_ticks_what_is_in_sight_and_brings_the_rest_there(
    desk: Callable[[str], Page], tenant: Tenant
) -> None:
    proposal = make_full(tenant)
    page = desk(f"/review/{proposal.pk}/")
    boxes = page.locator("input[name=acknowledged]")
    assert boxes.count() == 3
    page.set_viewport_size({"width": 1280, "height": 260})
    page.keyboard.press(" ")  # out of sight: it only comes into view
    expect(boxes.first).to_be_focused()
    expect(boxes.first).to_be_in_viewport()
    assert page.locator("input[name=acknowledged]:checked").count() == 0
    page.keyboard.press(" ")
    expect(boxes.first).to_be_checked()
    expect(boxes.nth(1)).to_be_focused()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(" ")
    expect(boxes.nth(1)).to_be_checked()
    expect(boxes.nth(2)).to_be_focused()
    page.keyboard.press(" ")
    expect(boxes.nth(2)).to_be_checked()
    # What follows is a folded part: the keys lead to its button, and a ticked line is unticked as everywhere.
    expect(page.locator(".shown[data-need] button").first).to_be_focused()
    boxes.nth(2).focus()
    page.keyboard.press(" ")
    expect(boxes.nth(2)).not_to_be_checked()


def test_space_scrolls_where_nothing_is_to_be_ticked(desk: Callable[[str], Page], tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    page = desk(f"/review/{proposal.pk}/")
    page.set_viewport_size({"width": 1280, "height": 420})
    page.keyboard.press(" ")
    for _ in range(100):
        if page.evaluate("scrollY > 0"):
            return
        page.wait_for_timeout(20)
    raise AssertionError("Space does not scroll.")


def test_no_key_sends_a_decision(desk: Callable[[str], Page], tenant: Tenant) -> None:
    """After a refusal the bar holds the reject button itself: `r` leads to the words, not to a no."""
    proposal = factories.make_proposal(tenant=tenant)
    page = desk(f"/review/{proposal.pk}/")
    page.keyboard.press("r")
    page.click("#sheet-reject [value=reject]")
    expect(page.locator(".refusal")).to_be_visible()
    for key in "rca":
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(key)
        page.wait_for_timeout(150)
        page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("r")
    expect(page.locator("#sheet-reject [name=reason_code]").first).to_be_focused()
    assert Proposal.objects.get().status == ProposalStatus.PENDING


def test_words_in_a_sheet_outlive_a_new_version_of_the_bar(
    desk: Callable[[str], Page], tenant: Tenant
) -> None:
    """Two people are asked; one says yes while the other is writing why not."""
    other = factories.make_user(tenant, "noor")
    proposal = factories.make_proposal(tenant=tenant, needed=2)
    page = desk(f"/review/{proposal.pk}/")
    page.keyboard.press("r")
    page.keyboard.press("Space")
    page.fill("#reject-reason", "The account is new, and")
    factories.make_decision(proposal, other)
    Proposal.objects.filter(pk=proposal.pk).update(state_version=2)
    page.evaluate("document.body.dispatchEvent(new CustomEvent('time-over'))")  # the bar asks the server
    expect(page.locator("#decide")).to_contain_text("Yours is the second of two approvals.")
    expect(page.locator("#sheet-reject")).to_be_visible()
    expect(page.locator("#reject-reason")).to_have_value("The account is new, and")
    expect(page.locator("#reject-reason")).to_be_focused()
    expect(page.locator("[name=reason_code]").first).to_be_checked()


def test_words_outlive_a_decision_made_elsewhere(  # field report G6
    desk: Callable[[str], Page], tenant: Tenant
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    page = desk(f"/review/{proposal.pk}/")
    page.keyboard.press("r")
    page.fill("#reject-reason", "The account is new, and")
    row = Proposal.objects.get(pk=proposal.pk)
    rows.moved(row, "reject", rows.now())
    row.state_version = 2
    row.save()
    page.evaluate("document.body.dispatchEvent(new CustomEvent('time-over'))")
    expect(page.locator("#decide[data-over]")).to_be_visible()
    expect(page.locator("#decide")).to_contain_text("The account is new, and")
    expect(page.locator("#announce")).to_contain_text("Rejected")
    expect(page.locator("#decide .why")).to_be_focused()


def test_the_list_keeps_the_focus_when_it_is_made_anew(desk: Callable[[str], Page], tenant: Tenant) -> None:
    first, second, third = three(tenant)
    page = desk("/review/")
    expect(page.locator("#pane #say")).to_be_visible()
    page.locator(f"#row-{second.pk} > a").focus()
    with page.expect_response("**/review/**"):
        page.evaluate("document.body.dispatchEvent(new CustomEvent('queue-stale'))")
    expect(page.locator(f"#row-{second.pk} > a")).to_be_focused()
    row = Proposal.objects.get(pk=second.pk)
    rows.moved(row, "reject", rows.now())
    row.save()
    with page.expect_response("**/review/**"):
        page.evaluate("document.body.dispatchEvent(new CustomEvent('queue-stale'))")
    expect(page.locator(f"#row-{third.pk} > a")).to_be_focused()
    assert page.locator(f"#row-{first.pk}").count() == 1


def test_keys_that_are_off_stay_off(desk: Callable[[str], Page], tenant: Tenant) -> None:
    three(tenant)
    page = desk("/review/")
    expect(page.locator("#pane #say")).to_be_visible()
    page.evaluate("localStorage.setItem('placet-single-keys', 'off')")
    for key in ("j", "s", "a", "r", "m", "q", "?", "/", " "):
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    assert page.evaluate("document.activeElement === document.body")
    assert page.locator(":popover-open").count() == 0
    expect(page.locator(".item > a[aria-current]")).to_have_text("Refund 0")


@pytest.mark.parametrize(
    ("status", "says"),
    [(429, "too quick: nothing was recorded"), (503, "it counts once"), (500, "Reload the page")],
)
def test_an_answer_that_is_no_answer_says_what_it_means_and_keeps_the_words(
    desk: Callable[[str], Page], tenant: Tenant, status: int, says: str
) -> None:
    page = desk(f"/review/{factories.make_proposal(tenant=tenant).pk}/")
    page.route(
        "**/decide/",
        lambda route: route.fulfill(
            status=status, headers={"Retry-After": "3"}, body="<!doctype html><p>No.</p>"
        ),
    )
    page.keyboard.press("r")
    page.fill("#reject-reason", "The account is new.")
    page.click("#sheet-reject [value=reject]")
    expect(page.locator("#toasts")).to_contain_text(says)
    expect(page.locator("#reject-reason")).to_have_value("The account is new.")


def test_a_busy_proposal_is_told_in_the_bar(desk: Callable[[str], Page], tenant: Tenant) -> None:
    page = desk(f"/review/{factories.make_proposal(tenant=tenant).pk}/")
    bar = page.locator("#decide").evaluate("(one) => one.outerHTML")
    bar = bar.replace('<p class="why', '<p>Try once more.</p><p class="why', 1)
    page.route("**/decide/", lambda route: route.fulfill(status=503, body=bar))
    page.keyboard.press("a")
    page.click("#sheet-approve [value=approve]")
    expect(page.locator("#decide")).to_contain_text("Try once more.")
