"""Notices in a real browser: the list, wishes without script, and the pages of admins, on a desk and on a phone."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.enums import Role
from access.models import User
from common.clock import db_clock
from notify.actions.destinations import Room, register_destination
from notify.models import Preference
from tests import factories
from tests.access.people import INSTALLER
from tests.browser.desks import look_at, sign_in, without_script
from tests.notify.conftest import told
from tests.notify.letterbox import letterbox
from tests.workflows.conftest import Desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def house(toy: Desk, settings: Any) -> Desk:
    """Something decided, something that waits, a mail that was refused and a room that cannot be reached."""
    with letterbox() as box:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", box.port
        User.objects.filter(pk=toy.ada.pk).update(email="ada@post.example")
        User.objects.filter(pk=toy.ben.pk).update(email="ben@post.example")
        box.refuses["ben@post.example"] = "550 no such mailbox"
        room = Room(name="refund-desk", url="https://localhost/hook", group=None, kinds=["asked", "expiring"])
        register_destination(tenant_id=toy.tenant.pk, room=room, by=INSTALLER, clock=db_clock)
        Preference.objects.create(tenant=toy.tenant, user=toy.ada, zone="Europe/Berlin")
        first = toy.proposed(order="1041")
        told()
        toy.decide(first, "reject", user=toy.ben)
        toy.proposed(order="1042")
        told()
    return toy


def test_a_person_reads_what_they_were_told(
    page: Page, live_server: Any, house: Desk, browser: Browser
) -> None:
    sign_in(page, live_server.url, house.ada)
    page.goto(f"{live_server.url}/review/")
    expect(page.get_by_role("link", name="Notices, unread: 1")).to_be_visible()
    page.get_by_role("link", name="Notices, unread: 1").click()
    look_at(page, "notices-unread")
    page.goto(f"{live_server.url}/notices/?all=yes")
    expect(page.get_by_text("Rejected by ben")).to_be_visible()
    look_at(page, "notices-all")
    page.goto(f"{live_server.url}/account/notices/")
    look_at(page, "notices-wishes")
    with without_script(browser, live_server.url, house.ada) as plain:
        plain.goto(f"{live_server.url}/notices/")
        plain.get_by_role("button", name="Open").first.click()
        assert "/review/" in plain.url
        plain.goto(f"{live_server.url}/account/notices/")
        plain.get_by_label("Quiet from").fill("22:00")
        plain.get_by_label("Quiet until").fill("07:00")
        plain.get_by_role("button", name="Keep this").click()
        expect(plain.get_by_label("Quiet from")).to_have_value("22:00")


def test_an_admin_sees_what_could_not_be_told(page: Page, live_server: Any, house: Desk) -> None:
    admin = factories.make_user(house.tenant, "adam", roles=[Role.ADMIN], email="adam@post.example")
    sign_in(page, live_server.url, admin)
    page.goto(f"{live_server.url}/people/notices/")
    look_at(page, "telling-channels")
    page.get_by_role("link", name="What was given up").click()
    expect(page.get_by_text("refused it for good (550)").first).to_be_visible()
    look_at(page, "telling-failures")
    page.goto(f"{live_server.url}/people/notices/new/")
    look_at(page, "telling-new")
    page.goto(f"{live_server.url}/people/notices/")
    page.get_by_role("link", name="refund-desk").click()
    look_at(page, "telling-one")
