"""What is kept, in a real browser: found, listed before it goes, held; without a mouse's precision and on a phone."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from access.enums import Role
from approvals.models import Decision
from common.content_errors import ERASED_TEXT
from tests.browser.desks import look_at, sign_in
from tests.factories import make_user
from tests.workflows.conftest import Desk

pytestmark = [pytest.mark.django_db, pytest.mark.browser]


def test_a_persons_data_is_erased_by_whoever_answers_for_it(page: Page, live_server: Any, toy: Desk) -> None:
    proposal = toy.proposed()
    toy.decide(proposal, "reject", reason="Jane Roe told me so.")
    toy.advance()
    toy.proposed(order="1043", record="crm:7", sequence=1)
    sign_in(page, live_server.url, make_user(toy.tenant, "adam", roles=[Role.ADMIN]))
    page.goto(f"{live_server.url}/people/contents/")
    page.get_by_label("A word of the person's").fill("jane roe")
    page.get_by_label("Reference").fill("request-7")
    page.get_by_role("button", name="Look through everything").click()
    expect(page.get_by_role("heading", name="1 run found")).to_be_visible()
    look_at(page, "contents-found")
    page.get_by_role("button", name="Erase what is ticked…").click()
    expect(page.get_by_role("heading", name="Erase what one run held?")).to_be_visible()
    look_at(page, "contents-erase")
    page.get_by_label("Reference").fill("request-7")
    page.get_by_role("button", name="Erase for good").click()
    expect(page.get_by_text("1 of 1 erased.")).to_be_visible()
    assert Decision.objects.get(proposal=proposal).reason == ERASED_TEXT
    page.get_by_role("link", name="Legal hold…").click()
    look_at(page, "contents-hold")
    page.get_by_label("Keep what is about").select_option("record")
    page.get_by_label("Which").fill("crm:7")
    page.get_by_label("Reference").fill("file-18")
    page.get_by_role("button", name="Hold it").click()
    expect(page.get_by_text("Record crm:7")).to_be_visible()
    page.get_by_label("Run, target, record or event").fill("crm:7")
    page.get_by_role("button", name="Find", exact=True).click()
    expect(page.get_by_text("a legal hold keeps it")).to_be_visible()
    look_at(page, "contents-held")
