"""Approving with a passkey in a real browser: without one, with one, when it is not let, and without script."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from approvals.models import Decision, Signature
from tests.browser.desks import look_at, sign_in, without_script
from tests.browser.shots import shoot
from tests.workflows.conftest import Desk
from tests.workflows.later import end_of
from tests.workflows.vault import Vault, open_vault, take_keys
from workflows.models import Command

pytestmark = pytest.mark.django_db


@pytest.fixture
def vault(toy: Desk) -> Vault:
    """Ada has no passkey yet."""
    opened = open_vault(toy)
    take_keys(toy.ada)
    return opened


class Device:
    """A device with room for passkeys, that recognises its person or does not."""

    def __init__(self, page: Page) -> None:
        self.steering = page.context.new_cdp_session(page)
        self.steering.send("WebAuthn.enable")
        options = {
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
            "isUserVerified": True, "automaticPresenceSimulation": True,
        }  # fmt: skip
        made = self.steering.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        self.id = made["authenticatorId"]

    def recognise(self, *, yes: bool) -> None:
        self.steering.send("WebAuthn.setUserVerified", {"authenticatorId": self.id, "isUserVerified": yes})


@pytest.fixture
def passkeys(page: Page) -> Iterator[Device]:
    made = Device(page)
    yield made
    made.steering.detach()


def add_passkey(page: Page, address: str) -> None:
    page.goto(f"{address}/account/passkeys/")
    page.fill("[name=name]", "Ada's key")
    page.get_by_role("button", name="Add the passkey").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()


def open_sheet(page: Page) -> None:
    page.locator("[popovertarget=sheet-approve] >> visible=true").click()
    expect(page.locator("#sheet-approve")).to_be_visible()


@pytest.mark.parametrize("place", ["page", "pane"])
def test_a_passkey_signs_an_approval(
    page: Page, live_server: Any, vault: Vault, passkeys: Device, place: str
) -> None:
    address = live_server.url.replace("127.0.0.1", "localhost")
    proposal = vault.proposed()
    sign_in(page, address, vault.desk.ada)
    page.goto(f"{address}/review/{proposal.pk}/")
    expect(page.locator("#decide .why")).to_contain_text(
        "Your passkey must sign this approval, and you have none."
    )
    expect(page.locator("[popovertarget=sheet-approve]")).to_have_count(0)
    look_at(page, f"signing-no-passkey-{place}")
    expect(page.locator("#decide").get_by_role("link", name="Your passkeys")).to_be_visible()
    add_passkey(page, address)
    page.goto(f"{address}/account/")
    page.locator("details.dry summary").click()
    expect(page.locator("details.dry .val")).to_contain_text(f"user:{vault.desk.ada.pk} ")
    look_at(page, f"signing-account-{place}")
    page.goto(f"{address}/review/{proposal.pk}/" if place == "page" else f"{address}/review/")
    expect(page.locator("#decide .why >> visible=true")).to_contain_text("Your passkey signs it.")
    look_at(page, f"signing-open-{place}")
    open_sheet(page)
    shoot(page, f"signing-sheet-{place}", full=False)
    page.get_by_role("button", name="Sign and send").click()
    expect(page.locator("#toasts")).to_contain_text("Approved.")
    expect(page.locator("#people")).to_contain_text("signed by passkey")
    assert Signature.objects.get().decision == Decision.objects.get()
    vault.desk.work()
    assert end_of(Command.objects.get())["command"] == "confirmed"


def test_who_does_not_let_it_sign_has_approved_nothing(
    page: Page, live_server: Any, vault: Vault, passkeys: Device
) -> None:
    address = live_server.url.replace("127.0.0.1", "localhost")
    proposal = vault.proposed()
    sign_in(page, address, vault.desk.ada)
    add_passkey(page, address)
    page.goto(f"{address}/review/{proposal.pk}/")
    passkeys.recognise(yes=False)
    open_sheet(page)
    page.get_by_role("button", name="Sign and send").click()
    expect(page.locator(".sign-error")).to_contain_text("Nothing was signed, and nothing was recorded.")
    shoot(page, "signing-not-let", full=False)
    assert not Decision.objects.exists()
    passkeys.recognise(yes=True)
    page.get_by_role("button", name="Sign and send").click()
    expect(page.locator("#toasts")).to_contain_text("Approved.")


def test_without_script_approve_is_closed_and_says_why(
    browser: Browser, live_server: Any, vault: Vault
) -> None:
    proposal = vault.proposed()
    with without_script(browser, live_server.url, vault.desk.ben) as page:
        page.goto(f"{live_server.url}/review/{proposal.pk}/")
        expect(page.locator("#decide .why >> visible=true")).to_contain_text("needs JavaScript")
        expect(page.locator(".sign-ready").first).to_be_hidden()
        expect(page.locator("#decide .sign-none[aria-disabled=true]")).to_be_visible()
        expect(page.get_by_role("button", name="Reject")).to_be_visible()
        shoot(page, "signing-without-script")
