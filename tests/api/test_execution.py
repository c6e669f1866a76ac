"""``/commands``, ``/receipts``, ``/results``: what was decided, and apart from it what was done."""

from base64 import b64decode

import pytest

from common.ids import new_id
from common.signing import verify
from common.strictjson import canonicalize
from tests.api.callers import as_json, automation, refused, token_for
from tests.api.conftest import World
from tests.factories import make_command, make_lookup
from tests.workflows.toy import NOTHING_CAME
from workflows.receipt import DOMAIN

pytestmark = pytest.mark.django_db


def test_a_command_tells_what_was_attempted(world: World) -> None:
    proposal = world.approved()
    path = f"/commands/{proposal['command_id']}"
    command = as_json(world.agent.get(path))
    assert (command["status"], command["effect"], command["next_action"], command["retry_after"]) == (
        "ready", "none", "wait", 5,
    )  # fmt: skip
    world.desk.work()
    command = as_json(world.agent.get(path))
    assert (command["status"], command["effect"], command["settled_by"], command["provider_reference"]) == (
        "confirmed", "happened", "answer", "re_1",
    )  # fmt: skip
    assert (command["next_action"], command["retry_after"]) == ("fetch_result", None)
    [attempt] = command["attempts"]
    assert (attempt["number"], attempt["status"], attempt["http_status"]) == (1, "answered", 201)
    assert command["idempotency_key"] == world.desk.till.calls[0].idempotency_key


def test_what_is_not_known_is_called_unknown_everywhere(world: World) -> None:
    world.desk.till.answers = [NOTHING_CAME]
    proposal = world.approved()
    world.desk.work()
    command = as_json(world.agent.get(f"/commands/{proposal['command_id']}"))
    assert (command["status"], command["effect"], command["next_action"]) == ("unknown", "unknown", "wait")
    run = as_json(world.agent.get(f"/runs/{proposal['run_id']}"))
    assert (run["status"], run["next_action"]) == ("unknown", "wait")
    receipt = as_json(world.agent.get(f"/receipts/{proposal['run_id']}/action"))
    assert (receipt["execution"]["status"], receipt["execution"]["effect"], receipt["final"]) == (
        "unknown", "unknown", False,
    )  # fmt: skip


def test_look_ups_are_told(world: World) -> None:
    command = make_command(tenant=world.desk.tenant, status="unknown")
    make_lookup(command, finding="not_found")
    [lookup] = as_json(world.agent.get(f"/commands/{command.pk}"))["lookups"]
    assert (lookup["finding"], lookup["provider_reference"]) == ("not_found", None)


@pytest.mark.parametrize("status", ["refused", "dead", "void", "cancelled"])
def test_a_command_that_ended_without_effect_leads_nowhere(world: World, status: str) -> None:
    command = make_command(tenant=world.desk.tenant, status=status)
    found = as_json(world.agent.get(f"/commands/{command.pk}"))
    assert (found["status"], found["next_action"], found["retry_after"]) == (status, "stop", None)


def test_a_receipt_has_decision_and_execution_apart_and_is_signed(world: World) -> None:  # field report O13
    proposal = world.approved()
    world.desk.work()
    path = f"/receipts/{proposal['run_id']}/action"
    receipt = as_json(world.agent.get(path))
    assert (receipt["final"], receipt["decision"]["status"], receipt["execution"]["status"]) == (
        True, "consumed", "confirmed",
    )  # fmt: skip
    [vote] = receipt["decision"]["votes"]
    assert (vote["by"], vote["digest"], vote["via"]) == (
        f"user:{world.desk.ada.pk}",
        proposal["digest"],
        "session",
    )
    assert receipt["execution"]["command_id"] == proposal["command_id"]
    assert as_json(world.agent.get(path)) == receipt

    [key] = as_json(world.agent.get("/receipts/keys"))["keys"]
    signature = receipt.pop("signature")
    assert (signature["alg"], signature["key_id"]) == ("Ed25519", key["key_id"])
    public = b64decode(key["public_key"])
    assert verify(DOMAIN, canonicalize(receipt), signature["value"], public)
    receipt["decision"]["needed"] = 0
    assert not verify(DOMAIN, canonicalize(receipt), signature["value"], public)


def test_a_rejection_has_a_receipt_without_execution(world: World) -> None:
    proposal = world.proposed()
    path = f"/receipts/{proposal['run_id']}/action"
    answer = world.agent.get(path)
    assert refused(answer, 409, "no_receipt_yet") == {"retry_after": 5}
    as_json(world.decide(proposal, "reject"))
    receipt = as_json(world.agent.get(path))
    assert (receipt["final"], receipt["decision"]["status"], receipt["execution"]) == (True, "rejected", None)


def test_a_step_that_is_not_there_has_no_receipt(world: World) -> None:
    proposal = world.proposed()
    refused(world.agent.get(f"/receipts/{proposal['run_id']}/other"), 404, "not_found")
    refused(world.agent.get(f"/receipts/{proposal['run_id']}/a%00b"), 404, "not_found")
    refused(world.agent.get(f"/receipts/{new_id()}/action"), 404, "not_found")


def test_results_and_inputs_are_read_with_a_right_of_their_own(world: World) -> None:
    command = world.desk.approved()
    world.desk.work()
    world.desk.advance()
    run = as_json(world.agent.get(f"/runs/{command.run_id}"))
    refs = [step["result_ref"] for step in run["steps"]]
    assert all(refs)
    read = as_json(world.agent.get(f"/results/{refs[0]}"))
    assert (read["run_id"], read["kind"], read["content"]) == (run["run_id"], "result.read", {"seen": "read"})
    assert as_json(world.agent.get(f"/results/{refs[2]}"))["kind"] == "result.command"
    assert as_json(world.agent.get(f"/results/{run['input_refs'][0]}"))["content"] == {"order": "1042"}
    refused(world.agent.get(f"/results/{new_id()}"), 404, "not_found")

    narrow = automation(token_for(world.desk.tenant, "narrow", scopes=["runs:read", "proposals:read"]))
    details = refused(narrow.get(f"/results/{refs[0]}"), 403, "scope_missing")
    assert details == {"scope": "results:read"}
