"""`./placet screenshots`: pictures of the running product, for the README.

A real browser goes through the demo as a person does, and takes each page in light and dark. Without ``--demo-file`` a
product of its own is started in an empty folder, so that the pictures show the demo's cases and nothing else.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

from launch import LaunchError
from launch.datadir import ROOT
from launch.palette import shrink

PICTURES: Final = ROOT / "docs" / "pictures"
DESKTOP: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}
_CHROMIUMS: Final = ("chromium", "chromium-browser", "google-chrome")
_READY_WITHIN: Final = 300.0
_WORKED_WITHIN: Final = 120.0
_SETTLE_MS: Final = 400
_ENOUGH: Final = 8
"""So many proposals wait before the first picture is taken: the demo's automations need some seconds."""
_CHANGES: Final = "9001"
"""The order that changes at the provider after somebody was asked about it: its run stops, and Repair shows it."""


def main(arguments: list[str]) -> int:
    """The exit code: 0, or 1 with one clear line on standard error."""
    options = _parse(arguments)
    try:
        with _demo(options.demo_file) as demo, _browser() as browser:
            for path in take(browser, demo, options.out):
                print(f"{path.stat().st_size // 1000:4d} kB  {path}")
    except LaunchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="placet screenshots", description=(__doc__ or "").partition("\n\n")[2]
    )
    parser.add_argument(
        "--out", type=Path, default=PICTURES, help="folder for the pictures (now docs/pictures)"
    )
    parser.add_argument(
        "--demo-file", type=Path, help="of a product that runs: var/demo.json; its cases are decided on, too"
    )
    return parser.parse_args(arguments)


# --- the product -------------------------------------------------------------------------------
@contextmanager
def _demo(file: Path | None) -> Iterator[dict[str, Any]]:
    """What the demo wrote down: its address and who can sign in."""
    if file is not None:
        if not file.exists():
            raise LaunchError(f"There is no {file}: start the product with ./placet up first.")
        yield json.loads(file.read_text())
        return
    with TemporaryDirectory(prefix="placet-pictures-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        with _product(folder):
            yield json.loads((folder / "demo.json").read_text())


@contextmanager
def _product(folder: Path) -> Iterator[None]:
    log = folder / "up.log"
    command = [sys.executable, "-m", "launch", "up", "--data-dir", str(folder)]
    with open(log, "wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, env=_own_environment()
        )
    try:
        _wait(lambda: _is_up(process, log), _READY_WITHIN, f"The product did not start: {log}")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _own_environment() -> dict[str, str]:
    """Without anybody's addresses: a demo must never be made in a database that is used for something."""
    ours = ("DATABASE_", "REDIS_", "PLACET_", "DJANGO_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def _is_up(process: subprocess.Popen[bytes], log: Path) -> bool:
    if process.poll() is not None:
        raise LaunchError(f"The product did not start:\n{log.read_text()}")
    return "Placet runs at" in log.read_text()


def _wait(until: Callable[[], bool], seconds: float, says: str) -> None:
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise LaunchError(says)
        time.sleep(0.3)


# --- the browser -------------------------------------------------------------------------------
@contextmanager
def _browser() -> Iterator[Browser]:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _CHROMIUMS)), None)
    if found is None:
        raise LaunchError(
            "No Chromium was found: apt-get install chromium (Debian, Ubuntu), or set CHROMIUM."
        )
    sandbox = [] if os.geteuid() else ["--no-sandbox"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=sandbox)
        yield browser
        browser.close()


