"""The queue: its orders and pages, its views with their counters, its filters, and what is alike."""

import base64
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pytest
from django.test import Client

from access.enums import Role
from access.models import User
from approvals.models import Claim, Proposal
from approvals.screens import queue as screen
from approvals.screens.orders import ORDERS, URGENCY
from common.models import Tenant
from tests import factories, rows
from tests.approvals.queue_rows import make_queue

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true", "HX-Target": "queue"}


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse", display_name="Ilse V.")


@pytest.fixture
def desk(client: Client, reviewer: User) -> Client:
    client.force_login(reviewer)
    return client


def page(client: Client, query: str = "") -> str:
    answer = client.get(f"/review/?{query}" if not query.startswith("/") else query, headers=HTMX)
    assert answer.status_code == 200
    return answer.content.decode()


def shown(html: str) -> list[str]:
    return re.findall(r"Row (\w+)<", html)


def next_page(html: str) -> str:
    found = re.search(r'<a href="([^"]+)"[^>]*>Next page</a>', html)
    return found[1].replace("&amp;", "&") if found else ""


def walk(client: Client, query: str) -> list[str]:
    """All rows, page by page."""
    html = page(client, query)
    found, address = shown(html), next_page(html)
    while address:
        html = page(client, address)
        found, address = found + shown(html), next_page(html)
    return found


def counters(html: str) -> dict[str, int]:
    tabs = re.findall(r">([A-Z][a-z ]+) <span class=\"n\">(\d+)</span>", html)
    return {word: int(number) for word, number in tabs}


IN_ORDER = {
    "": "C B A F E D",  # one hour: the higher risk first, then the larger amount
    "urgency": "C B A F E D",
    "time": "A B C E F D",
    "risk": "B C F D A E",
    "amount": "C E A D F B",  # no amount comes last, and nothing is not no amount
    "age": "D E B A C F",
}


@pytest.mark.parametrize("sort", IN_ORDER)
@pytest.mark.parametrize("size", [1, 2, 25])
def test_every_order_reaches_its_last_row_and_shows_none_twice(
    desk: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, sort: str, size: int
) -> None:
    monkeypatch.setattr(screen, "PAGE_SIZE", size)
    make_queue(tenant)
    assert walk(desk, f"sort={sort}") == IN_ORDER[sort].split()


def test_rows_that_are_equal_in_everything_are_all_shown_once(
    desk: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "PAGE_SIZE", 2)
    until, at = rows.now() + timedelta(hours=2), rows.now()
    for number in range(5):
        factories.make_proposal(tenant=tenant, summary=f"Row {number}", decide_by=until, at=at)
    for sort in ORDERS:
        assert sorted(walk(desk, f"sort={sort}")) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    "after", ["x", "%00", "WyJ1cmdlbmN5Il0", "eyJhIjoxfQ", "2026-11-30T00:00:00~x", "W10" * 90]
)
def test_a_place_that_is_none_shows_the_first_page(desk: Client, tenant: Tenant, after: str) -> None:
    make_queue(tenant)
    assert shown(page(desk, f"after={after}")) == IN_ORDER[""].split()


@pytest.mark.parametrize(
    "values",
    [
        ("1", "1", "1E999", "2026-01-01T00:00:00+00:00"), ("1", "1", "NaN", "2026-01-01T00:00:00+00:00"),
        ("9" * 40, "1", "1", "2026-01-01T00:00:00+00:00"), ("1", "9" * 17, "1", "2026-01-01T00:00:00+00:00"),
        ("9" * 17, "1", "1", "2026-01-01T00:00:00+00:00"), ("-" + "9" * 9, "1", "1", "2026-01-01T00:00:00+00:00"),
        ("1", "1", "1.123456789", "0001-01-01T00:00:00+23:00"), ("1", "1", "1", "2026-01-01T00:00:00"),
    ],
)  # fmt: skip
def test_a_place_with_values_that_no_row_has_is_no_error(
    desk: Client, tenant: Tenant, values: tuple[str, ...]
) -> None:
    make_queue(tenant)
    text = "\n".join(["urgency", *values, str(tenant.pk)])
    page(desk, f"after={base64.urlsafe_b64encode(text.encode()).decode()}")


