"""A whole queue by keyboard alone: low and high risk, warnings, folded parts, two people, a password asked again.

Twenty in CI; ``PLACET_ITEMS=100 ./placet test tests/browser/test_hundred.py -s`` clears a hundred and prints the time.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from approvals.enums import DecisionKind, ProposalStatus
from approvals.models import Decision, Proposal
from common.models import Tenant
from tests import factories, rows
from tests.approvals.desk_rows import make_full
from tests.browser.desks import sign_in
from tests.browser.keyboard import Typist

pytestmark = pytest.mark.django_db
ITEMS = int(os.environ.get("PLACET_ITEMS", "20"))


def plain(tenant: Tenant, number: int, **fields: Any) -> Proposal:
    arguments = dict(rows.REFUND) | {"order": str(5000 + number)}
    return factories.make_proposal(
        tenant=tenant, arguments=arguments, summary=f"Refund {number}",
        **(fields | {"consequence": f"Refund number {number}."}),
    )  # fmt: skip


def careful(tenant: Tenant, number: int, **fields: Any) -> Proposal:
    """Three warnings, one folded part."""
    return make_full(tenant, business_key=f"hmac:{number}", target=f"order:{number}", **fields)


KINDS: tuple[Callable[..., Proposal], ...] = (
    plain,
    plain,
    lambda tenant, number, **fields: plain(tenant, number, risk=2, **fields),
    plain,
    careful,
    plain,
    lambda tenant, number, **fields: plain(tenant, number, risk=3, **fields),
    lambda tenant, number, **fields: plain(tenant, number, needed=2, **fields),
    plain,
    lambda tenant, number, **fields: careful(tenant, number, needed=2, **fields),
)
PACE_S = 2.2 if ITEMS > 50 else 0.0
"""More than fifty: the limits of a person's decisions hold, and a script is quicker than they allow."""
REJECTED = 3
"""Of each ten, this one gets a no."""


def fill(tenant: Tenant) -> dict[str, int]:
    """So many proposals in the order of their numbers; the number of each."""
    until = rows.now() + timedelta(minutes=30)
    made = (
        KINDS[number % len(KINDS)](tenant, number, decide_by=until + timedelta(seconds=number))
        for number in range(ITEMS)
    )
    return {str(row.pk): number for number, row in enumerate(made)}


def test_a_queue_is_cleared_by_keyboard_alone(page: Page, live_server: Any, settings: Any) -> None:
    settings.PLACET_REAUTH_S = 0  # high risk asks for the password each time
    settings.PLACET_DECISIONS_PER_MINUTE = 30  # as in the product
    tenant = factories.make_tenant("harbour")
    numbers = fill(tenant)
    sign_in(page, live_server.url, factories.make_user(tenant, "ilse", display_name="Ilse V."))
    page.goto(f"{live_server.url}/review/?view=mine")
    expect(page.locator("#pane #say")).to_be_visible()
    hands = Typist(page, factories.PASSWORD)
    hands.press("j")
    hands.press("Enter")
    hands.until("document.activeElement.id === 'say'")
    for done in range(ITEMS):
        number = numbers[page.url.split("/review/")[1].split("/")[0]]
        (hands.reject if number % 10 == REJECTED else hands.approve)()
        if done < ITEMS - 1:
            hands.next()
        hands.rest(until=(done + 1) * PACE_S)
    told = f"{ITEMS} items in {hands.seconds:.0f} s: {hands.keys} keys, {hands.confirmed} times the password"
    print(f"\n{told}")  # noqa: T201  (no assertion: machines differ)
    votes = Decision.objects.all()
    assert votes.count() == ITEMS
    assert votes.filter(kind=DecisionKind.REJECT).count() == ITEMS // 10
    assert hands.confirmed == ITEMS // 10
    two = Proposal.objects.filter(needed=2)
    assert set(two.values_list("status", flat=True)) == {ProposalStatus.PENDING}
    assert (
        Proposal.objects.filter(status=ProposalStatus.APPROVED).count() == ITEMS - ITEMS // 10 - two.count()
    )
