"""Pictures and accessibility of a page, for browser tests and for people who want to look.

Pictures are taken where the folder for them is named in PLACET_SHOTS: nobody looks at those of an ordinary run, and
they take longer than what the tests assert.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

DESKTOP = (1280, 900)
PHONE = (390, 844)
Scheme = Literal["light", "dark"]
CONTRAST: Final = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
"""Of what axe looks for, the colours alone differ between light and dark."""
SHAPE: Final = {"rules": {"color-contrast": {"enabled": False}}}
"""What a narrow window may change: everything but the colours, which take most of axe's time."""


def shoot(page: Page, name: str, *, full: bool = True) -> None:
    """Take ``page`` at desktop and phone width, in light and dark, where somebody wants pictures."""
    if not os.environ.get("PLACET_SHOTS"):
        return
    for size_name, (width, height) in {"desktop": DESKTOP, "phone": PHONE}.items():
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            with shown_in(page, scheme):
                take(page, f"{name}-{size_name}-{scheme}", full=full)
    page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})


def take(page: Page, name: str, *, full: bool = False) -> None:
    """One picture of the page as it stands, where somebody wants pictures."""
    folder = os.environ.get("PLACET_SHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        # To hide the caret, Playwright would leave style attributes behind, which our policy forbids.
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=full, caret="initial")


@contextmanager
def shown_in(page: Page, scheme: Scheme) -> Iterator[None]:
    """The page in light or dark, at once: with less motion no colour is on its way while one looks."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    yield
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")


def violations(page: Page, options: dict[str, Any] | None = None) -> list[str]:
    """Return what axe finds wrong with the page as it stands: a line for each rule, with its first element."""
    result = Axe().run(page, options=options)
    return [f"{found['id']}: {found['nodes'][0]['html'][:200]}" for found in result.response["violations"]]


def objections(page: Page) -> list[str]:
    """What axe finds in light, and of the colours in dark."""
    with shown_in(page, "light"):
        found = [f"light: {line}" for line in violations(page)]
    with shown_in(page, "dark"):
        return found + [f"dark: {line}" for line in violations(page, CONTRAST)]


def sideways(page: Page) -> int:
    """Return by how many pixels the page can be scrolled sideways; a page that fits gives 0."""
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width
