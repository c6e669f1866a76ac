"""The OpenAPI document, the catalog of what is installed, and the shape and list of errors."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from common.errors import InvalidInput, NotFound, Refused
from common.problems import STRICT_JSON_CODES, title_of
from config.api import api
from config.errorlist import error_list
from tests.api.callers import ROOT, as_json, refused
from tests.api.conftest import World
from tests.processes import ROOT as CHECKOUT

pytestmark = pytest.mark.django_db


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in api.get_openapi_schema(path_prefix="")["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_the_document_is_public_and_describes_what_the_design_lists() -> None:
    document = as_json(Client().get(f"{ROOT}/openapi.json"))
    assert document["openapi"].startswith("3.1")
    found = {
        (method, path.removeprefix(ROOT)) for path, methods in document["paths"].items() for method in methods
    }
    assert found >= {
        ("get", "/operations"), ("get", "/operations/{name}"), ("get", "/workflows"), ("post", "/runs"),
        ("get", "/runs/{run_id}"), ("get", "/runs"), ("post", "/runs/{run_id}/data"),
        ("post", "/runs/{run_id}/cancel"), ("post", "/proposals"), ("get", "/proposals/{proposal_id}"),
        ("get", "/proposals"), ("get", "/proposals/{proposal_id}/view"),
        ("post", "/proposals/{proposal_id}/decisions"), ("post", "/proposals/{proposal_id}/withdraw"),
        ("get", "/commands/{command_id}"), ("get", "/receipts/{run_id}/{step}"), ("get", "/results/{ref}"),
        ("get", "/audit/events"), ("get", "/audit/bundle"), ("get", "/audit/receipts/{event_id}"),
    }  # fmt: skip


@pytest.mark.parametrize(("method", "path", "operation"), list(operations()))
def test_every_route_says_what_it_does_and_how_it_fails(
    method: str, path: str, operation: dict[str, Any]
) -> None:
    assert operation["summary"]
    assert operation["description"]
    statuses = {int(status) for status in operation["responses"]}
    assert statuses & {200, 201, 202}
    assert {401, 429} <= statuses
    for status, response in operation["responses"].items():
        if int(status) >= 400:
            assert list(response["content"]) == ["application/problem+json"]


def test_every_body_and_every_answer_has_an_example() -> None:
    schemas = api.get_openapi_schema(path_prefix="")["components"]["schemas"]
    for method, path, operation in operations():
        if path in ("/audit/events", "/audit/bundle", "/audit/receipts/{event_id}", "/hooks/{endpoint_id}"):
            continue
        media = operation["responses"][200 if 200 in operation["responses"] else 201]["content"][
            "application/json"
        ]
        shapes = [media["schema"]]
        if "requestBody" in operation:
            shapes.append(operation["requestBody"]["content"]["application/json"]["schema"])
        for shape in shapes:
            name = (shape.get("anyOf") or [shape])[0]["$ref"].rpartition("/")[2]
            assert schemas[name].get("examples"), f"{method} {path}: {name}"


def test_the_catalog_says_what_an_agent_needs_to_form_arguments(world: World) -> None:
    operation = as_json(world.agent.get("/operations/toy.pay"))
    assert (operation["version"], operation["versions"], operation["proposed_through"]) == (
        1,
        [1],
        ["toy-outside"],
    )
    assert (operation["material"], operation["volatile"]) == (["order", "amount", "currency"], [])
    assert set(operation["arguments"]["properties"]) == {"order", "amount", "currency"}
    assert operation["content_hash"].startswith("sha256:")
    assert (operation["limits"]["decide_within_s"], operation["limits"]["execute_within_s"]) == (14_400, 600)
    assert operation in as_json(world.agent.get("/operations"))["operations"]
    refused(world.agent.get("/operations/toy.steal"), 404, "unknown_operation")
    refused(world.agent.get("/operations/toy.pay", version=9), 404, "unknown_operation")


def test_a_workflow_says_what_it_promises(world: World) -> None:
    flows = {flow["name"]: flow for flow in as_json(world.agent.get("/workflows"))["workflows"]}
    assert (flows["toy-outside"]["accepts_proposals"], flows["toy-pay"]["accepts_proposals"]) == (True, False)
    assert [stage["id"] for stage in flows["toy-pay"]["stages"]] == ["read", "judge", "pay", "tell"]
    assert flows["toy-pay"]["never"] == ["pay twice"]
    assert set(flows["toy-pay"]["input"]["properties"]) == {"order", "amount"}


# -- errors ---------------------------------------------------------------------------------------------------


def test_what_is_not_there_is_a_problem_too(world: World) -> None:
    refused(world.agent.get("/nothing"), 404, "not_found")
    answer = world.agent.client.put(f"{ROOT}/runs", headers=world.agent.headers)
    refused(answer, 405, "method_not_allowed")
    assert answer["Allow"]


def test_while_the_database_is_away_nobody_is_promised_anything(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("connection to server failed: password secret-canary")

    monkeypatch.setattr("workflows.api.start_run", away)
    answer = world.agent.post(
        "/runs", {"workflow": "a", "source": {"system": "b", "event_id": "c"}, "input": {}}
    )
    assert refused(answer, 503, "unavailable") == {"retry_after": 5}
    assert answer["Retry-After"] == "5"
    assert b"canary" not in answer.content


def test_an_error_of_ours_tells_a_request_id_and_nothing_else(  # security list S27
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret-canary")

    monkeypatch.setattr("workflows.api.start_run", broken)
    answer = world.agent.post(
        "/runs", {"workflow": "a", "source": {"system": "b", "event_id": "c"}, "input": {}}
    )
    assert refused(answer, 500, "internal_error") == {}
    assert b"canary" not in answer.content
    assert b"Traceback" not in answer.content


def test_a_title_is_the_first_sentence() -> None:
    assert title_of(NotFound) == "There is no such thing here."
    assert title_of(InvalidInput) == "What was sent does not fit its schema."
    assert title_of(Refused) == "The request was understood and is refused."


def test_the_strict_parsers_codes_are_listed() -> None:
    source = (CHECKOUT / "common/strictjson.py").read_text()
    used = set(re.findall(r'(?:JsonRefused|self\.refuse|_long\w*)\(\s*"([a-z_0-9]+)"', source))
    used |= set(re.findall(r'"([a-z]+_too_long)"', source))
    assert used - {"too_large"} == set(STRICT_JSON_CODES)


def test_the_list_of_codes_is_written_from_the_code() -> None:
    written = (CHECKOUT / "docs/errors.md").read_text()
    assert written == error_list(), "run `./placet error_codes`"
    for code in STRICT_JSON_CODES:
        assert f"| `{code}` |" in written


def test_the_list_holds_every_code_that_the_design_names() -> None:
    written = (CHECKOUT / "docs/errors.md").read_text()
    codes = """
        event_conflict wait_over workflow_has_stages too_late already_superseded token_cannot_decide not_all_shown
        not_acknowledged reason_required digest_mismatch view_mismatch already_decided expired superseded withdrawn
        invalidated action_in_progress not_eligible own_proposal hash_mismatch open_limit not_found
    """
    assert [code for code in codes.split() if f"| `{code}` |" not in written] == []
