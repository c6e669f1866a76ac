"""Every route, generated from the OpenAPI document: another tenant's things are missing, and a GET changes nothing."""

from contextlib import ExitStack
from typing import Any

import pytest
from django.db import connections
from django.http import HttpResponse

from common.ids import new_id
from common.web import is_read
from config.api import api
from tests.api.callers import Caller, as_json, decision_body, proposal_body, refused, run_body
from tests.api.conftest import World

pytestmark = pytest.mark.django_db
ROOT = "/api/v1"
# What a route needs beside its address, where the address is of somebody else's thing.
BODIES: dict[str, Any] = {
    "/runs/{run_id}/data": {"wait_id": str(new_id()), "order": "1042"},
    "/runs/{run_id}/cancel": {"reason": "not mine"},
    "/proposals/{proposal_id}/withdraw": {"reason": "not mine"},
    "/proposals/{proposal_id}/answers": {"question_id": str(new_id()), "answer": "not mine"},
    "/proposals/{proposal_id}/decisions": {
        "digest": "0" * 64, "view_digest": "0" * 64, "decision": "reject", "reason": "not mine",
    },
    "/commands/{command_id}/attestations": {"says": "happened", "provider_reference": "re_1", "reason": "not mine"},
    "/runs/{run_id}/steps/{step}/ask-again": {},
}  # fmt: skip
# These name no tenant's thing: installed code, or collections. An endpoint's address is asked by no credential of a
# tenant: `test_hooks` shows that an unknown one is answered like a signature that is wrong.
UNADDRESSED = {"/operations", "/operations/{name}", "/workflows", "/receipts/keys", "/hooks/{endpoint_id}"}


def routes(method: str) -> list[str]:
    paths = api.get_openapi_schema(path_prefix="")["paths"]
    return sorted(path for path, operations in paths.items() if method in operations)


ADDRESSED = [
    (method, path)
    for method in ("get", "post")
    for path in routes(method)
    if ("_id}" in path or "{ref}" in path) and path not in UNADDRESSED
]


@pytest.fixture
def things(world: World) -> dict[str, str]:
    """The desk's own ids, by the names in the addresses."""
    proposal = world.approved()
    world.desk.work()
    world.desk.advance()
    run = world.desk.start(order="1043")
    world.desk.advance()
    envelope = as_json(world.agent.get(f"/runs/{run.pk}"))
    return {
        "run_id": proposal["run_id"], "proposal_id": proposal["id"], "command_id": proposal["command_id"],
        "step": "action", "ref": envelope["steps"][0]["result_ref"], "name": "toy.pay",
        "event_id": proposal["event_id"],
    }  # fmt: skip


def is_for_people(path: str) -> bool:
    return path.endswith(("/view", "/decisions", "/attestations", "/ask-again"))


def ask(caller: Caller, method: str, path: str, ids: dict[str, str]) -> HttpResponse:
    address = path.format(**ids)
    return caller.get(address) if method == "get" else caller.post(address, BODIES[path])


def told(answer: HttpResponse) -> dict[str, Any]:
    """A problem document without what names this very request."""
    return {name: value for name, value in answer.json().items() if name not in ("instance", "request_id")}


def test_every_address_with_an_id_is_in_the_matrix() -> None:
    every = [(method, path) for method in ("get", "post") for path in routes(method)]
    collections = {"/runs", "/proposals", "/audit/events", "/audit/bundle"}
    assert {path for _, path in every} - {path for _, path in ADDRESSED} == UNADDRESSED | collections
    assert {path for method, path in ADDRESSED if method == "post"} == set(BODIES)


def test_anothers_thing_is_missing_exactly_as_what_never_was(  # field report K1, security list S9
    world: World, things: dict[str, str]
) -> None:
    for method, path in ADDRESSED:
        foreign = world.foreign_reviewer if is_for_people(path) else world.foreign
        own = world.ada if is_for_people(path) else world.agent
        theirs = ask(foreign, method, path, things)
        nobodys = ask(foreign, method, path, dict.fromkeys(things, str(new_id())))
        refused(theirs, 404, "not_found")
        assert told(theirs) == told(nobodys), path
        assert b"1042" not in theirs.content, path
        if not path.endswith("/answers"):  # names a question, too, which nobody has asked
            assert ask(own, method, path, things).status_code != 404, path


@pytest.mark.parametrize("path", ["/runs", "/proposals", "/audit/events"])
def test_lists_hold_only_the_tenants_own(world: World, things: dict[str, str], path: str) -> None:
    [(_, rows)] = [
        (name, value) for name, value in as_json(world.foreign.get(path)).items() if name != "next_cursor"
    ]
    assert rows == []
    cursor = as_json(world.agent.get(path, limit=1))["next_cursor"]
    assert cursor
    assert things["run_id"].encode() not in world.foreign.get(path, cursor=cursor).content


def test_the_same_event_of_two_tenants_is_two_runs(world: World) -> None:
    ours = as_json(world.agent.post("/runs", run_body()), 201)
    theirs = as_json(world.foreign.post("/runs", run_body()), 201)
    assert ours["run_id"] != theirs["run_id"]
    ours, theirs = world.proposed(), as_json(world.foreign.post("/proposals", proposal_body()), 201)
    assert ours["digest"] != theirs["digest"]
    assert ours["material_digest"] != theirs["material_digest"]


def test_anothers_proposal_is_not_superseded(world: World) -> None:
    proposal = world.proposed()
    refused(world.foreign.post("/proposals", proposal_body(supersedes=proposal["id"])), 404, "not_found")


def test_a_get_changes_nothing(world: World, things: dict[str, str]) -> None:  # security list S8
    written = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not is_read(str(sql)):
            written.append(sql)
        return execute(sql, params, many, context)

    for path in routes("get"):
        if path == "/audit/bundle":
            continue  # ADR 42: nothing of what it reads; that it was taken along is added to the history
        caller = world.ada if is_for_people(path) else world.agent
        with ExitStack() as stack:
            for alias in ("app", "system"):
                stack.enter_context(connections[alias].execute_wrapper(watch))
            as_json(caller.get(path.format(**things)))
            caller.client.head(ROOT + path.format(**things), headers=caller.headers)
        assert written == [], path


def test_an_id_of_no_shape_is_missing(world: World) -> None:
    names = ("run_id", "proposal_id", "command_id", "step", "ref", "event_id")
    for method, path in ADDRESSED:
        caller = world.ada if is_for_people(path) else world.agent
        refused(ask(caller, method, path, dict.fromkeys(names, "x")), 404, "not_found")


def test_a_reviewer_of_another_tenant_decides_nothing(world: World) -> None:
    proposal = world.proposed()
    body = decision_body(world.view(proposal))
    refused(world.foreign_reviewer.post(f"/proposals/{proposal['id']}/decisions", body), 404, "not_found")
    assert as_json(world.agent.get(f"/proposals/{proposal['id']}"))["status"] == "pending"