@contextmanager
def _as_person(browser: Browser, demo: dict[str, Any], role: str, *, phone: bool = False) -> Iterator[Page]:
    """A page on which somebody of the role has signed in, at a desk or with a phone in their hand."""
    name, password = next(iter(demo["users"][role].items()))
    context = browser.new_context(
        base_url=demo["base_url"], viewport=PHONE if phone else DESKTOP, has_touch=phone, is_mobile=phone,  # type: ignore[arg-type]
        locale="en-GB", timezone_id="Europe/Berlin", reduced_motion="reduce",
    )  # fmt: skip
    page = context.new_page()
    page.goto("/sign-in/")
    page.fill("[name=username]", name)
    page.fill("[name=password]", password)
    page.click("form button[type=submit]")
    page.wait_for_url("**/review/**")
    yield page
    context.close()


# --- the pictures ------------------------------------------------------------------------------
def take(browser: Browser, demo: dict[str, Any], out: Path) -> list[Path]:
    """Every picture; returns the files."""
    out.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    with _as_person(browser, demo, "reviewer") as page:
        _wait_for_cases(page)
        made += _shoot(page, out, "queue")
        proposal = _open_one(page)
        made += _shoot(page, out, "proposal")
    with _as_person(browser, demo, "reviewer", phone=True) as page:
        made += _shoot(page, out, "phone-queue")
        page.goto(proposal)
        made += _shoot(page, out, "phone")
    with _as_person(browser, demo, "reviewer") as page:
        run = _approve(page, proposal)
        page.goto("/review/")
        changed = page.locator(".item > a", has_text=_CHANGES).first.get_attribute("href")
        _change_order(demo["provider_url"], _CHANGES)
        _approve(page, str(changed))
    with _as_person(browser, demo, "operator") as page:
        page.goto(run)
        made += _shoot(page, out, "run")
        _wait(
            lambda: _has_stopped(page), _WORKED_WITHIN, "Nothing has stopped: there is no picture of Repair."
        )
        page.locator("main .stretch").first.click()
        page.wait_for_load_state("networkidle")
        made += _shoot(page, out, "repair")
    return made


def _change_order(provider: str, order: str) -> None:
    """Somebody else books something on the order: the record is not the one any more that was shown."""
    body = json.dumps({"id": order, "status": "returned"}).encode()
    request = urllib.request.Request(f"{provider}/_admin/orders", data=body, method="POST")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=10):
        pass


def _has_stopped(page: Page) -> bool:
    page.goto("/repair/")
    return page.locator("main .stretch").count() > 0


def _wait_for_cases(page: Page) -> None:
    """The demo's automations work through their cases first."""

    def enough() -> bool:
        page.goto("/review/")
        return page.locator(".item").count() >= _ENOUGH

    _wait(enough, _WORKED_WITHIN, "The demo made no proposals.")
    page.locator("#pane #say").wait_for()


def _open_one(page: Page) -> str:
    """The proposal's own page: of one with something to look at, and for one person to decide."""
    rows = page.locator(".item")
    marked = rows.filter(has=page.locator('.mini[data-tone="bad"]')).filter(has_not_text="of 2")
    link = (marked if marked.count() else rows).first.locator(":scope > a")
    address = str(link.get_attribute("href"))
    page.goto(address)
    return address


def _approve(page: Page, address: str) -> str:
    """Look at all that wants to be looked at, approve, and follow; the address of the run."""
    page.goto(address)
    while (fold := page.locator("[data-need] button >> visible=true")).count():
        fold.first.click()
        page.wait_for_load_state("networkidle")
    for box in page.locator("input[data-need]").all():
        box.check()
    run = str(page.locator('.side a[href^="/runs/"]').first.get_attribute("href"))
    if (button := page.locator("[popovertarget=sheet-approve] >> visible=true")).count():
        button.click()
        page.click("#sheet-approve [value=approve]")
        page.locator("#result >> visible=true").wait_for()
        page.wait_for_timeout(5_000)
    return run


def _shoot(page: Page, out: Path, name: str) -> list[Path]:
    """The page as it stands, in light and dark."""
    made = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.wait_for_timeout(_SETTLE_MS)
        path = out / f"{name}-{scheme}.png"
        page.screenshot(path=path, caret="initial")
        shrink(path)
        made.append(path)
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
