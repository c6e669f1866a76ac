"""Taking an effect back in a real browser: from the page of a run, and what that page shows afterwards."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.enums import Role
from access.models import User
from approvals.models import Proposal
from tests import factories
from tests.browser.desks import look_at, sign_in, without_script
from tests.repair.choosing import packet_of
from tests.workflows.conftest import Desk
from tests.workflows.toy_back import FLOW, installed
from workflows.authoring import ToPerson

pytestmark = pytest.mark.django_db


@pytest.fixture
def back(toy: Desk) -> Iterator[Desk]:
    with installed(toy):
        yield toy


@pytest.fixture
def operator(back: Desk) -> User:
    return factories.make_user(back.tenant, "omar", roles=[Role.OPERATOR], display_name="Omar T.")


def test_from_the_page_of_a_run_to_its_correction(
    page: Page, live_server: Any, back: Desk, operator: User
) -> None:
    command = back.approved(workflow=FLOW)
    back.work()
    back.advance()
    sign_in(page, live_server.url, operator)
    page.goto(f"{live_server.url}/runs/{command.run_id}/")
    page.get_by_role("link", name="Take it back").click()
    look_at(page, "undo-plan")
    page.get_by_label("Why").fill("It was too much.")
    page.get_by_role("button", name="Look what it would do").click()
    expect(page.get_by_text("1 person must approve")).to_be_visible()
    look_at(page, "undo-look")
    page.get_by_role("button", name="Propose to take it back").click()
    expect(page.get_by_text("waits for somebody else's decision")).to_be_visible()
    expect(page.get_by_text("undo_under_way")).to_be_visible()
    proposal = Proposal.objects.get(operation="toy.take_back")
    back.decide(proposal)
    back.work()
    page.goto(f"{live_server.url}/runs/{command.run_id}/")
    expect(page.get_by_role("link", name="Compensation: Pay, taken back")).to_be_visible()
    look_at(page, "undo-first-run")
    page.get_by_role("link", name="Compensation: Pay, taken back").click()
    expect(page.get_by_text("Takes back what was done in")).to_be_visible()
    look_at(page, "undo-run")


def test_from_a_packet_without_script(browser: Browser, live_server: Any, back: Desk, operator: User) -> None:
    back.till.stages["tell"] = ToPerson("odd")
    command = back.approved(workflow=FLOW)
    back.work()
    back.advance()
    packet = packet_of(command.run_id)
    with without_script(browser, live_server.url, operator) as page:
        page.goto(f"{live_server.url}/repair/{packet.pk}/")
        page.get_by_role("link", name="Take it back").click()
        page.get_by_label("Why").fill("It was too much.")
        page.get_by_role("button", name="Look what it would do").click()
        expect(page.get_by_text("1 person must approve")).to_be_visible()
        page.get_by_role("button", name="Propose to take it back").click()
        expect(page.get_by_text("waits for somebody else's decision").first).to_be_visible()
        expect(page.get_by_text("Compensation (Pay, taken back) was proposed")).to_be_visible()
