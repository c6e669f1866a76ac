"""Five megabytes of evidence: taken, bound whole, and read a page at a time."""

from typing import Any

import pytest
from django.test import Client

from approvals.models import Evidence
from approvals.screens.evidence import PAGE_CHARACTERS
from common.digests import evidence_digest
from tests.api.callers import as_json, proposal_body, refused
from tests.api.conftest import World, world
from tests.workflows.conftest import desk

__all__ = ["desk", "world"]
pytestmark = pytest.mark.django_db

LINE = "2026-09-19T13:50:00Z order 1042 was looked at, and nothing was wrong with it.\n"
LOG = LINE * (5_000_000 // len(LINE)) + "The last line."


def with_evidence(content: Any) -> dict[str, Any]:
    piece = {
        "kind": "log",
        "title": "A log",
        "ref": "l-1",
        "content": content,
        "captured_at": "2026-09-19T13:50:00Z",
    }
    return proposal_body(evidence=[piece])


def test_it_is_bound_as_it_came_and_the_page_stays_small(world: World) -> None:
    made = as_json(world.agent.post("/proposals", with_evidence(LOG)), 201)
    [row] = Evidence.objects.filter(proposal_id=made["id"])
    assert bytes(row.content).decode() == LOG
    assert row.digest == evidence_digest(bytes(row.salt), LOG.encode())
    reviewer = Client()
    reviewer.force_login(world.desk.ada)
    page = reviewer.get(f"/review/{made['id']}/")
    assert len(page.content) < 120_000
    assert f'href="/review/{made["id"]}/evidence/?piece=1"' in page.content.decode()
    last = -(-len(LOG) // PAGE_CHARACTERS)
    text = reviewer.get(f"/review/{made['id']}/evidence/?piece=1&page={last}").content.decode()
    assert "The last line." in text
    assert reviewer.get(f"/review/{made['id']}/evidence/?piece=1&page={last + 1}").status_code == 404
    assert as_json(world.decide(made))["result"] == "approved"


def test_more_than_eight_mebibytes_are_refused_before_they_are_read(world: World) -> None:
    answer = world.agent.post("/proposals", with_evidence("x" * 8_388_608))
    assert refused(answer, 413, "too_large") == {"limit": 8_388_608}


def test_arguments_have_no_more_room_than_before(world: World) -> None:
    body = proposal_body()
    arguments = body["arguments"] | {"note": "x" * 300_000}  # type: ignore[operator]
    answer = world.agent.post("/proposals", body | {"arguments": arguments})
    refused(answer, 422, "invalid_arguments")


def test_a_form_as_large_is_refused(world: World) -> None:
    reviewer = Client()
    reviewer.force_login(world.desk.ada)
    answer = reviewer.post(
        "/review/", b"a=" + b"x" * 5_000_000, content_type="application/x-www-form-urlencoded"
    )
    assert answer.status_code == 413
