"""Instants of any zone reach the database, from pages and from the API, and none of them is an error."""

from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.db import connection, connections, transaction
from django.test import Client

from access.enums import Role
from common.dbroles import as_application
from common.prepared import fetch
from tests.api.callers import automation, token_for
from tests.factories import make_tenant, make_user

pytestmark = pytest.mark.django_db

ODD = [
    "9999-12-31T23:59:59+23:59",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    "0001-01-01T00:00:00-23:59",
    "2026-01-01T00:00:00+16:00",
    "2026-01-01T00:00:00-23:59",
    "0001-01-01T00:00:00Z",
]


def in_database(value: datetime) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT (%s::timestamptz AT TIME ZONE 'UTC')::text", [value])
        return cursor.fetchone()[0]


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("2026-05-01T12:00:00+23:59", "2026-04-30 12:01:00"),
        ("2026-05-01T12:00:00-16:00", "2026-05-02 04:00:00"),
        ("2026-05-01T12:00:00.000001+05:30", "2026-05-01 06:30:00.000001"),
        ("9999-12-31T23:59:59-01:00", "9999-12-31 23:59:59.999999"),
        ("0001-01-01T00:00:00+01:00", "0001-01-01 00:00:00"),
    ],
)
def test_an_instant_is_the_same_in_whatever_zone(text: str, stored: str) -> None:
    assert in_database(datetime.fromisoformat(text)) == stored
    tenant = make_tenant()
    with as_application(tenant.pk):
        assert in_database(datetime.fromisoformat(text)) == stored
        cursor = psycopg.Cursor(connections["app"].connection)
        for given in ("%s", "%b", "%t"):  # bound by the server, in both formats
            cursor.execute(f"SELECT {given}::timestamptz", [datetime.fromisoformat(text)])
            found: Any = cursor.fetchone()
            assert found[0].astimezone(UTC).isoformat(" ").replace("+00:00", "") == stored


def test_no_instant_in_an_address_breaks_a_page_or_the_api() -> None:
    tenant = make_tenant()
    client = Client()
    client.force_login(make_user(tenant, "ada", roles=[Role.ADMIN, Role.REVIEWER]))
    agent = automation(token_for(tenant))
    for text in ODD:
        for page in ("/history/", "/review/arrivals/", "/review/", "/runs/", "/repair/"):
            for name in ("since", "until", "after", "before", "at"):
                status = client.get(page, {name: text, "when": "between"}).status_code
                assert status < 500, (page, name, text)
        for name in ("since", "until", "occurred_after", "occurred_before"):
            status = agent.get("/audit/events", **{name: text}).status_code
            assert status in (200, 422), (name, text)
        for path, listed in (("/runs", "runs"), ("/proposals", "proposals"), ("/audit/events", "events")):
            place = urlsafe_b64encode(f"{listed} {text} {tenant.pk}".encode()).decode().rstrip("=")
            assert agent.get(path, cursor=place).status_code in (200, 422), (path, text)


@pytest.mark.parametrize("fraction", ["", ".1", ".000001", ".123456", ".99999"])
@pytest.mark.parametrize("day", ["0001-01-01", "1999-12-31", "2026-05-01", "9999-12-31"])
def test_a_prepared_statement_reads_instants_as_any_other_does(day: str, fraction: str) -> None:
    """It has a reader of its own, several times quicker."""
    query = f"SELECT '{day} 12:34:56{fraction}+00'::timestamptz"
    with connection.cursor() as cursor:
        cursor.execute(query)
        as_ever = cursor.fetchone()[0]
    assert fetch(query) == [(as_ever,)]
    assert fetch(query)[0][0].tzinfo is UTC


def test_in_another_time_zone_of_the_session_it_is_the_same_instant() -> None:
    with transaction.atomic():
        fetch("SELECT set_config('TimeZone', 'Asia/Kolkata', true)")
        [(read,)] = fetch("SELECT '2026-05-01 12:00:00+00'::timestamptz")
    assert (read, read.tzinfo) == (datetime(2026, 5, 1, 12, tzinfo=UTC), UTC)
