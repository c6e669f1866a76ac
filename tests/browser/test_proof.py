"""What is signed, who keeps it, and the alarm that nobody can miss, in a real browser."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from access.enums import Role
from audit.sealer import seal
from common.clock import db_clock
from notify.actions.destinations import register_address
from tests import factories
from tests.access.people import INSTALLER
from tests.audit.events import tamper
from tests.audit.signing import look
from tests.browser.desks import look_at, sign_in
from tests.workflows.conftest import Desk

pytestmark = pytest.mark.django_db


def test_a_history_that_is_refused_is_seen_on_every_page(
    page: Page, live_server: Any, toy: Desk, tmp_path: Path
) -> None:
    toy.proposed()
    seal(db_clock)
    folder = tmp_path / "signer"
    look(folder)
    admin = factories.make_user(toy.tenant, "adam", roles=[Role.ADMIN])
    register_address(
        tenant_id=toy.tenant.pk, name="notary", address="notary@outside.example", by=INSTALLER, clock=db_clock
    )
    sign_in(page, live_server.url, admin)
    page.goto(f"{live_server.url}/history/")
    page.get_by_role("button", name="Send a checkpoint now").click()
    expect(page.locator("#toasts")).to_contain_text("on its way to 1 receiver")
    look_at(page, "history-signed")
    tamper("UPDATE audit_seal SET hash = %s WHERE tenant_id = %s AND seq = 1", "ab" * 32, toy.tenant.pk)
    tamper("UPDATE audit_seal SET previous = %s WHERE tenant_id = %s AND seq = 2", "ab" * 32, toy.tenant.pk)
    look(folder)
    page.goto(f"{live_server.url}/runs/")
    expect(page.get_by_role("alert")).to_contain_text("The history is not the one that was signed")
    look_at(page, "alarm")
    page.get_by_role("link", name="See the history").click()
    expect(page.locator("#signed-title")).to_have_text("The signer refuses this history")
    look_at(page, "history-refused")


def test_an_admin_says_who_keeps_checkpoints(page: Page, live_server: Any, toy: Desk) -> None:
    sign_in(page, live_server.url, factories.make_user(toy.tenant, "adam", roles=[Role.ADMIN]))
    page.goto(f"{live_server.url}/people/notices/")
    page.get_by_role("link", name="Who keeps checkpoints").click()
    page.get_by_label("Name").fill("notary")
    page.get_by_label("E-mail address").fill("notary@outside.example")
    look_at(page, "checkpoint-keeper")
    page.get_by_role("button", name="Make it").click()
    expect(page.locator("h1")).to_have_text("notary")
    expect(page.locator("main")).to_contain_text("A mail to an address")
