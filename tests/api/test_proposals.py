"""``/proposals``: an agent proposes one action, reads it, takes it back, and replaces it."""

import hashlib
from base64 import b64decode
from datetime import datetime
from typing import Any

import pytest

from approvals.models import Evidence, Proposal
from common.digests import contract_digest
from common.ids import new_id
from common.strictjson import canonicalize, parse
from tests.api.callers import as_json, automation, proposal_body, refused, token_for
from tests.api.conftest import World
from workflows.authoring import Verdict
from workflows.models import Run, Step

pytestmark = pytest.mark.django_db
ARGUMENTS = {"order": "1042", "amount": "10.00", "currency": "EUR"}


def test_a_proposal_makes_a_run_of_its_own(world: World) -> None:
    proposal = world.proposed()
    assert set(proposal) >= {"id", "run_id", "digest", "material_digest", "status", "decide_by"}
    assert (proposal["status"], proposal["next_action"], proposal["retry_after"]) == ("pending", "wait", 5)
    assert (proposal["votes"], proposal["needed"], proposal["still_needed"]) == (0, 1, 1)
    step = Step.objects.get(run_id=proposal["run_id"])
    assert (step.key, proposal["step"]) == ("action", "action")

    contract = b64decode(proposal["contract"])
    assert contract_digest(contract) == proposal["digest"]
    bound = parse(contract)
    assert isinstance(bound, dict)
    assert (bound["arguments"], bound["actor"], bound["tenant"]) == (ARGUMENTS, "api:intake", "harbour")
    assert canonicalize(bound) == contract


def test_evidence_from_outside_is_marked_asserted_and_shown_by_its_digest(world: World) -> None:
    [piece] = world.proposed()["evidence"]
    assert (piece["title"], piece["asserted"], piece["captured_at"]) == (
        "A message",
        True,
        "2026-09-19T13:50:00Z",
    )
    row = Evidence.objects.get()
    assert (bytes(row.content or b""), row.digest) == (b"Please pay.", piece["digest"])


def test_evidence_may_be_json_or_only_a_reference(world: World) -> None:
    piece = {
        "kind": "order",
        "title": "The order",
        "ref": "order:1042",
        "captured_at": "2026-09-19T13:50:00Z",
    }
    world.proposed(evidence=[piece, piece | {"content": {"b": 1, "a": 2}}])
    assert [bytes(row.content or b"") for row in Evidence.objects.order_by("position")] == [
        b"",
        b'{"a":2,"b":1}',
    ]


def test_the_same_key_and_body_is_the_same_proposal(world: World) -> None:
    first = world.proposed()
    again = as_json(world.agent.post("/proposals", proposal_body()), 200)
    assert (again["id"], again["digest"]) == (first["id"], first["digest"])
    assert Run.objects.count() == 1


def test_the_same_key_with_another_body_is_refused(world: World) -> None:  # field report B6
    first = world.proposed()
    answer = world.agent.post("/proposals", proposal_body(arguments=ARGUMENTS | {"amount": "99.00"}))
    details = refused(answer, 422, "idempotency_key_reused")
    assert details["proposal_id"] == first["id"]
    refused(world.agent.post("/proposals", proposal_body(reason="Another.")), 422, "idempotency_key_reused")
    assert Proposal.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"workflow": "toy-pay"}, 422, "workflow_has_stages"),
        ({"workflow": "unheard-of"}, 404, "unknown_workflow"),
        ({"operation": "toy.steal"}, 422, "operation_not_offered"),
        ({"arguments": {"order": "1042"}}, 422, "invalid_arguments"),
        ({"arguments": ARGUMENTS | {"surplus": 1}}, 422, "invalid_arguments"),
        ({"arguments": ARGUMENTS | {"amount": 10}}, 422, "invalid_arguments"),
        ({"target": "order:7"}, 422, "assertion_failed"),
        ({"pins": {"order:1042": "v0"}}, 422, "assertion_failed"),
        ({"hash": "0" * 64}, 422, "hash_mismatch"),
        ({"supersedes": "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"}, 404, "not_found"),
        ({"supersedes": "nonsense"}, 422, "invalid"),
        ({"digest": "0" * 64}, 422, "invalid"),
        ({"tenant": "lagoon"}, 422, "invalid"),
        ({"actor": "user:1"}, 422, "invalid"),
        ({"key": ""}, 422, "invalid"),
        ({"reason": None}, 422, "invalid"),
        ({"evidence": [{"kind": "a", "title": "b", "ref": "c"}]}, 422, "invalid"),
        ({"evidence": [{"kind": "a", "title": "b", "ref": "c", "captured_at": 1695131400}]}, 422, "invalid"),
        (
            {"evidence": [{"kind": "a", "title": "b", "ref": "c", "captured_at": "2026-09-19"}]},
            422,
            "invalid",
        ),
    ],
)
def test_what_cannot_be_asked_is_never_queued(  # field reports B12, B14
    world: World, changes: dict[str, object], status: int, code: str
) -> None:
    refused(world.agent.post("/proposals", proposal_body(**changes)), status, code)
    assert not Proposal.objects.exists()
    assert not Run.objects.exists()


