"""Limits: 429 with Retry-After, whoever asks and whatever their proxy says; too long is refused unread.

Security list S15 and S39, field report M1.
"""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from approvals.models import Decision, Proposal
from config.limits import DECIDING
from tests.api.callers import as_json, automation, proposal_body, refused, run_body, token_for
from tests.api.conftest import World, world
from tests.api.test_hooks import Sender
from tests.workflows.conftest import desk

__all__ = ["desk", "world"]
pytestmark = pytest.mark.django_db


def limited(answer: Any) -> None:
    details = refused(answer, 429, "rate_limited")
    assert int(answer["Retry-After"]) == details["retry_after"] >= 1


def test_a_token_has_its_rate_whatever_address_it_claims(world: World, settings: Any) -> None:
    settings.PLACET_REQUESTS_PER_MINUTE = 5
    codes = [
        world.agent.client.get(
            "/api/v1/runs",
            headers=world.agent.headers | {"X-Forwarded-For": f"192.0.2.{n}", "X-Real-IP": f"10.0.0.{n}"},
        ).status_code
        for n in range(8)
    ]
    assert codes == [200] * 5 + [429] * 3
    limited(world.agent.get("/runs"))
    limited(world.agent.post("/runs", b"{"))
    assert world.foreign.get("/runs").status_code == 200


def test_a_bulk_counts_by_its_items(world: World, settings: Any) -> None:
    settings.PLACET_REQUESTS_PER_MINUTE = 5
    bulk = [run_body(f"e-{n}") for n in range(30)]
    assert as_json(world.agent.post("/runs", bulk))["created"] == 30
    limited(world.agent.post("/runs", bulk))


def test_a_tenant_has_a_rate_over_all_its_tokens(world: World, settings: Any) -> None:
    settings.PLACET_TENANT_REQUESTS_PER_MINUTE = 5
    others = [automation(token_for(world.desk.tenant, f"other-{n}")) for n in range(6)]
    assert [other.get("/runs").status_code for other in others] == [200] * 5 + [429]
    assert world.foreign.get("/runs").status_code == 200


def test_an_endpoint_has_its_rate_and_only_proven_requests_use_it_up(world: World, settings: Any) -> None:
    settings.PLACET_REQUESTS_PER_MINUTE = 3
    sender = Sender(world.desk)
    for _ in range(5):
        refused(sender.post(signed=b"{}"), 401, "hook_refused")
    assert [sender.post(identity=f"m{n}").status_code for n in range(3)] == [202] * 3
    limited(sender.post(identity="m4"))


def test_a_person_decides_at_the_pace_of_people_through_the_api(world: World, settings: Any) -> None:
    settings.PLACET_DECISIONS_PER_MINUTE = 2
    proposals = [
        world.proposed(f"k-{n}", arguments={"order": str(n), "amount": "1.00", "currency": "EUR"})
        for n in range(5)
    ]
    answers = [world.decide(proposal) for proposal in proposals]
    assert [answer.status_code for answer in answers] == [200] * 4 + [429]
    limited(answers[4])
    assert Decision.objects.count() == 4
    as_json(world.decide(proposals[4], person=world.ben))


def test_and_through_the_pages_where_what_was_written_is_given_back(world: World, settings: Any) -> None:
    settings.PLACET_DECISIONS_PER_MINUTE = 1
    proposal = world.proposed()
    client = Client()
    client.force_login(world.desk.ada)
    address = f"/review/{proposal['id']}/decide/"
    answers = [client.post(address, {"kind": "reject", "reason": "<b>mine</b>"}) for _ in range(3)]
    assert answers[2].status_code == 429
    assert int(answers[2]["Retry-After"]) >= 1
    assert "&lt;b&gt;mine&lt;/b&gt;" in answers[2].content.decode()
    assert client.get("/review/").status_code == 200
    assert not Proposal.objects.exclude(status="pending").exists()


def test_the_views_that_decide_exist_under_these_names() -> None:
    some = "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"
    known = {
        "approvals:decide": "proposal_id",
        "approvals:alike": "proposal_id",
        "api-v1:decide": "proposal_id",
        "api-v1:say": "command_id",
    }
    assert set(known) == DECIDING
    addresses = {reverse(name, kwargs={word: some}) for name, word in known.items()}
    assert addresses == {
        f"/review/{some}/decide/", f"/review/{some}/alike/",
        f"/api/v1/proposals/{some}/decisions", f"/api/v1/commands/{some}/attestations",
    }  # fmt: skip


def test_an_organisation_has_a_limit_of_open_proposals(world: World, settings: Any) -> None:
    settings.PLACET_OPEN_PROPOSALS_TENANT = 1
    first = world.proposed()
    other = automation(token_for(world.desk.tenant, "other"))
    details = refused(other.post("/proposals", proposal_body("k-2")), 429, "open_limit")
    assert (details["whose"], details["limit"]) == ("organisation", 1)
    as_json(world.agent.post("/proposals", proposal_body("k-1")))
    assert first["status"] == "pending"


@pytest.mark.parametrize("path", ["/api/v1/runs", "/api/v1/hooks/x", "/sign-in/", "/review/", "/nowhere"])
@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x", "text/plain"])
def test_ten_megabytes_are_refused_before_they_are_read(path: str, kind: str) -> None:
    class Unread:
        def read(self, *_: Any) -> bytes:
            raise AssertionError("the body was read")

        readline = read

    answer = Client().generic(
        "POST", path, b"", content_type=kind, CONTENT_LENGTH="10000000", **{"wsgi.input": Unread()}
    )
    assert answer.status_code == 413
    if path.startswith("/api/"):
        refused(answer, 413, "too_large")


@pytest.mark.parametrize("length", ["-1", "1e3", "٣", "9" * 5000])
def test_a_length_that_is_no_number_is_refused(length: str) -> None:
    answer = Client().generic("POST", "/sign-in/", b"", CONTENT_LENGTH=length)
    assert answer.status_code in (400, 413)
