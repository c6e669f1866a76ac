"""The desk once more under a thumb and with two people at it: order, votes, the bell, and words that come back."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.enums import Role
from access.models import User
from approvals.models import Decision
from common.models import Tenant
from tests import factories
from tests.approvals.desk_rows import make_full
from tests.browser.desks import sign_in, without_script
from tests.browser.shots import sideways, violations
from tests.browser.test_phone import phone, reviewer, tenant
from tests.notify.rows import message_row, notice_row

__all__ = ["phone", "reviewer", "tenant"]
pytestmark = pytest.mark.django_db
SOON_MS = 15_000


@pytest.fixture
def colleague(tenant: Tenant) -> User:
    return factories.make_user(tenant, "tomas", display_name="Tomás R.")


@pytest.fixture
def theirs(browser: Browser, live_server: Any, colleague: User) -> Iterator[Page]:
    context = browser.new_context(base_url=live_server.url)
    page = context.new_page()
    sign_in(page, live_server.url, colleague)
    yield page
    context.close()


def test_the_first_check_stands_before_the_thumb(phone: Callable[..., Page], tenant: Tenant) -> None:
    page = phone(f"/review/{make_full(tenant).pk}/")
    tops = [page.locator(what).bounding_box() for what in ("#checks", "#slip-title")]
    assert tops[0] and tops[1] and tops[0]["y"] < tops[1]["y"]
    hold = page.locator("#hold")
    expect(hold).to_be_visible()
    below = hold.bounding_box()
    assert below and below["y"] > tops[0]["y"]


@pytest.mark.parametrize("width", [320, 390])
def test_every_word_of_an_admins_navigation_is_in_sight(
    browser: Browser, live_server: Any, tenant: Tenant, width: int
) -> None:
    admin = factories.make_user(tenant, "adam", roles=[Role.ADMIN])
    context = browser.new_context(
        viewport={"width": width, "height": 844}, is_mobile=True, has_touch=True, base_url=live_server.url
    )
    page = context.new_page()
    sign_in(page, live_server.url, admin)
    page.goto("/review/")
    assert sideways(page) == 0
    assert page.locator(".nav").evaluate("nav => nav.scrollWidth - nav.clientWidth") <= 0
    for link in page.locator(".nav a").all():
        expect(link).to_be_in_viewport(ratio=1)
    assert violations(page) == []
    context.close()


def test_a_vote_of_a_colleague_is_seen_at_once(
    phone: Callable[..., Page], theirs: Page, tenant: Tenant
) -> None:
    proposal = factories.make_proposal(tenant=tenant, needed=2)
    queue, page = phone("/review/"), phone(f"/review/{proposal.pk}/")
    page.locator("#decide [data-key=r] >> visible=true").first.click()
    page.locator("#sheet-reject textarea").fill("half a sen")
    theirs.goto(f"/review/{proposal.pk}/")
    theirs.locator("[popovertarget=sheet-approve] >> visible=true").first.click()
    theirs.locator("#sheet-approve button[value=approve]").click()
    expect(queue.locator(f"#row-{proposal.pk} .voted")).to_have_text("Tomás R. voted", timeout=SOON_MS)
    expect(queue.locator(f"#row-{proposal.pk} .given")).to_have_text("1 of 2")
    expect(page.locator("#people")).to_contain_text("Tomás R.", timeout=SOON_MS)
    expect(page.locator("#sheet-reject textarea")).to_have_value("half a sen")
    assert Decision.objects.get().kind == "approve"


def test_whoever_was_writing_is_told_who_decided_and_nothing_jumps(
    phone: Callable[..., Page], theirs: Page, tenant: Tenant
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    page = phone(f"/review/{proposal.pk}/", width=1280, height=900)
    page.locator("#decide [data-key=r] >> visible=true").first.click()
    page.locator("#sheet-reject textarea").fill("half a sen")
    theirs.goto(f"/review/{proposal.pk}/")
    theirs.locator("#decide [data-key=r] >> visible=true").first.click()
    theirs.locator("#sheet-reject input[name=reason_code]").first.check()
    theirs.locator("#sheet-reject button[value=reject]").click()
    before = page.evaluate("window.scrollY")
    why = page.locator("#decide .why[role=status]")
    expect(why).to_contain_text("Rejected by Tomás R. at ", timeout=SOON_MS)
    expect(why).to_be_focused()
    expect(page.locator("#decide")).to_contain_text("half a sen")
    assert page.evaluate("window.scrollY") == before == 0


def test_the_number_at_the_bell_follows(phone: Callable[..., Page], tenant: Tenant, reviewer: User) -> None:
    page = phone("/review/")
    expect(page.locator(".bell")).to_contain_text("none")
    message = message_row(tenant)
    message.save()
    notice_row(message, reviewer).save()


def test_questions_to_oneself_without_script(
    browser: Browser, live_server: Any, tenant: Tenant, reviewer: User
) -> None:
    with without_script(browser, live_server.url, reviewer) as page:
        page.goto(f"{live_server.url}/review/")
        page.get_by_role("link", name="Questions to you").click()
        expect(page.locator("h1")).to_have_text("Questions to you")
        assert sideways(page) == 0
