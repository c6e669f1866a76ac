"""``/runs``: one event makes one run, however often it comes; bulk, data, cancel, lists."""

from datetime import timedelta
from uuid import UUID

import pytest

from common.ids import new_id
from tests.api.callers import as_json, automation, refused, run_body, token_for
from tests.api.conftest import World
from workflows.authoring import Done, WaitForData
from workflows.models import Run, SourceEvent
from workflows.results import StageResult

pytestmark = pytest.mark.django_db


def test_an_event_makes_a_run_and_the_envelope_is_as_the_design_says(world: World) -> None:
    run = as_json(world.agent.post("/runs", run_body()), 201)
    assert set(run) >= {
        "run_id", "kind", "workflow", "workflow_version", "status", "outcome", "waiting", "attempt", "requested_by",
        "request_ids", "source", "versions", "input_refs", "started_at", "finished_at", "state_version", "steps",
        "next_action", "retry_after",
    }  # fmt: skip
    assert (run["kind"], run["status"], run["requested_by"]) == ("original", "queued", "api:intake")
    assert (run["next_action"], run["retry_after"], run["source"]) == (
        "wait", 5, {"system": "test", "event_id": "e-1"},
    )  # fmt: skip
    assert set(run["steps"][0]) >= {
        "id", "kind", "status", "attempt", "proposal_id", "command_id", "input_hash", "result_ref", "failure_code",
        "started_at", "finished_at", "usage",
    }  # fmt: skip
    world.desk.advance()
    run = as_json(world.agent.get(f"/runs/{run['run_id']}"))
    assert (run["status"], run["waiting"]["for"], run["waiting"]["on_expiry"]) == (
        "waiting_for_approval", "approval", "manual_queue",
    )  # fmt: skip
    assert UUID(run["waiting"]["wait_id"])


def test_the_same_event_again_is_the_same_run(world: World) -> None:
    first = as_json(world.agent.post("/runs", run_body()), 201)
    again = as_json(world.agent.post("/runs", run_body()), 200)
    assert again["run_id"] == first["run_id"]
    assert SourceEvent.objects.get().duplicates == 1


def test_the_same_event_with_other_input_is_refused(world: World) -> None:
    first = as_json(world.agent.post("/runs", run_body()), 201)
    answer = world.agent.post("/runs", run_body(input={"order": "1043"}))
    assert refused(answer, 422, "event_conflict") == {"run_id": first["run_id"]}
    assert Run.objects.count() == 1


def test_an_older_event_of_a_record_ends_stale_and_a_newer_one_waits(world: World) -> None:
    def event(number: int) -> dict[str, object]:
        source = {"system": "test", "event_id": f"e-{number}", "record": "r-1", "sequence": number}
        return run_body(source=source)

    first = as_json(world.agent.post("/runs", event(5)), 201)
    older = as_json(world.agent.post("/runs", event(3)), 201)
    newer = as_json(world.agent.post("/runs", event(7)), 201)
    assert (older["status"], older["outcome"], older["next_action"]) == ("cancelled", "stale", "stop")
    assert newer["status"] == "queued"
    assert newer["waiting"]["until"]
    world.desk.advance()
    states = {row["run_id"]: row["status"] for row in as_json(world.agent.get("/runs"))["runs"]}
    assert states[first["run_id"]] == "waiting_for_approval"
    assert states[newer["run_id"]] == "queued"


def test_the_person_behind_an_automation_is_never_asked(world: World) -> None:
    caller = automation(token_for(world.desk.tenant, "of-ada", acts_for=world.desk.ada))
    run = as_json(caller.post("/runs", run_body()), 201)
    row = Run.objects.get(pk=run["run_id"])
    assert (row.on_behalf_of, row.excluded_users) == (f"user:{world.desk.ada.pk}", [str(world.desk.ada.pk)])


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"workflow": "unheard-of"}, 404, "unknown_workflow"),
        ({"input": {"order": 7}}, 422, "invalid_input"),
        ({"input": [1]}, 422, "invalid"),
        ({"surplus": 1}, 422, "invalid"),
        ({"tenant": "lagoon"}, 422, "invalid"),
        ({"requested_by": "api:other"}, 422, "invalid"),
        ({"source": {"system": "test"}}, 422, "invalid"),
        ({"source": {"system": "test", "event_id": "e", "sequence": "5"}}, 422, "invalid"),
        ({"callback": "file:///etc/passwd"}, 422, "invalid"),
        ({"callback": "https://agent.example/done"}, 422, "callback_not_registered"),
    ],
)
def test_what_is_not_a_run_is_refused(
    world: World, changes: dict[str, object], status: int, code: str
) -> None:
    refused(world.agent.post("/runs", run_body(**changes)), status, code)
    assert not Run.objects.exists()


def test_a_bulk_has_a_result_for_each_item(world: World) -> None:
    as_json(world.agent.post("/runs", run_body("known")), 201)
    items = [
        run_body("new"), run_body("known"), run_body("known", input={"order": "7"}), {"workflow": "toy-pay"},
        run_body("other", workflow="unheard-of"), 17,
    ]  # fmt: skip
    bulk = as_json(world.agent.post("/runs", items))
    assert (bulk["created"], bulk["repeated"], bulk["refused"]) == (1, 1, 4)
    results = bulk["results"]
    assert [row["index"] for row in results] == list(range(6))
    assert [row["status"] for row in results] == [201, 200, 422, 422, 404, 422]
    assert [row["problem"]["code"] for row in results[2:]] == [
        "event_conflict", "invalid", "unknown_workflow", "invalid",
    ]  # fmt: skip
    assert results[0]["run"]["status"] == "queued"
    assert Run.objects.count() == 2


