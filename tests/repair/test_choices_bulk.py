"""The same for many: each for itself, bound to what the list showed, with a result for each."""

import re
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from approvals.models import Proposal
from common.clock import db_clock
from repair.choices.bulk import AT_ONCE, Listed, TooMany, choose_many
from repair.choices.registry import BY_CODE, CHOICES
from repair.models import RepairMove
from tests.factories import make_tenant, make_user
from tests.repair.choosing import CAUSE, Operator, lapsed, now, operator, refused, unknown
from tests.workflows.conftest import Desk, person
from tests.workflows.later import end_of, fresh
from workflows.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture
def opal(desk: Desk) -> Operator:
    return operator(desk)


def listed(html: str) -> list[str]:
    return re.findall(r'name="item" value="([^"]+)"', html)


def page(opal: Operator, address: str) -> str:
    answer = opal.client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_several_are_asked_again_and_each_has_its_result(desk: Desk, opal: Operator) -> None:
    stops = [lapsed(desk, order) for order in ("1", "2", "3")]
    _, other = refused(desk, "4")
    html = page(opal, "/repair/bulk/ask_again/")
    items = listed(html)
    assert len(items) == 3
    assert "not_to_be_repeated" in html  # the refused one says why it is none of them
    moved = stops[1][1]
    opal.choose(moved, "take")
    answer = opal.client.post("/repair/bulk/ask_again/", {"item": items, "cause": CAUSE, "words": ""})
    text = answer.content.decode()
    assert "2 of 3 done" in text
    assert "packet_moved" in text
    asked = Proposal.objects.filter(status="pending").values_list("run_id", flat=True)
    assert set(asked) == {stops[0][1].run_id, stops[2][1].run_id}
    assert [now(packet).status for _, packet in stops] == ["resolved", "in_progress", "resolved"]
    assert now(other).status == "open"


def test_each_case_has_a_dry_run_of_its_own(desk: Desk, opal: Operator) -> None:
    (first, _), (second, _) = lapsed(desk, "1"), unknown(desk, "2")
    html = page(opal, "/repair/bulk/cancel/")
    rows = html.split('name="item"')[1:]
    assert len(rows) == 2
    said = {order: next(row for row in rows if f"order:{order}" in row) for order in ("1", "2")}
    assert "what waits for approval is withdrawn" in said["1"]
    assert "is on its way or in doubt" in said["2"]
    assert "is on its way or in doubt" not in said["1"]
    assert (end_of(first)["command"], end_of(second)["command"]) == (
        "void(lapsed)",
        "unknown",
    )  # a look changes nothing


def test_only_what_is_ticked_and_only_what_the_filters_choose(desk: Desk, opal: Operator) -> None:
    (_, first), (_, second) = refused(desk, "1"), refused(desk, "2")
    unknown(desk, "3")
    items = listed(page(opal, "/repair/bulk/cancel/?view=person"))
    assert {item[:36] for item in items} == {str(first.pk), str(second.pk)}
    [mine] = [item for item in items if item.startswith(str(first.pk))]
    answer = opal.client.post(
        "/repair/bulk/cancel/?view=person", {"item": [mine], "cause": CAUSE, "words": "all over"}
    )
    assert "1 of 1 done" in answer.content.decode()
    assert (Run.objects.get(pk=first.run_id).status, now(second).status) == ("cancelled", "open")


def test_nothing_ticked_or_nothing_said_does_nothing(desk: Desk, opal: Operator) -> None:
    _, packet = refused(desk)
    items = listed(page(opal, "/repair/bulk/cancel/"))
    for data in (
        {},
        {"item": items},
        {"item": items, "cause": CAUSE},
        {"item": ["x"], "cause": CAUSE, "words": "y"},
    ):
        assert opal.client.post("/repair/bulk/cancel/", data).status_code == 422
    assert now(packet).status == "open"


def test_look_up_many_at_the_provider_without_one_call_in_the_request(desk: Desk, opal: Operator) -> None:
    stops = [unknown(desk, order) for order in ("1", "2")]
    items, asked = listed(page(opal, "/repair/bulk/look_up/")), desk.till.lookups
    opal.client.post("/repair/bulk/look_up/", {"item": items})
    assert desk.till.lookups == asked
    assert all(fresh(command).due_at <= db_clock() for command, _ in stops)  # type: ignore[operator]
    assert listed(page(opal, "/repair/bulk/look_up/")) == []


def test_one_request_works_off_only_so_many(desk: Desk, opal: Operator) -> None:
    _, packet = refused(desk)
    case = opal.case(packet)
    rows = [Listed(packet.pk, case.seen)] * (AT_ONCE + 1)
    values: Any = {
        "tenant_id": desk.tenant.pk,
        "typed": {},
        "membership": case.membership,
        "by": person(opal.user),
    }
    with pytest.raises(TooMany):
        choose_many(choice=BY_CODE["take"], listed=rows, clock=db_clock, **values)
    with pytest.raises(TooMany):
        choose_many(choice=BY_CODE["happened"], listed=rows[:1], clock=db_clock, **values)


def test_what_needs_a_look_at_each_case_is_not_for_many(desk: Desk, opal: Operator) -> None:
    for choice in CHOICES:
        expected = 200 if choice.in_bulk else 404
        assert opal.client.get(f"/repair/bulk/{choice.code}/").status_code == expected


def test_another_tenants_case_is_not_there(desk: Desk, opal: Operator) -> None:
    _, packet = refused(desk)
    item = listed(page(opal, "/repair/bulk/take/"))
    elsewhere = make_tenant("elsewhere")
    client = Client()
    client.force_login(make_user(elsewhere, "eve", roles=[Role.ADMIN]))
    text = client.post("/repair/bulk/take/", {"item": item}).content.decode()
    assert "results-title" not in text
    assert str(packet.pk) not in text
    assert (now(packet).status, RepairMove.objects.count()) == ("open", 0)
