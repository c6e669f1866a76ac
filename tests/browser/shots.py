"""Pictures and accessibility of a page, for browser tests and for people who want to look.

Pictures are written outside the repository, to the folder in PLACET_SHOTS or else to ``placet-shots``
in the system's folder for temporary files.
"""

import os
import tempfile
from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

DESKTOP = (1280, 900)
PHONE = (390, 844)
# Colours change within 120 ms of a change of scheme.
SETTLE_MS = 200
Scheme = Literal["light", "dark"]


def shots_dir() -> Path:
    """Return the folder for pictures, made when it is not there."""
    folder = Path(os.environ.get("PLACET_SHOTS") or Path(tempfile.gettempdir()) / "placet-shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def shoot(page: Page, name: str, *, full: bool = True) -> list[Path]:
    """Take ``page`` at desktop and phone width, in light and dark; return the four files."""
    made = []
    for size_name, (width, height) in {"desktop": DESKTOP, "phone": PHONE}.items():
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(SETTLE_MS)
            target = shots_dir() / f"{name}-{size_name}-{scheme}.png"
            # To hide the caret, Playwright would leave style attributes behind, which our policy forbids.
            page.screenshot(path=target, full_page=full, caret="initial")
            made.append(target)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    return made


def violations(page: Page) -> list[str]:
    """Return what axe finds wrong with the page as it stands: a line for each rule, with its first element."""
    result = Axe().run(page)
    return [f"{found['id']}: {found['nodes'][0]['html'][:200]}" for found in result.response["violations"]]


def sideways(page: Page) -> int:
    """Return by how many pixels the page can be scrolled sideways; a page that fits gives 0."""
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width
