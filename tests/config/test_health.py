"""The two health addresses."""

import pytest
from django.db import connections
from django.test import Client

from config import health

pytestmark = pytest.mark.django_db


def test_alive(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert "no-store" in answer.headers["Cache-Control"]


def test_ready(client: Client) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "database": "ok", "broker": "ok"})


def test_not_ready_before_the_migrations(client: Client) -> None:
    health._seen_migrated.clear()
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = 'sessions' RETURNING id, app, name, applied"
        )
        row = cursor.fetchone()
    try:
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["database"]) == (503, "not migrated")
    finally:
        with connections["owner"].cursor() as cursor:
            cursor.execute(
                "INSERT INTO django_migrations OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s)", row
            )


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_reading_only(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405