def test_a_bulk_is_not_endless(world: World) -> None:
    refused(
        world.agent.post("/runs", [run_body(str(number)) for number in range(501)]), 422, "too_many_items"
    )
    assert not Run.objects.exists()
    assert as_json(world.agent.post("/runs", []))["results"] == []


def test_an_input_is_no_larger_in_a_bulk_than_alone(world: World) -> None:
    deep: object = 1
    for _ in range(35):
        deep = {"a": deep}
    [result] = as_json(world.agent.post("/runs", [run_body(input={"order": "1", "deep": deep})]))["results"]
    assert (result["status"], result["problem"]["code"]) == (400, "too_deep")


def test_missing_data_are_asked_for_and_supplied(world: World) -> None:
    def judge(context: object) -> StageResult:
        given = getattr(context, "data", {})
        return Done({"order": given["order"]}) if given else ask

    ask = WaitForData(
        "Which order is it?",
        {"properties": {"order": {"type": "string"}}, "required": ["order"]},
        timedelta(hours=1),
    )
    world.desk.till.stages["judge"] = judge
    run = as_json(world.agent.post("/runs", run_body()), 201)
    world.desk.advance()
    path = f"/runs/{run['run_id']}"
    run = as_json(world.agent.get(path))
    assert (run["status"], run["next_action"], run["retry_after"]) == (
        "waiting_for_data",
        "provide_data",
        None,
    )
    assert run["waiting"]["asks"] == {
        "question": "Which order is it?",
        "schema": {"properties": {"order": {"type": "string"}}, "required": ["order"]},
    }
    assert run["waiting"]["for"] == "data"
    wait_id = run["waiting"]["wait_id"]

    details = refused(
        world.agent.post(f"{path}/data", {"wait_id": wait_id, "ordr": "1"}), 422, "invalid_data"
    )
    assert (details["unknown"], details["missing"], details["invalid"]) == (["ordr"], ["order"], [])
    refused(world.agent.post(f"{path}/data", {"order": "1042"}), 422, "invalid")
    refused(world.agent.post(f"{path}/data", {"wait_id": str(new_id()), "order": "1042"}), 409, "wait_over")
    answered = as_json(world.agent.post(f"{path}/data", {"wait_id": wait_id, "order": "1042"}))
    assert answered["status"] != "waiting_for_data"
    refused(world.agent.post(f"{path}/data", {"wait_id": wait_id, "order": "1042"}), 409, "wait_over")
    world.desk.advance()
    assert as_json(world.agent.get(path))["status"] == "waiting_for_approval"


def test_data_may_stand_inside_data(world: World) -> None:
    world.desk.till.stages["judge"] = WaitForData(
        "Which?", {"properties": {"order": {"type": "string"}}, "required": ["order"]}, timedelta(hours=1)
    )
    run = as_json(world.agent.post("/runs", run_body()), 201)
    world.desk.advance()
    path = f"/runs/{run['run_id']}"
    wait_id = as_json(world.agent.get(path))["waiting"]["wait_id"]
    as_json(world.agent.post(f"{path}/data", {"wait_id": wait_id, "data": {"order": "1042"}}))


def test_a_run_is_cancelled_before_anything_is_sent(world: World) -> None:
    run = as_json(world.agent.post("/runs", run_body()), 201)
    world.desk.advance()
    path = f"/runs/{run['run_id']}/cancel"
    cancelled = as_json(world.agent.post(path, {"reason": "not needed"}))
    assert (cancelled["result"], cancelled["status"], cancelled["next_action"]) == (
        "cancelled",
        "cancelled",
        "stop",
    )
    assert as_json(world.agent.post(path, {"reason": "again"}))["result"] == "cancelled"


def test_cancelling_what_was_sent_is_a_wish(world: World) -> None:
    from tests.workflows.toy import NOTHING_CAME

    world.desk.till.answers = [NOTHING_CAME]
    command = world.desk.approved()
    world.desk.work()
    answer = as_json(world.agent.post(f"/runs/{command.run_id}/cancel", {"reason": "too late?"}), 202)
    assert (answer["result"], answer["status"], answer["cancel_requested"]) == (
        "cancel_requested",
        "unknown",
        True,
    )


def test_a_run_that_has_ended_is_not_cancelled(world: World) -> None:
    command = world.desk.approved()
    world.desk.work()
    world.desk.advance()
    answer = world.agent.post(f"/runs/{command.run_id}/cancel", {"reason": "too late"})
    assert refused(answer, 409, "run_ended") == {"status": "completed"}


def test_runs_are_listed_newest_first_by_pages(world: World) -> None:
    made = [as_json(world.agent.post("/runs", run_body(f"e-{number}")), 201)["run_id"] for number in range(5)]
    found, cursor = [], ""
    while True:
        page = as_json(world.agent.get("/runs", limit=2, cursor=cursor))
        found += [row["run_id"] for row in page["runs"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
        as_json(world.agent.post("/runs", run_body(f"later-{cursor}"[:100])), 201)  # pages do not shift
    assert found == made[::-1]


def test_lists_of_runs_are_filtered(world: World) -> None:
    world.desk.start(workflow="toy-pay")
    world.desk.advance()
    world.desk.start(workflow="toy-execute")
    rows = as_json(world.agent.get("/runs", workflow="toy-execute"))["runs"]
    assert [row["workflow"] for row in rows] == ["toy-execute"]
    rows = as_json(world.agent.get("/runs", status="waiting_for_approval"))["runs"]
    assert [row["workflow"] for row in rows] == ["toy-pay"]
    refused(world.agent.get("/runs", status="sleeping"), 422, "invalid")
    refused(world.agent.get("/runs", cursor="bm9uc2Vuc2U"), 422, "bad_cursor")
    refused(world.agent.get("/runs", workflow="a\x00b"), 422, "bad_text")
