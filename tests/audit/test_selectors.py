"""Reading the history: filters, pages, and the API."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client

from access.enums import Scope
from audit import selectors
from audit.actors import Actor, Owner, Via
from audit.models import Event
from audit.sealer import seal
from audit.selectors import Filters
from common.clock import db_clock
from common.cursors import BadCursor
from common.ids import new_id
from tests.access import people
from tests.audit.events import tamper, write, write_one

pytestmark = pytest.mark.django_db
NORTH, SOUTH = UUID(int=1), UUID(int=2)
URL = "/api/v1/audit/events"


def ids(tenant_id: UUID, **filters: object) -> list[UUID]:
    return [event.id for event in selectors.page(tenant_id, Filters(**filters)).rows]  # type: ignore[arg-type]


def test_newest_first_and_only_this_tenants() -> None:
    north = write(NORTH, 3)
    write(SOUTH, 2)
    assert ids(NORTH) == list(reversed(north))


def test_pages_follow_each_other_while_new_events_come_in() -> None:
    north = write(NORTH, 7)
    first = selectors.page(NORTH, size=3)
    write(NORTH, 2)
    second = selectors.page(NORTH, cursor=first.next_cursor, size=3)
    third = selectors.page(NORTH, cursor=second.next_cursor, size=3)
    seen = [event.id for page in (first, second, third) for event in page.rows]
    assert seen == list(reversed(north))
    assert third.next_cursor == ""


def test_events_of_one_instant_are_neither_lost_nor_shown_twice() -> None:
    north = write(NORTH, 6)
    tamper("UPDATE audit_event SET at = '2026-01-01'")
    seen, cursor = [], ""
    for _ in range(3):
        page = selectors.page(NORTH, cursor=cursor, size=2)
        seen += [event.id for event in page.rows]
        cursor = page.next_cursor
    assert seen == sorted(north, reverse=True)


def test_each_filter_finds_its_own() -> None:
    run, subject = new_id(), new_id()
    write(NORTH, 2)
    other = Event.objects.earliest("at")
    one = write_one(
        NORTH, kind="proposal.approved", subject_type="proposal", subject_id=subject, run_id=run, digest="ab"
    )
    event = Event.objects.get(id=one)
    for filters in (
        {"kind": "proposal.approved"}, {"kind": "proposal."}, {"subject_type": "proposal"}, {"subject_id": subject},
        {"run_id": run}, {"digest": "ab"}, {"since": event.at}, {"kind": "proposal.", "run_id": run},
    ):  # fmt: skip
        assert ids(NORTH, **filters) == [one], filters
        assert ids(SOUTH, **filters) == [], filters
    assert ids(NORTH, until=event.at, since=other.at + timedelta(microseconds=1)) == ids(NORTH)[1:2]
    assert ids(NORTH, kind="proposal") == []
    assert len(ids(NORTH, actor="clock:sweep")) == 3
    assert ids(NORTH, actor="user:1") == []


def test_the_actor_filter_finds_what_was_done_on_behalf_of_somebody() -> None:
    from django.db import transaction

    from audit.actions import record_many
    from tests.audit.events import entry

    by = Actor(performed_by="api:intake", on_behalf_of="user:1", via=Via.TOKEN, owner=Owner.AUTOMATION)
    with transaction.atomic():
        (one,) = record_many([entry(NORTH, by=by)])
    assert ids(NORTH, actor="user:1") == ids(NORTH, actor="api:intake") == [one]


@pytest.mark.parametrize("cursor", ["x", "AAAA", "Zm9v", "é", "YSBi"])
def test_a_cursor_from_elsewhere_is_refused(cursor: str) -> None:
    with pytest.raises(BadCursor):
        selectors.page(NORTH, cursor=cursor)


# --- the API -----------------------------------------------------------------------------------
@pytest.fixture
def bearer() -> dict[str, str]:
    text, _ = people.token(people.agent(people.tenant("north")), Scope.AUDIT_READ)
    return {"Authorization": f"Bearer {text}"}


def test_the_api_shows_the_tokens_own_tenant(client: Client, bearer: dict[str, str]) -> None:
    other = people.tenant("south")
    answer = client.get(URL, headers=bearer).json()
    assert [event["kind"] for event in answer["events"]] == [
        "token.issued",
        "agent.created",
        "tenant.created",
    ]
    assert str(other.id) not in str(answer)
    assert answer["next_cursor"] == ""
    assert answer["events"][0]["seq"] is None
    seal(db_clock)
    assert [event["seq"] for event in client.get(URL, headers=bearer).json()["events"]] == [3, 2, 1]


def test_the_api_filters_and_pages(client: Client, bearer: dict[str, str]) -> None:
    first = client.get(URL, {"limit": 2}, headers=bearer).json()
    assert len(first["events"]) == 2
    second = client.get(URL, {"limit": 2, "cursor": first["next_cursor"]}, headers=bearer).json()
    assert [event["kind"] for event in second["events"]] == ["tenant.created"]
    found = client.get(URL, {"kind": "agent.", "actor": "command_line:tests"}, headers=bearer).json()
    assert [event["kind"] for event in found["events"]] == ["agent.created"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"cursor": "x"}, "bad_cursor"),
        ({"run_id": "x"}, "invalid"),
        ({"since": "2026-01-01T00:00:00"}, "invalid"),
        ({"kind": "a\x00b"}, "bad_text"),
        ({"kind": "a" * 300}, "invalid"),
    ],
)
def test_the_api_refuses_what_it_does_not_understand(
    client: Client, bearer: dict[str, str], query: dict[str, str], code: str
) -> None:
    answer = client.get(URL, query, headers=bearer)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_the_api_needs_the_scope(client: Client) -> None:
    text, _ = people.token(people.agent(people.tenant()), Scope.RUNS_READ)
    answer = client.get(URL, headers={"Authorization": f"Bearer {text}"})
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
    assert client.get(URL).json()["code"] == "not_authenticated"
