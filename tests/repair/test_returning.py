"""What keeps coming back: counted in its span and beside the one before, by what people said and by what was seen."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from access.models import User
from repair.models import RepairCause, RepairMove, RepairPacket
from repair.returning import Returning, learned
from tests import factories, rows
from tests.repair.choosing import CAUSE, Operator, lapsed, operator, refused
from tests.workflows.conftest import Desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def opal(desk: Desk) -> Operator:
    return operator(desk)


def stopped(desk: Desk, days_ago: float, cause: str = "command_dead", **fields: Any) -> RepairPacket:
    run = factories.make_run(desk.tenant)
    at = rows.now() - timedelta(days=days_ago)
    return factories.make_packet(run, cause=cause, opened_at=at, **fields)


def said(packet: RepairPacket, user: User, title: str, *, days_ago: float = 0, refused: str = "") -> None:
    at = rows.now() - timedelta(days=days_ago)
    cause, _ = RepairCause.objects.get_or_create(
        tenant_id=packet.tenant_id, title=title, defaults={"created_by": "user:1", "created_at": at}
    )
    RepairMove.objects.create(
        tenant_id=packet.tenant_id,
        packet=packet,
        choice="close",
        user=user,
        at=at,
        root_cause=cause,
        refused=refused,
    )


def counts(found: tuple[Returning, ...]) -> list[tuple[str, int, int, str]]:
    return [(row.words, row.times, row.before, row.trend) for row in found]


def test_each_span_has_its_own_and_the_one_before_beside_it(desk: Desk) -> None:
    for days in (1, 2, 8, 12, 40):
        stopped(desk, days)
    stopped(desk, 3, cause="command_refused")
    now = rows.now()
    dead, refusals = "Given up after its tries", "Provider refused"
    week, month = learned(desk.tenant.pk, "7", now), learned(desk.tenant.pk, "", now)
    assert counts(week.seen) == [(dead, 2, 2, "as often"), (refusals, 1, 0, "new")]
    assert (month.days, counts(month.seen)) == (30, [(dead, 4, 1, "more"), (refusals, 1, 0, "new")])
    assert counts(learned(desk.tenant.pk, "31", now).seen) == counts(month.seen), "a span that is not offered"


def test_what_people_said_counts_once_a_case_and_not_where_it_was_refused(desk: Desk, opal: Operator) -> None:
    mine, other = stopped(desk, 1), stopped(desk, 1)
    said(mine, opal.user, "The till was shut")
    said(other, opal.user, "The till was shut", refused="packet_moved")
    said(other, opal.user, "The till was shut", days_ago=40)
    [row] = learned(desk.tenant.pk, "", rows.now()).said
    assert (row.words, row.times, row.before) == ("The till was shut", 1, 1)


def test_how_many_settled_cases_nobody_has_explained(desk: Desk, opal: Operator) -> None:
    explained, silent = (stopped(desk, 1, status="resolved") for _ in range(2))
    stopped(desk, 1)
    said(explained, opal.user, CAUSE)
    assert learned(desk.tenant.pk, "", rows.now()).unsaid == 1
    said(silent, opal.user, CAUSE)
    assert learned(desk.tenant.pk, "", rows.now()).unsaid == 0


def test_another_organisation_counts_for_itself(desk: Desk) -> None:
    stopped(desk, 1)
    assert learned(factories.make_tenant("lagoon").pk, "", rows.now()).seen == ()


def test_a_choice_brings_its_cause_to_the_page(desk: Desk, opal: Operator) -> None:
    """As operators do it: two cases, one of them closed with a cause of the team's own."""
    _, packet = refused(desk, "1")
    lapsed(desk, "2")
    assert opal.choose(packet, "close", cause="new", new_cause="The <b>till</b> was shut").status_code == 302
    html = page(opal.client)
    assert "The &lt;b&gt;till&lt;/b&gt; was shut" in html
    assert "<b>till</b>" not in html
    assert 'href="/repair/?q=command_lapsed&amp;workflow=toy-pay"' in html
    assert 'aria-current="page">30 days' in html


def test_a_page_with_nothing_says_so(opal: Operator) -> None:
    assert "Nothing has stopped in this time." in page(opal.client)


def page(client: Client) -> str:
    answer = client.get("/repair/causes/")
    assert answer.status_code == 200
    return answer.content.decode()