def test_what_the_policy_refuses_is_asked_of_nobody(world: World) -> None:
    world.desk.till.verdict = Verdict("refuse", "toy.never", "Never.")
    details = refused(world.agent.post("/proposals", proposal_body()), 422, "refused_by_policy")
    assert details == {"rule": "toy.never"}


def test_a_right_hash_and_right_claims_are_taken(world: World) -> None:
    hash_ = hashlib.sha256(canonicalize(ARGUMENTS)).hexdigest()
    world.proposed(hash=hash_, target="order:1042", pins={"order:1042": "v1"})
    world.proposed(key="k-2", hash="sha256:" + hash_)


def test_an_automation_has_no_more_than_so_many_open_proposals(  # field report M1
    world: World, settings: Any
) -> None:
    settings.PLACET_OPEN_PROPOSALS = 2
    first, _ = world.proposed("k-1"), world.proposed("k-2")
    answer = world.agent.post("/proposals", proposal_body("k-3"))
    assert refused(answer, 429, "open_limit") == {"whose": "automation", "limit": 2, "retry_after": 60}
    assert answer["Retry-After"] == "60"
    as_json(world.agent.post("/proposals", proposal_body("k-1")), 200)  # a repetition asks nobody anew
    world.proposed(
        "k-4", arguments=ARGUMENTS | {"amount": "8.00"}, supersedes=first["id"]
    )  # in place of an open one
    other = automation(token_for(world.desk.tenant, "other"))
    as_json(other.post("/proposals", proposal_body("k-5")), 201)
    as_json(world.agent.post(f"/proposals/{_open_one(world)}/withdraw", {"reason": "room"}))
    world.proposed("k-3")


def _open_one(world: World) -> str:
    rows = as_json(world.agent.get("/proposals", status="pending"))["proposals"]
    return next(row["id"] for row in rows if row["proposed_by"] == "api:intake")


def test_a_new_version_takes_the_place_of_the_old_one(world: World) -> None:
    first = world.proposed()
    second = world.proposed("k-2", arguments=ARGUMENTS | {"amount": "8.00"}, supersedes=first["id"])
    assert (second["run_id"], second["step"], second["version"]) == (first["run_id"], first["step"], 2)
    first = as_json(world.agent.get(f"/proposals/{first['id']}"))
    assert (first["status"], first["superseded_by"], first["next_action"]) == (
        "superseded",
        second["id"],
        "stop",
    )
    answer = world.agent.post("/proposals", proposal_body("k-3", supersedes=first["id"]))
    refused(answer, 409, "already_superseded")


def test_what_was_sent_is_not_replaced_and_not_taken_back(world: World) -> None:
    from tests.workflows.toy import NOTHING_CAME

    world.desk.till.answers = [NOTHING_CAME]
    proposal = world.approved()
    world.desk.work()
    answer = world.agent.post("/proposals", proposal_body("k-2", supersedes=proposal["id"]))
    assert refused(answer, 409, "too_late") == {"command_id": proposal["command_id"]}
    answer = world.agent.post(f"/proposals/{proposal['id']}/withdraw", {"reason": "stop"})
    refused(answer, 409, "too_late")


