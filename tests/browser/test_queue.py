"""The queue in a real browser: it hears of what others do, without a row moving; it is narrowed, sorted and held."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from access.models import User
from approvals.models import Claim, Proposal
from common.models import Tenant
from tests import factories, rows
from tests.approvals.desk_rows import make_full
from tests.approvals.queue_rows import make_queue
from tests.approvals.test_pulse import decide_as, hold
from tests.browser.desks import look_at, sign_in, without_script

pytestmark = pytest.mark.django_db
SOON_MS = 20_000
"""Two seconds are the product's; the rest is for a machine that does other things as well."""


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse", display_name="Ilse V.")


@pytest.fixture
def colleague(tenant: Tenant) -> User:
    return factories.make_user(tenant, "tomas", display_name="Tomás R.")


@pytest.fixture
def desk(page: Page, live_server: Any, reviewer: User) -> Iterator[Callable[[str], Page]]:
    """Open a path of the desk. Afterwards the console holds no error but refusals that were meant."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    sign_in(page, live_server.url, reviewer)

    def opened(path: str) -> Page:
        page.goto(f"{live_server.url}{path}")
        return page

    yield opened
    assert [error for error in errors if "status of 4" not in error] == []


def tops(page: Page) -> list[float]:
    return [box["y"] for item in page.locator(".item").all() if (box := item.bounding_box())]


def test_a_decision_elsewhere_marks_the_row_and_closes_the_page(
    desk: Callable[[str], Page], tenant: Tenant, colleague: User
) -> None:
    first = factories.make_proposal(
        tenant=tenant, summary="Refund first", decide_by=rows.now() + timedelta(minutes=20)
    )
    second = factories.make_proposal(tenant=tenant, summary="Refund second")
    page = desk("/review/")
    expect(page.locator("#pane #say")).to_be_visible()
    page.locator("#decide [data-key=r]").first.click()
    page.locator("#sheet-reject textarea").fill("I was writing this")
    before = tops(page)
    decide_as(first, colleague, "reject")
    row = page.locator(f"#row-{first.pk}")
    expect(row).to_contain_text("Rejected by Tomás R.", timeout=SOON_MS)
    assert "gone" in (row.get_attribute("class") or "")
    expect(page.locator("#decide[data-over]")).to_be_visible(timeout=SOON_MS)
    expect(page.locator("#toasts")).to_contain_text("Rejected by Tomás R.")
    assert tops(page) == before
    expect(page.locator("#nav-review")).to_have_text("1")
    assert (
        page.locator("body").inner_text().count("I was writing this")
        or page.locator("textarea").first.input_value() == "I was writing this"
    )
    decide_as(second, colleague, "reject")
    expect(page.locator("#nav-review")).to_have_text("0", timeout=SOON_MS)


def test_new_ones_announce_themselves_and_move_nothing(desk: Callable[[str], Page], tenant: Tenant) -> None:
    make_queue(tenant)
    page = desk("/review/?sort=time")
    before = tops(page)
    made = factories.propose_in_history(factories.make_proposal(tenant=tenant, summary="Brand new"))
    expect(page.locator(".newpill")).to_contain_text("1 new, show it", timeout=SOON_MS)
    assert tops(page) == before
    page.locator(".newpill a").click()
    expect(page.locator(f"#row-{made.pk}")).to_be_visible()
    expect(page.locator(".newpill")).to_have_text("")


def test_two_people_do_not_read_the_same(
    desk: Callable[[str], Page], tenant: Tenant, reviewer: User, colleague: User
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    page = desk("/review/")
    expect(page.locator("#hold")).to_contain_text("Hold it while you read")
    page.locator("#say").focus()
    page.keyboard.press("m")
    expect(page.locator("#hold")).to_contain_text("You hold it until")
    expect(page.locator(f"#row-{proposal.pk} .held")).to_contain_text("Held by", timeout=SOON_MS)
    hold(proposal, colleague, take_over=True)
    expect(page.locator("#hold")).to_contain_text("Tomás R. is reading this", timeout=SOON_MS)
    expect(page.locator("#toasts")).to_contain_text("Tomás R. has taken it over.")
    assert Claim.objects.get().user == colleague


def test_whoever_loses_their_account_is_turned_away(
    desk: Callable[[str], Page], tenant: Tenant, reviewer: User
) -> None:
    make_queue(tenant)
    page = desk("/review/")
    expect(page.locator(".item").first).to_be_visible()
    page.wait_for_timeout(2500)
    User.objects.filter(pk=reviewer.pk).update(is_active=False)
    page.wait_for_url("**/sign-in/**", timeout=SOON_MS + 4000)


def test_sorting_filters_and_kinds_by_mouse(desk: Callable[[str], Page], tenant: Tenant) -> None:
    make_queue(tenant, shape="hmac:a")
    page = desk("/review/")
    page.select_option("#id_sort", "age")
    expect(page.locator(".item > a").first).to_contain_text("Row D")
    page.wait_for_url("**sort=age**")
    page.get_by_text("Filters").click()
    page.select_option("[name=risk]", "3")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".item")).to_have_count(2)
    page.wait_for_url("**risk=3**")
    page.get_by_role("link", name="Clear").click()
    page.get_by_role("link", name="Put together what is alike").click()
    expect(page.locator(".item.alike")).to_contain_text("6 alike")
    page.locator(".item.alike > a").click()
    expect(page.locator(".item")).to_have_count(6)


def test_without_script_it_is_all_links_and_forms(
    browser: Browser, live_server: Any, tenant: Tenant, reviewer: User
) -> None:
    make_queue(tenant)
    proposal = factories.make_proposal(tenant=tenant, summary="Held one")
    with without_script(browser, live_server.url, reviewer) as page:
        page.goto(f"{live_server.url}/review/?sort=risk")
        expect(page.locator(".item > a").first).to_contain_text("Row B")
        page.select_option("#id_sort", "time")
        page.get_by_role("button", name="Show").click()
        expect(page.locator(".item > a").first).to_contain_text("Row A")
        page.goto(f"{live_server.url}/review/{proposal.pk}/")
        page.get_by_role("button", name="Hold it while you read").click()
        expect(page.locator("#hold")).to_contain_text("You hold it until")


def test_how_it_looks(desk: Callable[[str], Page], tenant: Tenant, reviewer: User, colleague: User) -> None:
    make_full(tenant, needed=2, amount=Decimal("1284.50"), amount_currency="EUR", shape="hmac:full")
    made = make_queue(tenant, shape="hmac:x")
    factories.make_proposal(
        tenant=tenant, excluded_users=[reviewer.pk], summary="Refund of one's own, order 7"
    )
    hold(made[1], colleague)
    page = desk("/review/")
    expect(page.locator("#pane #say")).to_be_visible()
    decide_as(made[2], colleague, "reject")
    factories.propose_in_history(factories.make_proposal(tenant=tenant))
    expect(page.locator(".item.gone")).to_be_visible(timeout=SOON_MS)
    expect(page.locator(".newpill a")).to_be_visible(timeout=SOON_MS)
    look_at(page, "queue")
    page.get_by_text("Filters").click()
    look_at(desk("/review/?by=alike&risk=1"), "queue-alike")
    assert Proposal.objects.filter(status="pending").exists()
