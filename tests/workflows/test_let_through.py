"""What somebody let through: whose, by which policy, on what, and what became of it; the count is the list's."""

import csv
import io
import re
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from approvals.models import Decision
from audit.models import Event
from tests import factories, rows
from tests.browser.desks import REFUSED
from tests.database import captured_queries, statements
from tests.workflows.conftest import Desk
from tests.workflows.toy import NOTHING_CAME
from workflows.authoring import Verdict

pytestmark = pytest.mark.django_db
ADDRESS = "/history/let-through/"


@pytest.fixture
def auditor(desk: Desk, client: Client) -> Client:
    client.force_login(factories.make_user(desk.tenant, "aude", roles=[Role.AUDITOR], display_name="Aude L."))
    return client


def listed(client: Client, **query: Any) -> tuple[int, list[str], str]:
    """The count that the page says, the targets it lists, and its text."""
    answer = client.get(ADDRESS, query)
    assert answer.status_code == 200
    html = answer.content.decode()
    targets = re.findall(r' on <bdi class="val">([^<]*)</bdi>', html)
    text = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    counted = re.search(r"What was let through ([\d,]+) approved", text)
    assert counted is not None
    return int(counted[1]), targets, text


@pytest.mark.parametrize("role", list(Role))
def test_readers_of_the_history_read_it(desk: Desk, client: Client, role: Role) -> None:
    client.force_login(factories.make_user(desk.tenant, roles=[role]))
    assert client.get(ADDRESS).status_code == (200 if role in (Role.AUDITOR, Role.ADMIN) else 403)


def test_each_filter_finds_what_it_names_and_the_count_is_that_of_the_list(
    desk: Desk, auditor: Client
) -> None:
    desk.approved(order="1")
    desk.decide(desk.proposed(order="2"), user=desk.ben)
    desk.decide(desk.proposed(order="3"), "reject")
    desk.proposed(order="4")
    factories.make_proposal(tenant=factories.make_tenant("quay"), status="approved", target="order:9")
    for query, wanted in (
        ({}, ["order:2", "order:1"]), ({"person": "ada"}, ["order:1"]), ({"person": str(desk.ben.pk)}, ["order:2"]),
        ({"person": f"user:{desk.ben.pk}"}, ["order:2"]), ({"automation": "api:tester"}, ["order:2", "order:1"]),
        ({"automation": "tester"}, ["order:2", "order:1"]), ({"automation": "api:other"}, []),
        ({"workflow": "toy-pay", "policy": "1"}, ["order:2", "order:1"]), ({"policy": "2"}, []),
        ({"operation": "toy.pay"}, ["order:2", "order:1"]), ({"operation": "toy.other"}, []),
        ({"target": "order:1"}, ["order:1"]), ({"target": "1"}, ["order:1"]),
        ({"when": "hour"}, ["order:2", "order:1"]),
        ({"until": "2020-01-01T00:00"}, []), ({"since": "2020-01-01T00:00", "person": "ben"}, ["order:2"]),
        ({"via": "rule"}, []), ({"via": "people"}, ["order:2", "order:1"]), ({"person": "nobody"}, []),
    ):  # fmt: skip
        count, targets, _ = listed(auditor, **query)
        assert (count, targets) == (len(wanted), wanted), query


def test_what_became_of_each_stands_beside_it(desk: Desk, auditor: Client) -> None:
    desk.approved(order="1")
    desk.work()
    assert "Confirmed" in listed(auditor, target="1")[2]
    desk.approved(order="2")
    desk.till.answers.append(NOTHING_CAME)
    desk.work()
    assert "Unknown no complete answer" in listed(auditor, target="2")[2]
    desk.approved(order="3")
    desk.till.answers.append(REFUSED)
    desk.work()
    assert "Refused over limit" in listed(auditor, target="3")[2]
    desk.approved(order="4")
    assert "Ready" in listed(auditor, target="4")[2]
    run = factories.make_run(desk.tenant)
    factories.make_proposal(run, status="approved", mode="shadow", target="order:5")
    assert "Never sent shadow: nothing is sent" in listed(auditor, target="5")[2]


def test_all_of_a_quorum_stand_in_the_row(desk: Desk, auditor: Client) -> None:
    desk.till.verdict = Verdict("ask_two", "toy.two", "It has become risky.")
    proposal = desk.proposed()
    desk.decide(proposal)
    assert listed(auditor)[0] == 0
    desk.decide(proposal, user=desk.ben)
    assert "ada, ben" in listed(auditor, person="ben")[2].replace(" ,", ",")