def test_the_proposer_takes_it_back_and_nobody_else(world: World) -> None:
    proposal = world.proposed()
    path = f"/proposals/{proposal['id']}/withdraw"
    other = automation(token_for(world.desk.tenant, "other"))
    refused(other.post(path, {"reason": "not mine"}), 403, "not_yours")
    refused(world.agent.post(path, {}), 422, "invalid")
    back = as_json(world.agent.post(path, {"reason": "not needed"}))
    assert (back["status"], back["next_action"]) == ("withdrawn", "stop")
    assert as_json(world.agent.post(path, {"reason": "again"}))["state_version"] == back["state_version"]


def test_what_is_decided_is_not_taken_back(world: World) -> None:
    proposal = world.proposed()
    as_json(world.decide(proposal, "reject"))
    answer = world.agent.post(f"/proposals/{proposal['id']}/withdraw", {"reason": "no"})
    said = refused(answer, 409, "already_decided")
    assert (said["status"], said["moved"]["to"], said["decision"]["decision"]) == (
        "rejected",
        "rejected",
        "reject",
    )
    assert datetime.fromisoformat(said["moved"]["at"]).tzinfo is not None


def test_after_its_time_a_proposal_is_expired_whether_or_not_it_was_swept(
    world: World,
) -> None:  # field report D3
    from datetime import timedelta

    from common.clock import db_clock
    from tests.factories import make_proposal

    proposal = make_proposal(tenant=world.desk.tenant, at=db_clock() - timedelta(hours=5))
    found = as_json(world.agent.get(f"/proposals/{proposal.pk}"))
    assert (found["status"], found["next_action"], found["still_needed"]) == ("expired", "submit_new", 0)
    assert as_json(world.agent.get("/proposals", status="pending"))["proposals"] == []
    [row] = as_json(world.agent.get("/proposals", status="expired"))["proposals"]
    assert (row["id"], row["status"]) == (str(proposal.pk), "expired")


def test_each_end_has_its_one_next_action(world: World) -> None:
    asked = {
        "rejected": (world.proposed("k-1"), "reject", "stop"),
        "changes_requested": (world.proposed("k-2"), "request_changes", "submit_new"),
        "approved": (world.proposed("k-3"), "approve", "wait"),
    }
    for status, (proposal, decision, next_action) in asked.items():
        as_json(world.decide(proposal, decision))
        found = as_json(world.agent.get(f"/proposals/{proposal['id']}"))
        assert (found["status"], found["next_action"]) == (status, next_action)
        [vote] = found["decisions"]
        assert (vote["decision"], vote["by"]) == (decision, f"user:{world.desk.ada.pk}")
    world.desk.work()
    found = as_json(world.agent.get(f"/proposals/{asked['approved'][0]['id']}"))
    assert (found["status"], found["next_action"]) == ("consumed", "fetch_result")


def test_proposals_are_listed_newest_first_by_pages(world: World) -> None:
    made = [world.proposed(f"k-{number}")["id"] for number in range(3)]
    first = as_json(world.agent.get("/proposals", limit=2))
    world.proposed("k-9")
    second = as_json(world.agent.get("/proposals", limit=2, cursor=first["next_cursor"]))
    assert [row["id"] for row in first["proposals"] + second["proposals"]] == made[::-1]
    assert second["next_cursor"] == ""
    assert "contract" not in first["proposals"][0]
    refused(world.agent.get("/runs", cursor=first["next_cursor"]), 422, "bad_cursor")
    assert as_json(world.agent.get("/proposals", workflow="toy-pay"))["proposals"] == []


def test_a_missing_proposal_is_missing(world: World) -> None:
    refused(world.agent.get(f"/proposals/{new_id()}"), 404, "not_found")
    refused(world.agent.get("/proposals/nonsense"), 404, "not_found")