def test_a_late_place_says_of_a_column_where_its_rows_begin() -> None:
    """Behind row-level security an index does not begin at an expression: at the column of its hour it does."""
    until = datetime(2026, 11, 30, 7, 45, tzinfo=UTC)
    hour = int(until.timestamp()) // 3600
    behind = URGENCY.behind((hour, 1, Decimal(5), until, uuid4()))
    assert ("decide_by__gte", until.replace(minute=0)) in behind.children
    assert ORDERS["risk"].behind((2, until, uuid4())).children[-1] == ("risk__lte", 2)


def test_a_place_of_another_order_shows_the_first_page(
    desk: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "PAGE_SIZE", 2)
    make_queue(tenant)
    place = re.search(r"after=([^&\"]+)", next_page(page(desk, "sort=risk")))
    assert place is not None
    assert shown(page(desk, f"sort=amount&after={unquote(place[1])}")) == ["C", "E"]


def test_headings_never_move_a_row(desk: Client, tenant: Tenant) -> None:
    make_queue(tenant)
    html = page(desk)
    assert re.findall(r"<h2[^>]*>([^<]+)</h2>", html) == ["Within two hours", "Within a day", "Later"]
    assert shown(html) == IN_ORDER[""].split()


# -- views, and their counters (field report L2) ---------------------------------------------------------------


def test_every_counter_is_what_its_list_holds(desk: Client, tenant: Tenant, reviewer: User) -> None:
    finance, refunds = factories.make_group(tenant, "Finance"), factories.make_group(tenant, "Refund desk")
    colleague = factories.make_user(tenant, "tomas", groups=[finance])
    membership = reviewer.memberships.get()
    membership.groups.add(refunds, through_defaults={"tenant": tenant})
    make_queue(tenant)
    make_queue(tenant, group=finance)
    make_queue(tenant, group=refunds)
    make_queue(tenant, excluded_users=[reviewer.pk])
    factories.make_proposal(tenant=tenant, summary="Row X", at=rows.now() - timedelta(hours=9))  # out of time
    voted = factories.make_proposal(tenant=tenant, summary="Row V", needed=2)
    factories.make_decision(voted, reviewer)
    now = rows.now()
    for proposal, until in ((voted, 9), (Proposal.objects.filter(group=finance)[0], -1)):
        Claim.objects.create(
            tenant=tenant, proposal=proposal, user=colleague, since=now - timedelta(hours=1),
            until=now + timedelta(minutes=until),
        )  # fmt: skip
    factories.make_proposal(tenant=tenant, summary="Row Y", decide_by=now + timedelta(minutes=20))
    expected = {"All": 26, "For you": 13, "Your groups": 6, "Unclaimed": 25}
    for query in ("", "q=row", "risk=3", "workflow=refund-triage", "operation=refunds.issue"):
        for view in ("", "mine", "groups", "unclaimed", "soon"):
            html = page(desk, f"view={view}&{query}")
            word = screen.VIEWS[view]
            assert counters(html)[word] == len(walk(desk, f"view={view}&{query}")), (view, query)
            assert f"<p>{counters(html)[word]} waiting" in html
    found = counters(page(desk))
    assert {word: found[word] for word in expected} == expected
    assert found["Expiring"] >= 1
    assert counters(page(desk, "q=row+v"))["All"] == 1


def test_whoever_stands_in_or_is_asked_later_finds_it_among_theirs(
    desk: Client, tenant: Tenant, reviewer: User
) -> None:
    finance = factories.make_group(tenant, "Finance")
    widened = factories.make_proposal(tenant=tenant, group=finance, summary="Row W")
    factories.make_proposal(tenant=tenant, group=finance, summary="Row N")
    refunds = factories.make_group(tenant, "Refund desk")
    reviewer.memberships.get().groups.add(refunds, through_defaults={"tenant": tenant})
    Proposal.objects.filter(pk=widened.pk).update(also_groups=[refunds.pk])
    assert shown(page(desk, "view=mine")) == ["W"]
    assert counters(page(desk))["For you"] == 1


def test_people_who_do_not_review_have_nothing_to_decide(client: Client, tenant: Tenant) -> None:
    client.force_login(factories.make_user(tenant, "olga", roles=[Role.OPERATOR]))
    make_queue(tenant)
    html = page(client, "view=mine")
    assert (counters(html)["All"], counters(html)["For you"], shown(html)) == (6, 0, [])


# -- filters ------------------------------------------------------------------------------------------------


