"""A person at the keyboard of the review desk: reads what stands on the page, and touches nothing but keys."""

import json
import time
from dataclasses import dataclass, field

from playwright.sync_api import Error, Page, Response

PATIENCE_S = 20.0
MOST_NEEDS = 30
# What the page says of itself, as a person would see it.
_STATE = """() => {
  const seen = (selector) => [...document.querySelectorAll(selector)].some((one) => one.getClientRects().length);
  const needs = [...document.querySelectorAll("input[data-need]:not(:checked), .shown[data-need] button")];
  return {
    over: seen("#decide[data-over]"),
    approve: seen("#decide [popovertarget=sheet-approve]"),
    closed: seen("#decide .btn[aria-disabled=true]"),
    refusal: document.querySelector("#decide .refusal code")?.textContent ?? "",
    which: document.querySelector("#decide")?.action.split("/")[4] ?? "",
    needs: needs.filter((one) => one.getClientRects().length).length,
  };
}"""
_SETTLED = "document.readyState === 'complete' && !document.querySelector('.htmx-settling, .htmx-added')"
_ON_A_PART = "document.activeElement.matches('.shown[data-need] button')"


@dataclass
class Typist:
    """Works through a queue. ``password``: for what asks again who they are."""

    page: Page
    password: str
    begun: float = field(default_factory=time.monotonic)
    keys: int = 0
    confirmed: int = 0
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("response", self._note)

    def _note(self, answer: Response) -> None:
        if answer.status >= 400:
            self.refused.append(f"{answer.status} {answer.url[-60:]}")

    def press(self, key: str) -> None:
        self.keys += len(key) if key == self.password else 1
        self.page.keyboard.press(key)

    def until(self, condition: str) -> None:
        """Our policy lets no text become script, so Playwright's own waiting is of no use."""
        end = time.monotonic() + PATIENCE_S
        while not self.seen(condition):
            assert time.monotonic() < end, f"{condition}: {self.where()}"
            self.page.wait_for_timeout(20)

    def where(self) -> str:
        """For whoever reads the failure."""
        focus = self.page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        told = self.page.evaluate("document.getElementById('toasts')?.textContent.trim()")
        return f"{self.keys} keys, {self.seconds:.0f} s, {self.state()}, {focus}, {told}, {self.refused[-3:]}"

    def seen(self, condition: str) -> bool:
        """Also while one page gives way to the next, where there is nothing to ask."""
        try:
            return bool(self.page.evaluate(condition))
        except Error:
            return False

    def state(self) -> dict[str, object]:
        state: dict[str, object] = self.page.evaluate(_STATE)
        return state

    def look(self) -> None:
        """Tick every line and open every part, wherever Space leads: it brings a thing into sight before it ticks."""
        for _ in range(MOST_NEEDS):
            needs = self.state()["needs"]
            if not needs:
                return
            if self.page.evaluate(_ON_A_PART):
                self.press("Enter")
                self.until(f"({_STATE})().needs !== {needs}")
                self.until(_SETTLED)
            else:
                self.press(" ")
        raise AssertionError("Space does not come to an end.")

    def approve(self, tries: int = 2) -> None:
        self.look()
        self.until(f"({_STATE})().approve")
        self.press("a")
        self.until("document.querySelector('#sheet-approve:popover-open')")
        if self.page.evaluate("document.activeElement.value !== 'approve'"):
            self.press("Tab")  # where care is due, the focus starts on the way back
        assert self.page.evaluate("document.activeElement.value") == "approve"
        self.send()
        if self.state()["refusal"] == "reauth_required":
            assert tries > 1, "The password was given, and is asked for again."
            self.confirm()
            self.approve(tries - 1)

    def reject(self) -> None:
        self.press("r")
        self.until("document.activeElement.name === 'reason_code'")
        self.press(" ")
        for _ in range(12):
            self.press("Tab")
            if self.page.evaluate("document.activeElement.value === 'reject'"):
                return self.send()
        raise AssertionError("Tab does not lead to the button that rejects.")

    def send(self) -> None:
        self.page.evaluate("window.sent = document.querySelector('#decide'), 1")
        self.press("Enter")
        self.until("window.sent !== document.querySelector('#decide')")
        self.until(_SETTLED)

    def confirm(self) -> None:
        """The refusal has the focus; its link leads to the page that asks for the password, and back."""
        self.confirmed += 1
        address = self.page.url
        for _ in range(3):
            self.press("Tab")
            if self.page.evaluate("document.activeElement.matches('.refusal a')"):
                break
        self.press("Enter")
        self.until("document.activeElement.type === 'password'")
        self.page.keyboard.type(self.password)
        self.press("Enter")
        self.page.wait_for_url(lambda url: "/review/" in url)
        self.until(_SETTLED)
        assert self.page.url.split("/review/")[1][:20] == address.split("/review/")[1][:20]

    def next(self) -> None:
        """From what is decided to the next one."""
        before = self.state()["which"]
        self.press("j" if self.state()["over"] else "s")
        self.until(f"({_STATE})().which !== {json.dumps(before)}")
        self.until(_SETTLED)

    def rest(self, *, until: float) -> None:
        """So many seconds after the beginning at the earliest."""
        if self.seconds < until:
            self.page.wait_for_timeout(1000 * (until - self.seconds))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun
