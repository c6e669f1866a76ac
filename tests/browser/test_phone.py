"""The desk under a thumb: what matters first, the bar over nothing, targets that are hit, and zoomed text."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.models import User
from common.models import Tenant
from tests import factories
from tests.approvals.desk_rows import make_full
from tests.browser.desks import sign_in
from tests.browser.shots import sideways, take, violations

pytestmark = pytest.mark.django_db
SMALLEST = 44
# Whatever can be pressed, as large as its label; links in running text are as large as their words (WCAG 2.5.8).
_TARGETS = """() => [...document.querySelectorAll(
  "button, a.btn, summary, select, textarea, input:not([type=hidden]), .tabs a, .nav a, .item")]
  .filter((one) => one.getClientRects().length)
  .filter((one) => !one.closest("[popover]:not(:popover-open), details:not([open]) > :not(summary)"))
  .map((one) => one.matches("input") ? one.closest("label") ?? one : one)
  .map((one) => ({ height: one.getBoundingClientRect().height, html: one.outerHTML.slice(0, 120) }))
  .filter(({ height }) => height && height < 43.5)"""
_COVERED = """() => {
  const box = document.activeElement.getBoundingClientRect();
  const bar = document.querySelector(".decide").getBoundingClientRect();
  const top = document.querySelector(".bar").getBoundingClientRect().bottom;
  const inside = document.activeElement.closest(".decide, .bar, .skip");
  return !inside && box.height < bar.top - top && (box.bottom > bar.top + 1 || box.top < top - 1)
    ? document.activeElement.outerHTML.slice(0, 120) : "";
}"""
# WCAG 1.4.12: lines, paragraphs, letters and words further apart.
_SPACED = """*{line-height:1.5!important;letter-spacing:.12em!important;word-spacing:.16em!important}
p{margin-block-end:2em!important}"""


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse", display_name="Ilse V.")


@pytest.fixture
def phone(browser: Browser, live_server: Any, reviewer: User) -> Iterator[Callable[..., Page]]:
    """Opens a path on a touch screen of a width."""
    contexts = []

    def opened(path: str, width: int = 390, height: int = 844, **more: Any) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            has_touch=True,
            is_mobile=True,
            base_url=live_server.url,
            **more,
        )
        contexts.append(context)
        page = context.new_page()
        sign_in(page, live_server.url, reviewer)
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()


def test_what_matters_stands_before_the_thumb(phone: Callable[..., Page], tenant: Tenant) -> None:
    proposal = make_full(tenant)
    page = phone(f"/review/{proposal.pk}/")
    for what in (
        "#say",
        ".because",
        "#facts .countdown",
        ".decide .acts .danger",
        ".decide .acts .primary >> visible=true",
    ):
        expect(page.locator(what).first).to_be_in_viewport()
    approve, reject = (
        page.locator(f".decide .acts {name} >> visible=true").bounding_box()
        for name in (".primary", ".danger")
    )
    assert approve
    assert reject
    # Approving is never easier than rejecting: as wide, as high, in one row.
    assert abs(approve["width"] - reject["width"]) < 2
    assert (approve["y"], approve["height"]) == (reject["y"], reject["height"])
    assert violations(page) == []
    take(page, "phone-proposal")


@pytest.mark.parametrize("width", [320, 390])
def test_targets_are_large_and_nothing_scrolls_sideways(
    phone: Callable[..., Page], tenant: Tenant, width: int
) -> None:
    proposal = make_full(tenant)
    factories.make_proposal(tenant=tenant)
    page = phone("/review/", width)
    for path in ("/review/", f"/review/{proposal.pk}/", f"/review/{proposal.pk}/alike/"):
        page.goto(path)
        assert page.evaluate(_TARGETS) == [], path
        assert sideways(page) == 0
    page.goto(f"/review/{proposal.pk}/")
    for sheet in ("sheet-reject", "sheet-changes"):
        page.locator(f"[popovertarget={sheet}] >> visible=true").first.click()
        assert page.evaluate(_TARGETS) == [], sheet
        assert sideways(page) == 0
        page.locator(f"#{sheet} [popovertargetaction=hide]").first.click()


def test_the_bars_cover_no_focus(phone: Callable[..., Page], tenant: Tenant) -> None:
    proposal = make_full(tenant)
    page = phone(f"/review/{proposal.pk}/")
    covered = set()
    for key in ["Tab"] * 45 + ["Shift+Tab"] * 45:
        page.keyboard.press(key)
        covered.add(page.evaluate(_COVERED))
    assert covered == {""}


def test_a_sheet_stands_above_the_keyboard_of_the_screen(phone: Callable[..., Page], tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    page = phone(f"/review/{proposal.pk}/")
    page.locator("[popovertarget=sheet-reject] >> visible=true").click()
    page.locator("#reject-reason").focus()
    # As a browser tells of its keyboard: the part that is seen gets lower, the page itself does not.
    page.evaluate(
        """() => {
          Object.defineProperty(visualViewport, "height", { get: () => innerHeight - 320 });
          visualViewport.dispatchEvent(new Event("resize"));
        }"""
    )
    box = page.locator("#sheet-reject").bounding_box()
    send = page.locator("#sheet-reject [value=reject]")
    send.scroll_into_view_if_needed()
    button = send.bounding_box()
    assert box
    assert button
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 844 - 320 + 1
    assert button["y"] + button["height"] <= 844 - 320


@pytest.mark.parametrize("zoom", [2, 4])
def test_zoomed_pages_stay_whole(
    browser: Browser, live_server: Any, tenant: Tenant, reviewer: User, zoom: int
) -> None:
    """A window of 1280 px at 200 and 400 %: what a browser makes of it is a narrower page (WCAG 1.4.10)."""
    proposal = make_full(tenant)
    context = browser.new_context(
        viewport={"width": 1280 // zoom, "height": 1024 // zoom}, device_scale_factor=zoom
    )
    page = context.new_page()
    sign_in(page, live_server.url, reviewer)
    for path in ("/review/", f"/review/{proposal.pk}/", f"/review/{proposal.pk}/alike/"):
        page.goto(f"{live_server.url}{path}")
        assert sideways(page) == 0
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    bar = page.locator("#decide").bounding_box()
    assert bar
    assert bar["height"] <= 0.81 * 1024 / zoom
    expect(page.locator(".decide .acts .danger")).to_be_in_viewport()
    context.close()


def test_spaced_out_text_is_not_cut_off(phone: Callable[..., Page], tenant: Tenant) -> None:
    proposal = make_full(tenant)
    page = phone(f"/review/{proposal.pk}/", bypass_csp=True)
    page.add_style_tag(content=_SPACED)
    assert sideways(page) == 0
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".btn, .badge, h1, h2, dd, .why, .nav a")]
          .filter((one) => one.getClientRects().length && getComputedStyle(one).overflow === "hidden")
          .filter((one) => one.scrollHeight > one.clientHeight + 1)
          .map((one) => one.outerHTML.slice(0, 100))"""
    )
    assert cut == []


def test_forced_colours_keep_words_and_icons(
    page: Page, live_server: Any, tenant: Tenant, reviewer: User
) -> None:
    proposal = make_full(tenant)
    sign_in(page, live_server.url, reviewer)
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    page.goto(f"{live_server.url}/review/{proposal.pk}/")
    assert violations(page) == []
    moving = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((one) => {
          const style = getComputedStyle(one);
          return style.animationName !== "none" || parseFloat(style.transitionDuration) > 0;
        }).length"""
    )
    assert moving == 0
    # Nothing by colour alone: whatever has a tone says it in words, too.
    silent = page.evaluate(
        """() => [...document.querySelectorAll("[data-tone]")]
          .filter((one) => one.getClientRects().length && !one.closest("svg") && !one.textContent.trim())
          .map((one) => one.outerHTML.slice(0, 100))"""
    )
    assert silent == []
    take(page, "forced-proposal")