def test_words_find_by_sentence_target_and_the_beginning_of_the_digest(desk: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant, summary="Row T", target="order:77120")
    make_queue(tenant)
    spaced = " ".join(proposal.digest[at : at + 4] for at in range(0, 16, 4))
    for words in (
        "77120",
        "row t",
        proposal.digest,
        proposal.digest[:8],
        spaced,
        f"sha256:{proposal.digest}",
    ):
        assert shown(page(desk, f"q={words}")) == ["T"], words
    assert shown(page(desk, "q=100%25")) == []
    assert "No proposal fits these filters" in page(desk, "q=nothing")


def test_a_filter_that_is_no_longer_waited_for_is_still_said(desk: Client, tenant: Tenant) -> None:
    make_queue(tenant)
    html = page(desk, "workflow=over&risk=x")
    assert '<option value="over" selected>over</option>' in html
    assert "6 wait in all." in html


def test_every_state_of_the_list_is_in_its_addresses(desk: Client, tenant: Tenant) -> None:
    make_queue(tenant)
    html = page(desk, "view=mine&sort=risk&q=row&risk=3")
    tab = re.search(r'<a href="([^"]+)"[^>]*>All <span', html)
    assert tab is not None
    assert tab[1].replace("&amp;", "&") == "/review/?sort=risk&q=row&risk=3"
    assert 'name="view" value="mine"' in html
    assert '<option value="risk" selected>Risk</option>' in html


# -- what is alike ------------------------------------------------------------------------------------------


def alike(tenant: Tenant) -> None:
    make_queue(tenant, shape="hmac:one")
    factories.make_proposal(tenant=tenant, summary="Row S", decide_by=rows.now() + timedelta(minutes=9))


def test_what_is_alike_is_one_row_that_stands_for_all(desk: Client, tenant: Tenant) -> None:
    alike(tenant)
    html = page(desk, "by=alike")
    assert "6 alike, such as: " in html
    assert "7 of 7 shown as 2 kinds" in html
    assert html.count("data-row=") == 2
    link = re.search(r'href="([^"]*alike=hmac[^"]*)"', html)
    assert link is not None
    kind = page(desk, link[1].replace("&amp;", "&"))
    assert sorted(shown(kind)) == list("ABCDEF")
    assert "6 waiting" in kind


def test_a_row_says_how_many_are_alike_in_this_list(desk: Client, tenant: Tenant) -> None:
    alike(tenant)
    assert page(desk).count("6 alike</a>") == 6
    assert page(desk, "risk=3").count("2 alike</a>") == 2


def test_kinds_are_paged_to_the_last(desk: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "PAGE_SIZE", 1)
    alike(tenant)
    assert walk(desk, "by=alike") == ["S", "A"]


# -- costs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("query", "statements"), [("", 10), ("by=alike", 11), ("view=mine&q=row&sort=amount", 11)]
)
def test_the_queue_asks_the_database_equally_often_however_long_it_is(
    desk: Client, tenant: Tenant, count: int, query: str, statements: int, django_assert_num_queries: Any
) -> None:
    for _ in range(count):
        factories.make_proposal(tenant=tenant, summary="Row")
    with django_assert_num_queries(statements):  # the list itself; what stands around it is the shell's
        desk.get(f"/review/?{query}", headers=HTMX)


def test_looking_at_the_queue_changes_nothing(desk: Client, tenant: Tenant) -> None:
    make_queue(tenant)
    before = list(Proposal.objects.order_by("pk").values_list())
    for query in ("", "by=alike", "view=unclaimed&q=x&sort=age"):
        page(desk, query)
    desk.get("/review/arrivals/?since=2026-01-01T00:00:00%2B00:00")
    assert list(Proposal.objects.order_by("pk").values_list()) == before
    assert not Claim.objects.exists()


def test_arrivals_are_counted_in_the_list_that_asks(desk: Client, tenant: Tenant) -> None:
    make_queue(tenant)
    since = (rows.now() - timedelta(days=1)).isoformat().replace("+", "%2B")
    assert "6 new, show them" in desk.get(f"/review/arrivals/?since={since}").content.decode()
    some = desk.get(f"/review/arrivals/?since={since}&risk=3&sort=age").content.decode()
    assert "2 new, show them" in some
    assert 'href="/review/?risk=3&amp;sort=age"' in some
    assert desk.get(f"/review/arrivals/?since={since}&q=nothing").status_code == 204
    assert desk.get("/review/arrivals/?since=x").status_code == 204
