"""Callbacks in a real browser: registered, seen failing, and readable on a phone."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from access.enums import Role
from tests import factories
from tests.browser.desks import look_at, sign_in
from tests.workflows.conftest import Desk
from tests.workflows.receiver import receiving
from tests.workflows.test_callbacks import ended, send
from workflows.models import CallbackEndpoint

pytestmark = pytest.mark.django_db


def test_register_one_and_see_it_fail(page: Page, live_server: Any, toy: Desk, settings: Any) -> None:
    admin = factories.make_user(toy.tenant, "adam", roles=[Role.ADMIN, Role.OPERATOR])
    sign_in(page, live_server.url, admin)
    with receiving() as receiver:
        settings.OUTGOING_TOLD_HOSTS = [receiver.authority]
        page.goto(f"{live_server.url}/people/endpoints/")
        page.get_by_role("link", name="Callbacks: where runs call back").click()
        look_at(page, "callbacks-none")
        page.get_by_role("link", name="New callback").click()
        page.get_by_label("Name").fill("crm")
        page.get_by_label("Address").fill(receiver.url)
        look_at(page, "callbacks-new")
        page.get_by_role("button", name="Make it").click()
        expect(page.get_by_label("Secret")).to_have_value(re.compile("^whsec_"))
        receiver.answers = [500]
        run = ended(toy)
        send()
        page.goto(f"{live_server.url}/people/endpoints/callbacks/")
        look_at(page, "callbacks-list")
        page.get_by_role("link", name="crm").click()
        expect(page.get_by_text("waiting, 1 try so far")).to_be_visible()
        look_at(page, "callbacks-one")
        page.goto(f"{live_server.url}/runs/{run.pk}/")
        expect(page.get_by_text("crm: waiting, 1 try so far")).to_be_visible()
    assert CallbackEndpoint.objects.get().failures == 1