def test_what_a_rule_let_through_without_people_is_found(desk: Desk, auditor: Client) -> None:
    desk.till.verdict = Verdict("auto", "toy.auto", "It is small.")
    desk.start(workflow="toy-execute", order="7")
    desk.advance()
    count, targets, text = listed(auditor, via="rule")
    assert (count, targets) == (1, ["order:7"])
    assert "rule toy.auto" in text
    assert listed(auditor, via="people")[0] == 0


def test_pages_follow_each_other_without_gap(desk: Desk, auditor: Client) -> None:
    for number in range(53):
        run = factories.make_run(desk.tenant)
        factories.make_proposal(
            run, status="approved", target=f"order:{number}", business_key=f"hmac:{number}"
        )
    first, second = auditor.get(ADDRESS), None
    older = re.search(r'href="([^"]*cursor=[^"]*)" rel="next"', first.content.decode())
    assert older is not None
    second = auditor.get(older[1].replace("&amp;", "&"))
    seen = [
        re.findall(r'on <bdi class="val">order:(\d+)<', page.content.decode()) for page in (first, second)
    ]
    assert [len(page) for page in seen] == [50, 3]
    assert sorted(map(int, seen[0] + seen[1])) == list(range(53))
    assert auditor.get(ADDRESS, {"cursor": "nonsense"}).status_code == 200


def test_it_asks_the_database_equally_often_however_long_it_is(desk: Desk, auditor: Client) -> None:
    desk.approved(order="1")
    auditor.get(ADDRESS)  # what a process reads once
    with captured_queries() as one:
        auditor.get(ADDRESS)
    for number in range(2, 5):
        desk.approved(order=str(number))
    with captured_queries() as four:
        auditor.get(ADDRESS)
    assert len(statements(four)) == len(statements(one)) > 0


def test_the_list_is_taken_along_whole_and_written_down(desk: Desk, auditor: Client) -> None:
    desk.approved(order="1")
    desk.decide(desk.proposed(order="2"), user=desk.ben)
    answer = auditor.post(f"{ADDRESS}list/", {"as": "csv", "person": "ben"})
    made = answer.content.decode()
    [row] = csv.DictReader(io.StringIO(made))
    assert (row["approved_by"], row["target"], row["became"]) == ("ben", "order:2", "Ready")
    event = Event.objects.get(kind="history.exported")
    assert event.body == {"list": "let-through", "as": "csv", "count": 1, "filters": {"person": "ben"}}
    assert answer.headers["Content-Disposition"] == 'attachment; filename="let-through.csv"'


def test_what_somebody_approved_in_anothers_stead_is_found_by_both_names(desk: Desk, auditor: Client) -> None:
    xan, ada = (
        factories.make_user(desk.tenant, "xan", display_name="Xan Oduya"),
        factories.make_user(desk.tenant, "alma", display_name="Alma Lind"),
    )
    mine, own = (
        factories.make_proposal(
            factories.make_run(desk.tenant), status="approved", target=f"order:{n}", business_key=f"hmac:{n}"
        )
        for n in (1, 2)
    )
    rows.decision_row(
        mine, xan, in_stead_of=ada, group=factories.make_group(desk.tenant), performed_by=f"user:{xan.pk}"
    ).save()
    rows.decision_row(own, xan, performed_by=f"user:{xan.pk}").save()
    assert listed(auditor, via="deputy")[1] == ["order:1"]
    for person in ("xan", "alma", str(xan.pk), f"user:{ada.pk}"):
        assert listed(auditor, via="deputy", person=person)[1] == ["order:1"], person
    assert listed(auditor, via="deputy", person="ben")[0] == 0
    assert listed(auditor, person="xan")[0] == 2
    assert listed(auditor, person="alma")[0] == 0


def test_a_person_is_named_and_leads_to_what_else_they_let_through(desk: Desk, auditor: Client) -> None:
    desk.decide(desk.proposed(order="2"), user=desk.ben)
    passed = f"{ADDRESS}?person={desk.ben.pk}"
    assert f'href="{passed}"' in auditor.get(ADDRESS).content.decode()
    run = Decision.objects.get(user=desk.ben).proposal.run_id
    assert f'href="{passed}"' in auditor.get(f"/history/runs/{run}/").content.decode()
    page = listed(auditor, person=str(desk.ben.pk))[2]
    assert ("Person: ben" in page, f"Person: {desk.ben.pk}" in page) == (True, False)


def test_nobody_of_another_organisation_is_named(desk: Desk, auditor: Client) -> None:
    stranger = factories.make_user(factories.make_tenant("quay"), "stan", display_name="Stan Secret")
    assert "Stan Secret" not in listed(auditor, person=str(stranger.pk))[2]
    assert "Stan Secret" not in auditor.get("/history/", {"actor": f"user:{stranger.pk}"}).content.decode()
