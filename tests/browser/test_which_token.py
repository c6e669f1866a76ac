"""From a token that leaked to what it let through, and from an event to the token: in a real browser."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from access.enums import Role
from access.models import ApiToken
from audit.models import Event
from audit.sealer import seal
from common.clock import db_clock
from tests import factories
from tests.api.callers import as_json, automation, decision_body, proposal_body, signed_in, token_for
from tests.browser.desks import look_at, sign_in
from tests.browser.shots import violations
from tests.workflows.conftest import Desk

pytestmark = pytest.mark.django_db


def let_one_through(desk: Desk, caller: Any, order: str) -> dict[str, Any]:
    arguments = {"order": order, "amount": "10.00", "currency": "EUR"}
    source = {"system": "test", "event_id": order}
    made = as_json(caller.post("/proposals", proposal_body(order, source=source, arguments=arguments)), 201)
    ada = signed_in(desk.ada)
    view = as_json(ada.get(f"/proposals/{made['id']}/view"))
    as_json(ada.post(f"/proposals/{made['id']}/decisions", decision_body(view)))
    return dict(made)


def test_from_a_token_to_what_it_let_through_and_back(page: Page, live_server: Any, toy: Desk) -> None:
    leaked, other = (automation(token_for(toy.tenant, name)) for name in ("intake", "nightly"))
    made = let_one_through(toy, leaked, "1042")
    let_one_through(toy, other, "2077")
    seal(db_clock)
    token = ApiToken.objects.get(agent__name="intake")
    sign_in(page, live_server.url, factories.make_user(toy.tenant, "aude", roles=[Role.AUDITOR]))
    page.goto(f"{live_server.url}/people/tokens/")
    look_at(page, "which-tokens")
    page.get_by_role("link", name=f"Let through by {token.prefix}").click()
    expect(page.locator("h1")).to_have_text("What was let through")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody")).to_contain_text(f"api:intake, with the token {token.prefix}…")
    expect(page.locator("a.token")).to_contain_text(f"token {token.prefix}… of api:intake")
    look_at(page, "which-let-through")
    page.get_by_role("link", name="Everything that came through it").click()
    expect(page.locator("tbody").first).to_contain_text(f"{token.prefix}…")
    look_at(page, "which-history")
    event = Event.objects.get(kind="proposal.made", subject_id=made["id"])
    page.goto(f"{live_server.url}/history/{event.pk}/")
    expect(page.locator("main dl.kv")).to_contain_text(f"token {token.prefix}… of api:intake")
    look_at(page, "which-event")
    page.get_by_role("link", name="What it let through").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.goto(f"{live_server.url}/history/runs/{made['run_id']}/")
    expect(page.locator("main")).to_contain_text(f"with the token {token.prefix}…")
    assert violations(page) == []
    look_at(page, "which-story")
