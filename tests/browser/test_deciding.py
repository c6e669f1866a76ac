"""Absences, hours, escalation and what is looked at afterwards, in a real browser: with a script and without."""

from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access import actions, actions_hours
from access.enums import Role
from access.models import Absence, Group, User
from approvals.escalating import escalate_due
from approvals.models import Escalation, Proposal, Sample
from audit.actors import clock_actor
from common.clock import db_clock
from tests import factories
from tests.access.people import INSTALLER
from tests.browser.desks import look_at, sign_in, without_script
from tests.workflows import modes
from tests.workflows.conftest import Desk
from workflows import registry
from workflows.operations import Verdict

pytestmark = pytest.mark.django_db
BY: dict[str, Any] = {"by": INSTALLER, "clock": db_clock}


@pytest.fixture
def house(toy: Desk) -> Desk:
    """Ada is away and Xan decides for her; Ben is away too; small things go by rule, and are looked at afterwards."""
    modes.install()
    registry.register_definitions(clock=db_clock)
    User.objects.filter(pk=toy.ada.pk).update(display_name="Ada Lind")
    desk = actions.create_group(tenant=toy.tenant, name="Refund desk", **BY)
    for user in (toy.ada, toy.ben):
        actions.add_to_group(group=desk, user=user, **BY)
    factories.make_user(toy.tenant, "xan", display_name="Xan Oduya")
    factories.make_user(toy.tenant, "adam", roles=[Role.ADMIN], display_name="Adam Okoro")
    actions_hours.set_hours(
        tenant=toy.tenant, group=None, zone="Europe/Berlin", week=[(0, 1440)] * 6 + [None], **BY
    )
    toy.till.verdict = Verdict("auto", "toy.small", "It is small.", group="Refund desk")
    for order in ("2001", "2002", "2003"):
        toy.start(workflow="toy-sampled", order=order)
        toy.advance()
        toy.work()
    toy.till.verdict = Verdict("ask_two", "toy.two", "It is big.", group="Refund desk")
    return toy


def away(of: Desk, user: User, deputy: User | None) -> None:
    now = db_clock()
    Absence.objects.create(
        tenant=of.tenant, user=user, deputy=deputy, starts_at=now - timedelta(days=1), ends_at=now + timedelta(days=6),
        zone="Europe/Berlin", created_at=now, created_by="test",
    )  # fmt: skip


def xan() -> User:
    return User.objects.get(username="xan")


def test_every_page_looks_right_everywhere(page: Page, live_server: Any, house: Desk) -> None:
    away(house, house.ada, xan())
    away(house, house.ben, None)
    proposal = house.proposed(workflow="toy-hurried", order="1042")
    house.decide(proposal, user=xan())
    escalate_due(by=clock_actor(), clock=lambda: Escalation.objects.all()[0].due_at)
    adam = User.objects.get(username="adam")
    for name, user, address, words in (
        ("away-own", house.ada, "/account/absences/", "When you are away"),
        ("away-person", adam, f"/people/{house.ada.pk}/absences/", "Ada Lind"),
        ("hours", adam, "/people/hours/", "Hours and absences"),
        ("hours-set", adam, "/people/hours/set/", "Hours of the whole organisation"),
        ("unmanned", house.ben, f"/review/{proposal.pk}/", "Pay EUR 10.00"),
        ("afterwards", house.ada, "/review/afterwards/", "Afterwards"),
        ("afterwards-one", house.ada, f"/review/afterwards/{Sample.objects.first().pk}/", "Pay EUR 10.00"),
    ):  # fmt: skip
        sign_in(page, live_server.url, user)
        page.goto(f"{live_server.url}{address}")
        expect(page.locator("h1").first).to_contain_text(words)
        look_at(page, name)
    sign_in(page, live_server.url, house.ben)
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    expect(page.locator("body")).to_contain_text("Xan Oduya for Ada Lind")
    expect(page.locator("body")).to_contain_text("Too few are there in time.")
    expect(page.locator("body")).to_contain_text("it is asked of Second line too")
    page.goto(f"{live_server.url}/review/")
    expect(page.locator(".item")).to_contain_text("Too few there in time")


def test_a_deputy_is_named_and_decides_without_a_script(
    browser: Browser, live_server: Any, house: Desk
) -> None:
    proposal: Proposal = house.proposed(order="7")
    now = db_clock()
    with without_script(browser, live_server.url, house.ada) as page:
        page.goto(f"{live_server.url}/account/")
        page.get_by_role("link", name="Absences and deputies").click()
        page.get_by_label("Away from").fill((now - timedelta(days=1)).strftime("%Y-%m-%dT09:00"))
        page.get_by_label("Until").fill((now + timedelta(days=2)).strftime("%Y-%m-%dT09:00"))
        page.get_by_label("Time zone").select_option("Europe/Berlin")
        page.get_by_label("Decides in their stead").select_option(label="Xan Oduya (xan)")
        page.get_by_role("button", name="Note it").click()
        expect(page.locator("main")).to_contain_text(
            "Xan Oduya decides in their stead, for all their groups."
        )
    with without_script(browser, live_server.url, xan()) as page:
        page.goto(f"{live_server.url}/review/{proposal.pk}/")
        expect(page.locator("body")).to_contain_text("You decide in the stead of Ada Lind.")
    assert Group.objects.filter(tenant=house.tenant).count() >= 1


def test_looking_back_without_a_script(browser: Browser, live_server: Any, house: Desk) -> None:
    with without_script(browser, live_server.url, house.ada) as page:
        page.goto(f"{live_server.url}/review/")
        page.get_by_role("link", name="Afterwards").click()
        expect(page.locator("main")).to_contain_text("3 to look at")
        page.locator("main li a").first.click()
        page.get_by_label("Wrong").check()
        page.get_by_role("button", name="Say it").click()
        expect(page.locator("main")).to_contain_text("Say why")
        page.get_by_label("Wrong").check()
        page.get_by_label("In your words").fill("The amount was not due.")
        page.get_by_role("button", name="Say it").click()
        expect(page.locator("main")).to_contain_text("2 to look at")
        expect(page.locator("main")).to_contain_text("100.0 %")
