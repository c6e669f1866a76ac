"""Signing in in a real browser: with a code, with a passkey from a virtual authenticator, under our own policy."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.models import User
from tests import factories
from tests.access.keys import add_app, add_codes, age_of_browser, code, factors_of, happened
from tests.browser.desks import look_at

pytestmark = pytest.mark.django_db


@pytest.fixture
def ilse() -> User:
    return factories.make_user(
        factories.make_tenant("harbour"), "ilse", display_name="Ilse V.", email="ilse@example.org"
    )


@pytest.fixture
def watched(page: Page) -> Iterator[Page]:
    """A page whose console holds no error at the end: what the policy forbids would be one."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    yield page
    assert [error for error in errors if "status of 4" not in error] == []


def add_authenticator(page: Page, *, verifies: bool = True) -> Any:
    """A device with room for passkeys, whose person says yes; the session by which it is steered."""
    steering = page.context.new_cdp_session(page)
    steering.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": verifies, "automaticPresenceSimulation": True,
    }  # fmt: skip
    steering.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return steering


def sign_in(page: Page, address: str, user: User) -> None:
    page.goto(f"{address}/sign-in/")
    page.fill("[name=username]", user.username)
    page.fill("[name=password]", factories.PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_an_app_is_added_and_its_code_asked_for(watched: Page, live_server: Any, ilse: User) -> None:
    page = watched
    sign_in(page, live_server.url, ilse)
    page.wait_for_url("**/review/")
    page.goto(f"{live_server.url}/account/")
    look_at(page, "account")
    page.get_by_role("link", name="Add an app").click()
    expect(page.locator(".qr svg path")).to_be_visible()
    look_at(page, "account-app")
    secret = page.locator("code.spelled").inner_text().replace(" ", "")
    page.fill("[name=code]", "000000")
    page.get_by_role("button", name="Add the app").click()
    expect(page.locator(".error")).to_be_visible()
    page.fill("[name=code]", code(secret, -1))
    page.get_by_role("button", name="Add the app").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    look_at(page, "account-codes")
    page.goto(f"{live_server.url}/account/sessions/")
    look_at(page, "account-sessions")
    page.goto(f"{live_server.url}/account/password/")
    look_at(page, "account-password")
    page.locator(".me").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in/")
    sign_in(page, live_server.url, ilse)
    page.wait_for_url("**/sign-in/code/")
    look_at(page, "sign-in-code")
    page.fill("[name=code]", code(secret))
    page.get_by_role("button", name="Go on").click()
    page.wait_for_url("**/review/")


def test_a_passkey_is_added_signs_in_and_confirms(watched: Page, live_server: Any, ilse: User) -> None:
    page, address = watched, live_server.url.replace("127.0.0.1", "localhost")
    steering = add_authenticator(page)
    page.goto(f"{address}/sign-in/")
    look_at(page, "sign-in")
    sign_in(page, address, ilse)
    page.wait_for_url("**/review/")
    page.goto(f"{address}/account/passkeys/")
    look_at(page, "account-passkey")
    page.fill("[name=name]", "Ilse’s phone")
    page.get_by_role("button", name="Add the passkey").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    assert factors_of(ilse) == ["recovery_codes", "webauthn"]
    page.goto(f"{address}/account/")
    expect(page.locator("#a-passkeys + p + ul")).to_contain_text("Ilse’s phone")
    look_at(page, "account-with-passkey")
    page.context.clear_cookies()

    page.goto(f"{address}/sign-in/?next=/runs/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{address}/runs/")
    assert happened("user.signed_in")[-1].body == {"methods": ["webauthn"]}

    proposal = factories.make_proposal(tenant=ilse.memberships.get().tenant, risk=3)
    age_of_browser(page, 3600)
    page.goto(f"{address}/review/{proposal.pk}/")
    for box in page.locator("input[name=acknowledged]").all():
        box.check()
    page.locator("[popovertarget=sheet-approve] >> visible=true").click()
    page.locator("#sheet-approve [value=approve]").click()
    expect(page.locator(".refusal")).to_contain_text("reauth_required")
    look_at(page, "step-up-refused")
    page.get_by_role("link", name="Confirm that it is you").click()
    page.wait_for_url("**/account/confirm/passkey/**")
    look_at(page, "step-up-passkey")
    page.get_by_role("button", name="Use your passkey").click()
    page.wait_for_url(f"**/review/{proposal.pk}/")
    for box in page.locator("input[name=acknowledged]").all():
        box.check()
    page.locator("[popovertarget=sheet-approve] >> visible=true").click()
    page.locator("#sheet-approve [value=approve]").click()
    expect(page.locator("#toasts")).to_contain_text("Approved.")
    assert happened("user.reauthenticated")[-1].digest == proposal.digest
    steering.detach()


def test_a_device_that_checks_nobody_makes_no_passkey(page: Page, live_server: Any, ilse: User) -> None:
    address = live_server.url.replace("127.0.0.1", "localhost")
    steering = add_authenticator(page, verifies=False)
    sign_in(page, address, ilse)
    page.wait_for_url("**/review/")
    page.goto(f"{address}/account/passkeys/")
    page.get_by_role("button", name="Add the passkey").click()
    expect(page.locator(".passkey-error")).to_be_visible()
    assert factors_of(ilse) == []
    steering.detach()


def test_without_script_codes_do_and_passkeys_are_not_shown(
    browser: Browser, live_server: Any, ilse: User
) -> None:
    secret = add_app(ilse)
    add_codes(ilse)
    page = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844}).new_page()
    page.goto(f"{live_server.url}/sign-in/")
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()
    sign_in(page, live_server.url, ilse)
    page.fill("[name=code]", code(secret))
    page.get_by_role("button", name="Go on").click()
    page.wait_for_url("**/review/")
    page.goto(f"{live_server.url}/account/passkeys/")
    expect(page.get_by_text("Passkeys need JavaScript.")).to_be_visible()
    page.context.close()
