"""Odd and hostile requests: each gets an answer of its own, and none breaks the server or goes round a limit."""

from typing import Any

import pytest

from access.enums import Role
from access.models import Membership
from approvals.models import Proposal
from tests.api.callers import as_json, proposal_body, refused, run_body, signed_in
from tests.api.conftest import World
from tests.factories import make_user
from tests.workflows import toy
from tests.workflows.later import as_superuser
from tests.workflows.together import in_threads

pytestmark = pytest.mark.django_db


def test_a_workflow_that_only_takes_proposals_is_not_started(world: World) -> None:
    refused(world.agent.post("/runs", run_body(workflow="toy-outside")), 422, "proposals_only")


@pytest.mark.parametrize(
    "at", ["0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00"]
)
def test_an_instant_that_no_clock_shows_in_utc_is_refused(world: World, at: str) -> None:
    piece = proposal_body()["evidence"][0] | {"captured_at": at}
    refused(world.agent.post("/proposals", proposal_body(evidence=[piece])), 422, "invalid")


def test_an_agent_cannot_put_its_own_action_in_the_place_of_a_staged_one(world: World) -> None:
    """Invariant I14: the contract would name one workflow, and carry what that one never would have proposed."""
    run = as_json(world.agent.post("/runs", run_body()), 201)
    world.desk.advance()
    staged = Proposal.objects.get(run_id=run["run_id"])
    body = proposal_body("k-9", supersedes=str(staged.pk))
    details = refused(world.agent.post("/proposals", body), 422, "other_workflow")
    assert details == {"workflow": "toy-pay"}
    assert Proposal.objects.get(run_id=run["run_id"]).status == "pending"


def toy_arguments(amount: str) -> dict[str, str]:
    return {"order": "1042", "amount": amount, "currency": "EUR"}


@pytest.mark.parametrize(
    ("amount", "statuses"),
    [("8.00", [200, 200, 200, 201]), ("9.00", [200, 200, 200, 200])],
    ids=["new", "equal"],
)
def test_one_new_version_sent_four_times_at_once_is_one_new_version(
    world: World, amount: str, statuses: list[int]
) -> None:
    """Field report G3: a repeat is answered with what the first made, also while the first is being made."""
    old = world.proposed(arguments=toy_arguments("9.00"))
    body = proposal_body("k-2", supersedes=old["id"], arguments=toy_arguments(amount))

    def send(_: int) -> Any:
        answer = world.agent.post("/proposals", body)
        return answer.status_code, answer.json().get("id")

    answers = in_threads(4, send)
    assert sorted(status for status, _ in answers) == statuses
    assert len({proposal_id for _, proposal_id in answers}) == 1


def test_a_view_that_is_none_any_more_can_be_neither_read_nor_approved(world: World) -> None:
    """Field report A14: unreadable state is said to be so."""
    proposal = world.proposed()
    as_superuser("UPDATE approvals_proposal SET view = %s WHERE id = %s", b"junk", proposal["id"])
    refused(world.ada.get(f"/proposals/{proposal['id']}/view"), 422, "uninspectable")
    assert world.ada.client.get("/review/").status_code == 200


@pytest.mark.parametrize("stage", ["observe", "prepare"])
def test_where_nothing_is_sent_approved_is_the_end(
    world: World, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told that it was paid, and the receipt, once final, stays what it is."""
    monkeypatch.setattr(toy.ToyOutside, "stage", stage)
    proposal = world.proposed()
    as_json(world.decide(proposal))
    run = as_json(world.agent.get(f"/runs/{proposal['run_id']}"))
    assert (run["status"], run["outcome"]) == ("completed", "no_action")
    assert "Nothing was sent" in run["message"]
    again = proposal_body("k-3", supersedes=proposal["id"])
    refused(world.agent.post("/proposals", again), 409, "already_decided")
    withdrawal = world.agent.post(f"/proposals/{proposal['id']}/withdraw", {"reason": "no"})
    refused(withdrawal, 409, "already_decided")
    receipt = as_json(world.agent.get(f"/receipts/{proposal['run_id']}/action"))
    assert (receipt["final"], receipt["decision"]["status"]) == (True, "approved")


PARAMETERS = {
    "/review/": ("view", "after", "workflow", "q"),
    "/runs/": ("q", "view", "cursor", "status", "workflow", "requester"),
    "/repair/": ("q", "view", "cursor", "cause", "owner"),
    "/history/": ("q", "when", "kind", "since", "until", "actor", "run", "subject", "digest", "cursor"),
}  # fmt: skip
ODD = (
    "%00", "%ff", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00%2B14:00", "9" * 40,
    "0001-01-01T00:00:00%2B14:00~0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11",
)  # fmt: skip


def test_no_address_of_a_desk_breaks_it(world: World) -> None:
    Membership.objects.filter(user=world.desk.ada).update(roles=["reviewer", "auditor", "admin", "operator"])
    for page, names in PARAMETERS.items():
        for query in (f"{name}={value}" for name in names for value in ODD):
            assert world.ada.client.get(f"{page}?{query}").status_code < 500, f"{page}?{query}"
    run = world.proposed()["run_id"]
    assert world.ada.client.get(f"/runs/{run}/receipts/%00/").status_code == 404


@pytest.mark.parametrize(("role", "status"), [("operator", 403), ("admin", 403), ("auditor", 200)])
def test_the_whole_view_is_for_those_whose_role_is_shown_personal_fields(
    world: World, role: str, status: int
) -> None:
    """Field report K3: what the page hides from a role, the API does not hand out either."""
    proposal = world.proposed()
    somebody = signed_in(make_user(world.desk.tenant, "somebody", roles=[Role(role)]))
    answer = somebody.get(f"/proposals/{proposal['id']}/view")
    assert answer.status_code == status
    assert status == 200 or refused(answer, 403, "role_missing")


def test_a_second_proposal_for_the_same_thing_is_accepted_and_says_so(world: World) -> None:
    """Field report A13: flagged before anybody decides, and approving it while the first is done is a conflict."""
    first, other = world.proposed(), world.proposed("k-8", reason="Asked once more.")
    different = world.proposed("k-9", arguments={"order": "7", "amount": "10.00", "currency": "EUR"})
    assert (other["duplicate_of"], different["duplicate_of"]) == (first["id"], None)
    assert as_json(world.agent.get(f"/proposals/{first['id']}"))["duplicate_of"] == other["id"]
    assert "Not the only one." in world.ada.client.get(f"/review/{other['id']}/").content.decode()
    as_json(world.decide(first))
    refused(world.decide(other), 409, "action_in_progress")
    world.desk.work()
    assert as_json(world.agent.get(f"/proposals/{other['id']}"))["duplicate_of"] is None


def test_a_pin_that_nobody_can_check_is_shown_as_the_proposers_word(world: World) -> None:
    """Field report B15: not dropped in silence, and not signed as if it had been looked at."""
    proposal = world.proposed(pins={"order:1042": "v1", "script:7": "etag-<b>"})
    rows = {row["label"]: row["text"] for row in world.view(proposal)["view"]["unbound"]}
    assert rows == {"Asserted by the proposer, not checked": "script:7 as etag-<b>"}
    body = proposal_body("k-5", pins={"script:7": "x" * 201})
    refused(world.agent.post("/proposals", body), 422, "invalid")
