"""The pages of people in a real browser: with a script and without, on a desk and on a phone, in the dark."""

from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access import actions, actions_people, actions_posture
from access.enums import DutyKind, Role, Scope
from access.models import Agent, User
from common.clock import db_clock
from tests import factories
from tests.access.people import INSTALLER
from tests.browser.desks import look_at, sign_in, without_script
from tests.browser.shots import sideways, violations
from tests.workflows.conftest import Desk

pytestmark = pytest.mark.django_db
BY: dict[str, Any] = {"by": INSTALLER, "clock": db_clock}


@pytest.fixture
def admin(toy: Desk) -> User:
    """A full house: people in each role, groups, automations with tokens in every state."""
    group = factories.make_group(toy.tenant, "Refund desk")
    factories.make_group(toy.tenant, "Finance")
    actions.add_to_group(group=group, user=toy.ada, **BY)
    adam = factories.make_user(toy.tenant, "adam", roles=[Role.ADMIN], display_name="Adam Okoro")
    factories.make_user(toy.tenant, "anna", roles=[Role.AUDITOR], display_name="Anna Berg")
    gone = factories.make_user(toy.tenant, "gus", roles=[Role.OPERATOR], display_name="Gus a\u202egone <b>")
    actions.deactivate_membership(tenant=toy.tenant, user=gone, **BY)
    second = factories.make_user(toy.tenant, "ada-admin", roles=[Role.ADMIN], display_name="Ada, as admin")
    actions_people.link_accounts(tenant=toy.tenant, user=toy.ada, other=second, **BY)
    actions_people.give_duty(
        tenant=toy.tenant,
        user=toy.ada,
        kind=DutyKind.POLICY_EDITOR,
        workflow="toy-pay",
        policy_version=7,
        **BY,
    )
    agent = actions.create_agent(
        tenant=toy.tenant, name="intake", acts_for=toy.ada, workflows=["toy-pay"], operations=[], **BY
    )
    for life in (timedelta(days=3), timedelta(days=90)):
        actions.issue_token(agent=agent, scopes=[Scope.RUNS_READ, Scope.RUNS_WRITE], life=life, **BY)
    _, revoked = actions.issue_token(agent=agent, scopes=[], life=timedelta(days=9), **BY)
    actions.revoke_token(token=revoked, **BY)
    actions.create_agent(tenant=toy.tenant, name="mailer", acts_for_system="helpdesk", **BY)
    return adam


def test_every_page_looks_right_everywhere(page: Page, live_server: Any, toy: Desk, admin: User) -> None:
    sign_in(page, live_server.url, admin)
    intake = Agent.objects.get(name="intake")
    actions_posture.turn_on(
        tenant=toy.tenant,
        reason="Nobody else is here in August.",
        ends_at=db_clock() + timedelta(days=3),
        **BY,
    )
    for name, address in (
        ("people", ""), ("people-person", f"{toy.ada.pk}/"), ("people-new", "new/"), ("people-groups", "groups/"),
        ("people-automations", "automations/"), ("people-automation", f"automations/{intake.pk}/"),
        ("people-tokens", "tokens/"), ("people-organisation", "organisation/"),
        ("people-deactivate", f"{toy.ada.pk}/deactivate/"),
    ):  # fmt: skip
        page.goto(f"{live_server.url}/people/{address}")
        expect(page.locator("h1")).to_be_visible()
        expect(page.get_by_role("complementary", name="Break-glass")).to_contain_text(
            "may decide on their own"
        )
        look_at(page, name)


def test_an_admin_adds_a_person_who_then_signs_in(page: Page, live_server: Any, admin: User) -> None:
    sign_in(page, live_server.url, admin)
    page.goto(f"{live_server.url}/review/")
    page.get_by_role("link", name="People").click()
    page.get_by_role("link", name="Add a person").click()
    page.get_by_label("Sign-in name").fill("noor")
    page.get_by_label("Name:", exact=True).fill("Noor Haddad")
    page.get_by_label("Reviewer", exact=False).check()
    page.get_by_label("Refund desk").check()
    page.get_by_role("button", name="Add them").click()
    expect(page.locator("h1")).to_have_text("Noor Haddad can sign in")
    password = page.get_by_label("First password of noor").input_value()
    assert (violations(page), sideways(page)) == ([], 0)
    page.get_by_role("link", name="To their page").click()
    expect(page.locator("h1")).to_have_text("Noor Haddad")
    assert password not in page.content()

    page.context.clear_cookies()
    page.goto(f"{live_server.url}/sign-in/")
    page.locator("#id_username").fill("noor")
    page.locator("#id_password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.locator("nav.nav")).to_contain_text("Review")
    expect(page.get_by_role("link", name="People")).to_have_count(0)


def test_tokens_without_a_script(browser: Browser, live_server: Any, admin: User) -> None:
    mailer = Agent.objects.get(name="mailer")
    with without_script(browser, live_server.url, admin) as page:
        page.goto(f"{live_server.url}/people/automations/{mailer.pk}/")
        page.get_by_label("runs:read", exact=False).check()
        page.get_by_role("button", name="Issue it").click()
        first = page.get_by_label("Token").input_value()
        page.get_by_role("link", name="To the automation").click()
        page.get_by_role("link", name="Rotate").click()
        page.get_by_role("button", name="Make the new token").click()
        assert page.get_by_label("Token").input_value() != first
        page.get_by_role("link", name="To the automation").click()
        page.get_by_role("link", name="Revoke").last.click()
        page.get_by_label("Why").fill("Found in a chat.")
        page.get_by_role("button", name="Revoke").click()
        expect(page.locator("table")).to_contain_text("Revoked")


def test_break_glass_is_asked_twice_and_told_on_every_page(page: Page, live_server: Any, admin: User) -> None:
    sign_in(page, live_server.url, admin)
    page.goto(f"{live_server.url}/people/organisation/")
    page.get_by_label("Why one person must do").fill("I am alone in August.")
    page.get_by_label("Until the end of").fill((db_clock() + timedelta(days=5)).strftime("%Y-%m-%d"))
    page.get_by_role("button", name="Switch it on").click()
    expect(page.locator("h1")).to_contain_text("Let one person decide on their own proposals until")
    expect(page.get_by_role("complementary", name="Break-glass")).to_have_count(0)
    page.get_by_role("button", name="Switch it on").click()
    for address in ("/review/", "/runs/", "/repair/", "/history/", "/people/", "/account/"):
        page.goto(f"{live_server.url}{address}")
        expect(page.get_by_role("complementary", name="Break-glass")).to_contain_text(
            "Every decision says so."
        )
    page.get_by_role("link", name="Why, and switch it off").click()
    page.get_by_role("button", name="Switch it off now").click()
    expect(page.get_by_role("complementary", name="Break-glass")).to_have_count(0)
    expect(page.get_by_text("I am alone in August.")).to_be_visible()
