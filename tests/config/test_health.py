"""The two health addresses."""

import pytest
from celery import current_app
from django.db import connections, transaction
from django.test import Client

from audit.actions import record
from audit.actors import clock_actor
from audit.sealer import seal
from common.clock import db_clock
from common.heartbeat import note
from common.ids import new_id
from config import health
from tests.workflows.later import as_superuser

pytestmark = pytest.mark.django_db


def test_alive(client: Client) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert "no-store" in answer.headers["Cache-Control"]


def test_ready(client: Client) -> None:
    for kind, name in (("worker", "here-1"), ("sweep", "here-2")):
        note(kind, name)
    seal(db_clock)
    answer = client.get("/readyz")
    names = ("database", "migrations", "broker", "workers", "sweep", "sealer", "content_keys")
    said = answer.json()
    assert max(said.pop("seconds").values()) < 60
    assert (answer.status_code, said) == (200, {"status": "ok", **dict.fromkeys(names, "ok")})


def test_who_is_gone_is_named_with_the_time_since(client: Client) -> None:
    """A web server takes decisions all the same, so it stays in service."""
    note("sweep", "secret-host-2")
    with transaction.atomic():
        tenant = new_id()
        record(
            by=clock_actor(),
            kind="tenant.created",
            tenant_id=tenant,
            subject_type="tenant",
            subject_id=tenant,
        )
    as_superuser(
        "UPDATE common_heartbeat SET seen_at = seen_at - interval '5 minutes', knows = '[\"pay@7\"]'"
    )
    as_superuser("UPDATE audit_event SET at = at - interval '3 minutes'")
    answer = client.get("/readyz")
    said = answer.json()
    assert answer.status_code == 200
    assert (said["workers"], said["sweep"], said["sealer"]) == ("none", "stale", "stale")
    assert said["seconds"]["workers"] is None
    assert said["seconds"]["sweep"] == pytest.approx(300, abs=30)
    assert said["seconds"]["sealer"] == pytest.approx(180, abs=30)
    assert not any(word in answer.content.decode() for word in ("secret-host", "pay@7", "refunds"))


def test_a_broker_that_is_down_is_named_and_does_not_count(client: Client) -> None:
    app = current_app._get_current_object()
    usual, app.conf.broker_url = app.conf.broker_url, "redis://127.0.0.1:1/0"
    try:
        answer = client.get("/readyz")
    finally:
        app.conf.broker_url = usual
    assert (answer.status_code, answer.json()["broker"]) == (200, "down")


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
        assert (answer.json()["migrations"], answer.json()["workers"]) == ("missing", "unknown")
    finally:
        with connections["owner"].cursor() as cursor:
            cursor.execute(
                "INSERT INTO django_migrations OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s)", row
            )


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_reading_only(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405
