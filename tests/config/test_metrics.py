"""``/metrics`` counts what is live, and is not public."""

from typing import Any

import pytest
from django.test import Client

from tests.factories import make_command, make_proposal

pytestmark = pytest.mark.django_db


def test_it_counts_what_is_live() -> None:
    make_command(status="unknown")
    make_proposal()
    answer = Client().get("/metrics")
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = answer.content.decode().splitlines()
    assert 'placet_commands{status="unknown"} 1' in lines
    assert 'placet_commands{status="ready"} 0' in lines
    assert 'placet_proposals{status="pending"} 1' in lines
    assert "placet_oldest_due_command_seconds 0.000" in lines


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
def test_what_a_proxy_passes_on_is_not_from_here(header: str) -> None:
    assert Client().get("/metrics", headers={header: "127.0.0.1"}).status_code == 404


def test_another_machine_sees_nothing() -> None:
    assert Client().get("/metrics", REMOTE_ADDR="192.0.2.1").status_code == 404


def test_with_a_token_only_the_token_counts(settings: Any) -> None:
    settings.PLACET_METRICS_TOKEN = "let me see"
    elsewhere = {"REMOTE_ADDR": "192.0.2.1"}
    given = {"Authorization": "Bearer let me see"}
    assert Client().get("/metrics", headers=given, **elsewhere).status_code == 200
    assert Client().get("/metrics", headers={"Authorization": "Bearer guess"}, **elsewhere).status_code == 404
    assert Client().get("/metrics").status_code == 404


def test_it_is_only_read() -> None:
    assert Client().post("/metrics").status_code == 405
