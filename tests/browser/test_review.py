"""The review desk in a real browser: mouse, keyboard, phone, dark, without script; and nothing that axe objects to."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.models import User
from approvals.enums import ProposalStatus
from approvals.models import Decision, Proposal
from common.models import Tenant
from tests import factories, rows
from tests.approvals.desk_rows import make_full
from tests.browser.shots import PHONE, shoot, sideways, violations
from workflows.enums import CommandStatus
from workflows.models import Command

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse", display_name="Ilse V.")


@pytest.fixture
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_context_args, "timezone_id": "Europe/Berlin"}


@pytest.fixture
def desk(page: Page, live_server: Any, reviewer: User) -> Iterator[Callable[[str], Page]]:
    """Sign in and open a path of the desk. Afterwards the console holds no error but refusals that were meant."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda line: errors.append(f"{line.text} at {line.location}") if line.type == "error" else None,
    )
    sign_in(page, live_server.url, reviewer)

    def opened(path: str) -> Page:
        page.goto(f"{live_server.url}{path}")
        return page

    yield opened
    assert [error for error in errors if "status of 4" not in error] == []


def sign_in(page: Page, address: str, user: User) -> None:
    page.goto(f"{address}/sign-in/")
    page.fill("[name=username]", user.username)
    page.fill("[name=password]", factories.PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_url("**/review/")


def tick_all(page: Page) -> None:
    for box in page.locator("input[name=acknowledged]").all():
        box.check()


def press(page: Page, key: str) -> None:
    """Press a single key with no field in focus."""
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(key)


def status_of(proposal: Proposal) -> str:
    return Proposal.objects.values_list("status", flat=True).get(pk=proposal.pk)


def test_the_queue_and_its_pane(desk: Callable[[str], Page], tenant: Tenant) -> None:
    for minutes in (20, 50, 300, 3000):
        until = rows.now() + timedelta(minutes=minutes)
        factories.make_proposal(tenant=tenant, summary=f"Refund in {minutes}", decide_by=until)
    page = desk("/review/")
    # The first opens by itself where there is room.
    expect(page.locator("#pane #say")).to_be_visible()
    expect(page.locator(".item > a[aria-current]")).to_have_text("Refund in 20")
    assert violations(page) == []
    press(page, "j")
    page.keyboard.press("Enter")
    expect(page.locator(".item > a[aria-current]")).to_have_text("Refund in 50")
    assert "/review/01" in page.url
    shoot(page, "queue", full=False)
    page.go_back()
    expect(page.locator("#queue")).to_be_visible()


def test_reading_and_approving_by_keyboard_alone(desk: Callable[[str], Page], tenant: Tenant) -> None:
    proposal = make_full(tenant, needed=2)
    page = desk(f"/review/{proposal.pk}/")
    expect(page.locator(".left-n")).to_be_visible()
    shoot(page, "proposal")
    assert violations(page) == []
    for _ in range(3):  # a closed Approve leads to the next thing to look at
        press(page, "a")
        page.keyboard.press("Space")
    press(page, "a")
    page.keyboard.press("Enter")
    expect(page.locator(".htmx-added")).to_have_count(0)
    expect(page.locator(".shown:has(.opened)")).to_be_focused()
    page.wait_for_load_state("networkidle")  # what opening the part still swaps in comes before the next key
    press(page, "a")
    expect(page.locator("#sheet-approve")).to_be_visible()
    # Where care is due, the focus starts on the way back. Axe looks at the page after that, and may move it.
    back = page.locator("#sheet-approve .row button").first
    expect(back).to_be_focused()
    assert violations(page) == []
    back.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("Your approval is recorded.")
    expect(page.locator("#facts")).to_contain_text("1 of 2 given")
    expect(page.locator("#people")).to_contain_text("You, Ilse V.")
    assert violations(page) == []
    assert Decision.objects.get().kind == "approve"


@pytest.mark.parametrize("script", [True, False])
def test_enter_in_a_field_decides_nothing(
    browser: Browser, live_server: Any, tenant: Tenant, reviewer: User, script: bool
) -> None:
    """Without a button that names no decision, Enter on a reason for *no* would press *Approve*."""
    proposal = factories.make_proposal(tenant=tenant)
    page = browser.new_context(java_script_enabled=script).new_page()
    sign_in(page, live_server.url, reviewer)
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    page.click("[popovertarget=sheet-reject] >> visible=true")
    page.locator("#sheet-reject [value=wrong_target]").check()
    page.keyboard.press("Enter")
    if script:
        page.wait_for_timeout(300)
        expect(page.locator("#sheet-reject")).to_be_visible()
    else:
        expect(page.locator(".refusal")).to_contain_text("choose what you decide")
        expect(page.locator("[value=wrong_target]")).to_be_checked()
    assert status_of(proposal) == ProposalStatus.PENDING
    page.context.close()


def test_a_refusal_keeps_what_was_typed_and_ticked(desk: Callable[[str], Page], tenant: Tenant) -> None:
    proposal = make_full(tenant)
    page = desk(f"/review/{proposal.pk}/")
    tick_all(page)
    press(page, "r")
    page.click("#sheet-reject [value=reject]")
    expect(page.locator(".refusal")).to_contain_text("Not recorded: a reason is needed.")
    assert page.locator("input[name=acknowledged]:checked").count() == 3
    assert violations(page) == []
    shoot(page, "refused", full=False)
    # There is a way back, which keeps the ticks, and the bar keeps its Reject all the while.
    page.click("#sheet-reject >> text=Go back")
    expect(page.locator("#sheet-reject")).not_to_be_visible()
    assert page.locator("input[name=acknowledged]:checked").count() == 3
    press(page, "r")
    page.click("#sheet-reject [value=reject]")
    expect(page.locator(".refusal")).to_be_visible()
    page.fill("#reject-reason", "The account is new.")
    page.click("#decide .acts [value=reject]")
    expect(page.locator("#facts")).to_contain_text("Rejected")
    expect(page.locator("#result")).to_contain_text("Ilse V. rejected this version.")
    assert status_of(proposal) == ProposalStatus.REJECTED


def test_the_result_is_followed_on_the_same_page(desk: Callable[[str], Page], tenant: Tenant) -> None:
    command = factories.make_command(tenant=tenant)
    page = desk(f"/review/{command.proposal_id}/")
    expect(page.locator("#progress")).to_contain_text("waits for a worker")
    factories.make_attempt(factories.bring(command, CommandStatus.SENT), status="sent")
    expect(page.locator("#progress")).to_contain_text("waits for the provider's answer")
    assert violations(page) == []
    shoot(page, "on-its-way", full=False)
    command = Command.objects.get(pk=command.pk)
    rows.moved(command, "confirm", rows.now())
    command.save()
    expect(page.locator("#progress")).to_contain_text("Done once.")
    # The final fragment asks no more.
    expect(page.locator("#progress[hx-get]")).to_have_count(0)
    shoot(page, "done", full=False)


def test_after_an_approval_the_page_goes_on_by_itself(desk: Callable[[str], Page], tenant: Tenant) -> None:
    proposal = make_full(tenant)
    page = desk(f"/review/{proposal.pk}/")
    page.click(".fold button")
    tick_all(page)
    press(page, "a")
    page.click("#sheet-approve [value=approve]")
    expect(page.locator("#progress")).to_contain_text("waits for a worker")
    expect(page.locator("#stamp")).to_contain_text("Ilse V.")
    expect(page.locator("#slip-title")).to_have_text("What was shown")
    expect(page.locator("#checks")).not_to_be_visible()
    assert violations(page) == []
    shoot(page, "approved")
    command = factories.bring(Command.objects.get(), CommandStatus.SENT)
    expect(page.locator("#progress")).to_contain_text("waits for the provider's answer")
    proposal.refresh_from_db()
    for row, move in ((proposal, "consume"), (command, "confirm")):
        rows.moved(row, move, rows.now())
        row.save()
    expect(page.locator("#progress")).to_contain_text("Done once.")
    expect(page.locator("#facts")).to_contain_text("Approval used")


def test_an_outcome_that_is_not_known_is_called_unknown(desk: Callable[[str], Page], tenant: Tenant) -> None:
    command = factories.make_command(tenant=tenant, status=CommandStatus.UNKNOWN)
    page = desk(f"/review/{command.proposal_id}/")
    expect(page.locator("#progress")).to_contain_text("nobody knows yet whether it happened")
    expect(page.locator("#progress .badge")).to_have_attribute("data-tone", "unknown")
    assert violations(page) == []
    shoot(page, "unknown", full=False)


def test_time_runs_out_on_the_open_page(desk: Callable[[str], Page], tenant: Tenant) -> None:
    until = rows.now() + timedelta(seconds=8)
    proposal = factories.make_proposal(tenant=tenant, decide_by=until)
    page = desk(f"/review/{proposal.pk}/")
    expect(page.locator(".acts [popovertarget=sheet-approve]")).to_be_visible()
    # The bar asks the server what it means that the time is over; nothing but the server's answer is shown.
    expect(page.locator("#facts")).to_contain_text("Expired", timeout=30_000)
    expect(page.locator("#decide")).to_contain_text("Nobody approved it.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_all_without_scrolling_sideways(
    desk: Callable[[str], Page], tenant: Tenant, page: Page, scheme: Any
) -> None:
    proposal = make_full(tenant)
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.emulate_media(color_scheme=scheme)
    for path in ("/review/", f"/review/{proposal.pk}/"):
        desk(path)
        assert sideways(page) == 0
        assert violations(page) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert sideways(page) == 0
    expect(page.locator(".acts .btn.danger")).to_be_in_viewport()


@pytest.mark.parametrize("width", [390, 1001, 1023, 1024])
def test_a_row_opens_its_proposal_at_every_width(
    desk: Callable[[str], Page], tenant: Tenant, page: Page, width: int
) -> None:
    """Without room for the pane a row leads to the proposal's own page, and Back to the queue."""
    proposal = factories.make_proposal(tenant=tenant, summary="Refund of order 42")
    page.set_viewport_size({"width": width, "height": 800})
    desk("/review/")
    page.locator(f"#row-{proposal.pk} > a").click()
    page.wait_for_url(f"**/review/{proposal.pk}/")
    expect(page.locator("#say")).to_be_visible()
    assert (page.locator("#pane").count() == 1) is (width >= 1024)
    page.go_back()
    expect(page.locator(f"#row-{proposal.pk}")).to_be_visible()
    page.locator(f"#row-{proposal.pk} > a").click()
    expect(page.locator("#say")).to_be_focused() if width >= 1024 else page.wait_for_url("**/01*/")
    page.click("[popovertarget=sheet-reject] >> visible=true")
    page.fill("#reject-reason", "The account is new.")
    page.click("#sheet-reject [value=reject]")
    expect(page.locator("#result")).to_contain_text("Ilse V. rejected this version.")
    assert status_of(proposal) == ProposalStatus.REJECTED


def test_the_focus_follows_the_keys(desk: Callable[[str], Page], tenant: Tenant) -> None:
    """Into the first field of a sheet, and after the decision to what it led to."""
    proposal = factories.make_proposal(tenant=tenant)
    page = desk(f"/review/{proposal.pk}/")
    press(page, "c")
    expect(page.locator("#changes-reason")).to_be_focused()
    page.keyboard.press("Escape")
    press(page, "r")
    expect(page.locator("#sheet-reject [name=reason_code]").first).to_be_focused()
    page.keyboard.press("Escape")
    press(page, "a")
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_be_focused()
    expect(page.locator("#result #progress")).to_be_in_viewport()
    page.wait_for_timeout(1500)  # the fragment inside has been swapped by then
    expect(page.locator("#result")).to_be_focused()


def test_j_opens_the_next_one_when_the_pane_shows_a_decided_one(
    desk: Callable[[str], Page], tenant: Tenant
) -> None:
    for minutes in (20, 50):
        until = rows.now() + timedelta(minutes=minutes)
        factories.make_proposal(tenant=tenant, summary=f"Refund in {minutes}", decide_by=until)
    page = desk("/review/")
    page.locator(".item > a").first.click()
    expect(page.locator("#say")).to_be_focused()
    press(page, "r")
    page.fill("#reject-reason", "No.")
    page.click("#sheet-reject [value=reject]")
    expect(page.locator("#result")).to_be_focused()
    expect(page.locator("#decide .acts kbd")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator(".item > a[aria-current]")).to_have_text("Refund in 50")
    expect(page.locator("#decide .acts .btn.primary >> visible=true")).to_be_visible()


def test_all_of_it_without_script(browser: Browser, live_server: Any, tenant: Tenant, reviewer: User) -> None:
    proposal = make_full(tenant)
    page = browser.new_context(java_script_enabled=False).new_page()
    sign_in(page, live_server.url, reviewer)
    assert page.locator("kbd >> visible=true").count() == 0
    page.locator(f"#row-{proposal.pk} > a").click()
    assert page.locator("kbd >> visible=true").count() == 0
    page.locator("input[name=acknowledged]").first.check()
    page.click(".fold button")
    expect(page.locator(".opened")).to_be_visible()
    assert page.locator("input[name=acknowledged]:checked").count() == 1
    tick_all(page)
    page.click("[popovertarget=sheet-approve] >> visible=true")
    page.click("#sheet-approve [value=approve]")
    expect(page.locator("#facts")).to_contain_text("Approved")
    assert status_of(proposal) == ProposalStatus.APPROVED
    page.context.close()


def test_single_keys_can_be_turned_off(desk: Callable[[str], Page], tenant: Tenant) -> None:
    page = desk(f"/review/{factories.make_proposal(tenant=tenant).pk}/")
    press(page, "?")
    page.click("#keys-switch")
    expect(page.locator("#keys-switch")).to_have_text("Single keys are off")
    page.keyboard.press("Escape")
    press(page, "r")
    expect(page.locator("#sheet-reject")).not_to_be_visible()


def test_signed_out_meanwhile_leads_to_sign_in_and_back(
    page: Page, live_server: Any, tenant: Tenant, reviewer: User
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    sign_in(page, live_server.url, reviewer)
    page.route("**/pulse/**", lambda route: route.abort())  # faster than the page notices by itself
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    page.context.clear_cookies()
    press(page, "a")
    page.click("#sheet-approve [value=approve]")
    page.wait_for_url(f"**/sign-in/?next=/review/{proposal.pk}/")
    assert status_of(proposal) == ProposalStatus.PENDING


def test_signed_out_while_writing_keeps_the_words(
    page: Page, live_server: Any, tenant: Tenant, reviewer: User
) -> None:
    """The page notices by itself, and throws nothing away for it; without words it leads to sign-in."""
    proposal = factories.make_proposal(tenant=tenant)
    sign_in(page, live_server.url, reviewer)
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    press(page, "r")
    page.fill("#sheet-reject textarea", "The parcel arrived after all.")
    page.context.clear_cookies()
    expect(page.locator("#toasts")).to_contain_text("What you wrote is still here")
    expect(page.locator("#sheet-reject textarea")).to_have_value("The parcel arrived after all.")
    page.fill("#sheet-reject textarea", "")
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    page.wait_for_url(f"**/sign-in/?next=/review/{proposal.pk}/")


def test_no_answer_is_not_taken_for_a_decision(
    page: Page, live_server: Any, tenant: Tenant, reviewer: User
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    sign_in(page, live_server.url, reviewer)
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    page.route("**/decide/", lambda route: route.abort())
    press(page, "a")
    page.click("#sheet-approve [value=approve]")
    expect(page.locator("#toasts")).to_contain_text("Reload the page to see what was recorded.")
    expect(page.locator("#facts")).to_contain_text("Waiting for approval")
