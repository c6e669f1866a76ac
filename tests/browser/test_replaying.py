"""Replaying a run in a real browser: the form, both runs' pages, and two runs beside each other."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.desks import look_at, sign_in, without_script
from tests.repair.replaying import advance, dry, operator_of, paid, through
from tests.workflows.conftest import Desk
from workflows.authoring import Propose
from workflows.models import Run

pytestmark = pytest.mark.django_db


def test_a_run_is_replayed_and_compared(page: Page, live_server: Any, toy: Desk) -> None:
    original = paid(toy)
    sign_in(page, live_server.url, operator_of(toy))
    page.goto(f"{live_server.url}/runs/{original.pk}/")
    page.get_by_role("link", name="Replay this run").click()
    expect(page.get_by_text("nothing is proposed").first).to_be_visible()
    look_at(page, "replay-form")
    page.get_by_label("What becomes of effects").select_option("propose")
    page.get_by_role("button", name="Look what it would do").click()
    expect(page.get_by_role("alert")).to_contain_text("None of its effects may be proposed anew.")
    look_at(page, "replay-refused")
    page.get_by_label("What becomes of effects").select_option("dry")
    page.get_by_label("Why").fill("to see whether the new rule says the same")
    arguments = {"order": "1042", "amount": "12.00", "currency": "EUR"}
    toy.till.stages["pay"] = Propose("toy.pay", arguments, "the rule has changed")
    page.get_by_role("button", name="Replay it").click()
    made = Run.objects.get(kind="replay")
    expect(page).to_have_url(re.compile(f"/runs/{made.pk}/$"))
    advance()
    expect(page.get_by_text("Replayed").first).to_be_visible()
    page.reload()
    look_at(page, "replay-run")
    page.get_by_role("link", name="Compare it with the original").click()
    expect(page.get_by_text("They part here first:")).to_be_visible()
    look_at(page, "replay-compare")
    page.goto(f"{live_server.url}/runs/{original.pk}/")
    expect(page.get_by_role("link", name=str(made.pk)[:8]).first).to_be_visible()
    look_at(page, "replay-original")


def test_it_works_without_script(browser: Any, live_server: Any, toy: Desk) -> None:
    original = paid(toy)
    through(toy, original, dry())
    with without_script(browser, live_server.url, operator_of(toy)) as page:
        page.goto(f"{live_server.url}/repair/run/{original.pk}/replay/")
        page.get_by_label("Why").fill("to see it")
        page.get_by_role("button", name="Replay it").click()
        expect(page).to_have_url(re.compile("/runs/"))
        expect(page.get_by_text("Replay of").first).to_be_visible()
