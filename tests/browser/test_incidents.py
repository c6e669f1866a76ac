"""Incidents in a real browser: from what looks wrong to a freeze of exactly those, worked off, on desk and phone."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.enums import Role
from access.models import User
from repair.models_incidents import Incident
from tests import factories
from tests.browser.desks import look_at, scene, sign_in, without_script
from tests.repair.leading import TROUBLE, here, opened
from tests.workflows.conftest import Desk, person

pytestmark = pytest.mark.django_db
SEARCH = "/repair/incidents/new/?workflow=toy-pay"


@pytest.fixture
def operator(toy: Desk) -> User:
    return factories.make_user(toy.tenant, "omar", roles=[Role.OPERATOR], display_name="Omar T.")


def test_every_page_of_an_incident(page: Page, live_server: Any, toy: Desk, operator: User) -> None:
    scene(toy)
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/repair/incidents/")
    look_at(page, "incidents-empty")
    page.goto(f"{live_server.url}{SEARCH}")
    look_at(page, "incident-found")
    page.get_by_label("What looks wrong").fill(TROUBLE)
    page.get_by_label("What you think it is").fill("The rate was rounded twice.")
    page.get_by_role("button", name="Open the incident").click()
    expect(page.locator("h1")).to_have_text(TROUBLE)
    look_at(page, "incident")
    incident = Incident.objects.get()
    page.get_by_role("link", name="Freeze…").click()
    look_at(page, "incident-freeze")
    page.get_by_label("Why").fill("The refunds look too high.")
    page.get_by_role("button", name="Freeze now").click()
    expect(page.locator("h1")).to_contain_text("named runs")
    look_at(page, "incident-hold")
    for name in ("describe_incident", "close_incident", "incident_report"):
        page.goto(f"{live_server.url}{here(incident, name)}")
        look_at(page, f"incident-{name}")
    page.goto(f"{live_server.url}{here(incident)}")
    page.get_by_role("link", name="Compare clean and failed").click()
    look_at(page, "incident-compare")
    page.goto(f"{live_server.url}/repair/incidents/")
    look_at(page, "incidents")


def test_everything_works_without_script(
    browser: Browser, live_server: Any, toy: Desk, operator: User
) -> None:
    scene(toy)
    incident = opened(toy, person(operator))
    with without_script(browser, live_server.url, operator) as page:
        page.goto(f"{live_server.url}{here(incident)}")
        page.locator("input[name=item]").first.check()
        page.get_by_role("button", name="Mark the ticked").click()
        expect(page.get_by_role("link", name="Looked at, fine 1")).to_be_visible()
        page.get_by_label("How you know that the harm is stopped").fill("Nothing has come for an hour.")
        page.get_by_role("button", name="It is contained").click()
        expect(page.locator(".facts")).to_contain_text("Contained")
