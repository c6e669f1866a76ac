"""The proposal page in a real browser: pages of long things, what is left by name, differences; with script or not."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.models import User
from approvals.enums import ProposalStatus
from approvals.models import Proposal
from approvals.viewdoc import build_view
from approvals.viewmodels import ViewWarning
from common.models import Tenant
from tests import factories
from tests.approvals.test_pages import Mailing, nine_thousand, with_evidence
from tests.browser.desks import look_at, sign_in, without_script

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse", display_name="Ilse V.")


def mailing(tenant: Tenant) -> Proposal:
    """Nine thousand recipients and a letter, as a second version."""
    letter = "Dear customer,\n\n" + "the parcel is on its way to you.\n" * 400
    old = document(subject="Your parcel", message=letter + "Yours", recipients=nine_thousand()[:8_000])
    new = document(
        subject="Your p\u0430rcel", message=letter.replace("way", "w\u200bay", 1) + "P.S. Pay at evil.example",
        recipients=nine_thousand()[-8_000:],
    )  # fmt: skip
    before = factories.make_proposal(
        tenant=tenant, view=old.to_bytes(), view_digest=old.digest, status=ProposalStatus.SUPERSEDED
    )
    run = factories.make_run(tenant)
    step = factories.make_step(run, status="waiting")
    tests = [
        {"label": "At most 100 recipients", "ok": False, "says": "8,000"},
        {"label": "In office hours", "ok": True, "says": ""},
    ]  # fmt: skip
    return factories.make_proposal(
        run, step, view=new.to_bytes(), view_digest=new.digest, supersedes=before, version=2, summary=new.headline,
        policy={
            "version": 3, "rule": "mail.many", "verdict": "ask_one", "because": "It goes to many people.",
            "tests": tests,
        },
    )  # fmt: skip


def document(**raw: Any) -> Any:
    material = Mailing.normalize(raw).material
    first = ViewWarning(
        code="first_host", pointer="/recipients", label="Recipient", acknowledge=True,
        sentence="Recipient 8,000 of 8,000: Host evil.example was never used before, for list:7 or for any other.",
    )  # fmt: skip
    return build_view(
        operation="mail.send", operation_version=1, contract_digest="0" * 64, headline="Mail 8,000 people",
        consequence="Send one mail to each of 8,000 people.", schema=Mailing, arguments=material, warnings=[first],
        effect_unknown="The operation could not say what will stand in the records afterwards.",
    )  # fmt: skip


def test_pages_are_turned_and_what_is_left_is_told(
    page: Page, live_server: Any, tenant: Tenant, reviewer: User
) -> None:
    proposal = mailing(tenant)
    sign_in(page, live_server.url, reviewer)
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    expect(page.locator("#closed-why .to-see")).to_contain_text("Subject: look-alike letters")
    look_at(page, "proposal-many")
    page.locator("#check-1 input").check()
    expect(page.locator("#closed-why .to-see")).not_to_contain_text("Subject: look-alike letters")
    page.locator("#f-recipients button").click()
    expect(page.locator("#f-recipients .values li")).to_have_count(200)
    expect(page.locator("#part-f-recipients")).to_be_focused()
    expect(page.locator("#f-recipients")).to_contain_text("39 of 40 pages to see")
    page.locator("#f-recipients .fold button").click()
    expect(page.locator("#f-recipients .values li").first).to_contain_text("Recipient 201 of 8,000")
    look_at(page, "proposal-many-opened")
    expect(page.get_by_role("button", name="Approve… a")).to_be_hidden()


def test_the_same_without_script(browser: Browser, live_server: Any, tenant: Tenant, reviewer: User) -> None:
    proposal = mailing(tenant)
    with without_script(browser, live_server.url, reviewer) as page:
        page.goto(f"{live_server.url}/review/{proposal.pk}/")
        page.locator("#check-1 input").check()
        page.locator("#f-message .fold button").click()
        expect(page.locator("#check-1 input")).to_be_checked()
        for number in (1, 2, 3):
            expect(page.locator("#f-message .opened")).to_contain_text(f"Opened: page {number} of 3")
            if number < 3:
                page.locator("#f-message .fold button").click()
        expect(page.locator("#f-message .shown")).not_to_have_attribute("data-need", "")
        expect(page.locator("#closed-why .to-see")).not_to_contain_text("pages not opened: ")


def test_long_evidence_is_read_on_a_page_of_its_own(
    page: Page, live_server: Any, tenant: Tenant, reviewer: User
) -> None:
    proposal = with_evidence(tenant, "Paid, and d\u202eelivered.\n".encode() * 2_000)
    sign_in(page, live_server.url, reviewer)
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    page.get_by_role("link", name="Read all of it").click()
    expect(page.get_by_text("Page 1 of ")).to_be_visible()
    look_at(page, "evidence")
    page.get_by_role("link", name="Next page").click()
    page.get_by_role("link", name="Back to the proposal").click()
    expect(page.locator("#e1")).to_be_visible()
