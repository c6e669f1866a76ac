"""The repair desk in a real browser: sections, a packet, a phone, no script."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.enums import Role
from access.models import User
from repair.models import RepairPacket
from tests import factories
from tests.browser.desks import look_at, scene, sign_in, without_script
from tests.workflows.conftest import Desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(toy: Desk) -> User:
    return factories.make_user(toy.tenant, "omar", roles=[Role.OPERATOR], display_name="Omar T.")


def test_an_empty_desk_says_so(page: Page, live_server: Any, toy: Desk, operator: User) -> None:
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/repair/")
    look_at(page, "repair-empty")


def test_the_sections_and_each_kind_of_packet(
    page: Page, live_server: Any, toy: Desk, operator: User
) -> None:
    scene(toy)
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/repair/")
    look_at(page, "repair")
    for packet in RepairPacket.objects.order_by("opened_at"):
        page.goto(f"{live_server.url}/repair/{packet.pk}/")
        look_at(page, f"packet-{packet.cause}")


def test_the_number_in_the_bar_is_the_length_of_the_list(
    page: Page, live_server: Any, toy: Desk, operator: User
) -> None:
    scene(toy)
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/repair/")
    rows = page.locator("tbody a.stretch").count()
    expect(page.locator(".nav a[aria-current] .n")).to_have_text(str(rows))
    page.get_by_role("link", name="Outcome unknown 1").click()
    expect(page.locator("tbody a.stretch")).to_have_count(1)


def test_everything_works_without_script(
    browser: Browser, live_server: Any, toy: Desk, operator: User
) -> None:
    scene(toy)
    with without_script(browser, live_server.url, operator) as page:
        page.goto(f"{live_server.url}/repair/?view=unknown")
        page.locator("tbody a.stretch").click()
        expect(page.locator("h1")).to_contain_text("Nobody knows yet whether it happened.")
        page.locator(".kv a.hash").click()
        expect(page.locator(".notice")).to_contain_text("Unknown.")
