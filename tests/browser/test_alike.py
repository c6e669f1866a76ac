"""What is alike, decided in one list: by keyboard, by thumb, and without script."""

from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.models import User
from approvals.models import Proposal
from common.models import Tenant
from tests import factories, rows
from tests.browser.desks import look_at, sign_in, without_script

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse", display_name="Ilse V.")


@pytest.fixture
def some(tenant: Tenant) -> list[Proposal]:
    return [
        factories.make_proposal(
            tenant=tenant, arguments=dict(rows.REFUND) | {"order": str(2000 + number)}, summary=f"Refund {number}",
            decide_by=rows.now() + timedelta(minutes=30 + number), shape="refund",
        )
        for number in range(4)
    ]  # fmt: skip


def states() -> list[str]:
    return list(Proposal.objects.order_by("decide_by").values_list("status", flat=True))


def test_a_kind_is_decided_by_keyboard(
    page: Page, live_server: Any, reviewer: User, some: list[Proposal]
) -> None:
    sign_in(page, live_server.url, reviewer)
    page.goto(f"{live_server.url}/review/?alike=refund")
    page.click("text=Decide these in one list")
    expect(page.locator("input[name=chosen]")).to_have_count(4)
    expect(page.locator("input[name=chosen]:checked")).to_have_count(0)
    page.keyboard.press("a")  # closed: nothing is ticked
    expect(page.locator("#bulk .why >> visible=true")).to_contain_text("Nothing is ticked")
    expect(page.locator("#sheet-bulk-approve")).not_to_be_visible()
    look_at(page, "alike")
    for key in ("j", "Space", "j", "j", "Space"):
        page.keyboard.press(key)
    expect(page.locator("input[name=chosen]:checked")).to_have_count(2)
    page.keyboard.press("Enter")  # on a tick it sends nothing
    page.keyboard.press("a")
    expect(page.locator("#sheet-bulk-approve")).to_be_visible()
    expect(page.locator("#sheet-bulk-approve button").first).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#results-title")).to_have_text("2 of 2 recorded")
    expect(page.locator("#results-title")).to_be_focused()
    expect(page.locator("input[name=chosen]")).to_have_count(2)
    assert states() == ["approved", "pending", "approved", "pending"]
    look_at(page, "alike-decided")


def test_it_works_without_script(
    browser: Browser, live_server: Any, reviewer: User, some: list[Proposal]
) -> None:
    with without_script(browser, live_server.url, reviewer) as page:
        page.goto(f"{live_server.url}/review/{some[0].pk}/alike/")
        page.locator("input[name=chosen]").nth(1).check()
        page.locator("input[name=chosen]").nth(3).check()
        page.click("[popovertarget=sheet-bulk-reject]")
        page.click("#sheet-bulk-reject [value=reject]")
        expect(page.locator(".refusal")).to_contain_text("Say why")
        expect(page.locator("input[name=chosen]:checked")).to_have_count(2)
        page.click("[popovertarget=sheet-bulk-reject]")
        page.locator("#sheet-bulk-reject [value=duplicate]").check()
        page.click("#sheet-bulk-reject [value=reject]")
        expect(page.locator(".results")).to_contain_text("2 of 2 recorded")
    assert states() == ["pending", "rejected", "pending", "rejected"]
