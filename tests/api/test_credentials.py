"""Who may call what: tokens by their scopes and never to decide; sessions only where people decide."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from access.enums import Scope
from access.models import Agent, ApiToken
from approvals.models import Decision
from common.ids import new_id
from config.api import api
from tests.api.callers import Caller, as_json, automation, decision_body, refused, signed_in, token_for
from tests.api.conftest import World

pytestmark = pytest.mark.django_db
SCHEMA = api.get_openapi_schema(path_prefix="")
SOME = {
    name: str(new_id()) for name in ("run_id", "proposal_id", "command_id", "ref", "step", "event_id")
} | {"name": "toy.pay"}


def routes(scheme: str) -> list[tuple[str, str]]:
    """(method, path) of the routes with this way of authentication."""
    return sorted(
        (method, path)
        for path, operations in SCHEMA["paths"].items()
        for method, operation in operations.items()
        if scheme in operation.get("security", [{}])[0]
    )


def call(caller: Caller, method: str, path: str) -> Any:
    address = path.format(**SOME)
    return caller.get(address) if method == "get" else caller.post(address, {})


def test_every_route_is_authenticated_in_one_way() -> None:
    for path, operations in SCHEMA["paths"].items():
        for operation in operations.values():
            if path == "/hooks/{endpoint_id}":  # a signature, which the document has no word for
                assert "security" not in operation
                continue
            [scheme] = operation["security"]
            assert set(scheme) in ({"TokenAuth"}, {"SessionAuth"}, {"SettlingAuth"})
    assert [path for _, path in routes("SessionAuth")] == [
        "/proposals/{proposal_id}/view", "/proposals/{proposal_id}/decisions",
    ]  # fmt: skip
    assert [path for _, path in routes("SettlingAuth")] == [
        "/commands/{command_id}/attestations", "/runs/{run_id}/steps/{step}/ask-again",
    ]  # fmt: skip


def test_nobody_is_refused(world: World) -> None:
    caller = Caller(world.agent.client, {})
    for method, path in routes("TokenAuth") + routes("SessionAuth") + routes("SettlingAuth"):
        answer = call(caller, method, path)
        refused(answer, 401, "not_authenticated")
        assert answer["WWW-Authenticate"] == "Bearer"


def test_a_session_is_no_token(world: World) -> None:  # cookies are not looked at
    for method, path in routes("TokenAuth"):
        refused(call(world.ada, method, path), 401, "not_authenticated")


@pytest.mark.parametrize("header", ["Bearer {token}", "bearer {token}", "Basic YTpi", "Token x", ""])
@pytest.mark.parametrize(("method", "path"), routes("SessionAuth"))
def test_any_authorization_header_is_refused_where_people_decide(  # field report K4
    world: World, method: str, path: str, header: str
) -> None:
    proposal = world.proposed()
    token = token_for(world.desk.tenant, "own", acts_for=world.desk.ada)
    caller = signed_in(world.desk.ada)  # even with a valid session beside it
    body = decision_body(world.view(proposal))
    caller.headers["Authorization"] = header.format(token=token)
    address = path.format(proposal_id=proposal["id"])
    answer = caller.get(address) if method == "get" else caller.post(address, body)
    refused(answer, 403, "token_cannot_decide")
    assert not Decision.objects.exists()


@pytest.mark.parametrize("scopes", [[scope] for scope in Scope.values] + [list(Scope.values), []])
def test_no_scope_decides(world: World, scopes: list[str]) -> None:
    proposal = world.proposed()
    caller = automation(token_for(world.desk.tenant, "own", scopes=scopes))
    answer = caller.post(f"/proposals/{proposal['id']}/decisions", decision_body(world.view(proposal)))
    refused(answer, 403, "token_cannot_decide")


NEEDS = {
    ("post", "/runs"): "runs:write", ("post", "/runs/{run_id}/data"): "runs:write",
    ("post", "/runs/{run_id}/cancel"): "runs:write", ("get", "/runs"): "runs:read",
    ("get", "/runs/{run_id}"): "runs:read", ("post", "/proposals"): "proposals:write",
    ("post", "/proposals/{proposal_id}/withdraw"): "proposals:write", ("get", "/proposals"): "proposals:read",
    ("post", "/proposals/{proposal_id}/answers"): "proposals:answer",
    ("get", "/proposals/{proposal_id}"): "proposals:read", ("get", "/results/{ref}"): "results:read",
    ("get", "/audit/events"): "audit:read", ("get", "/audit/bundle"): "audit:read",
    ("get", "/audit/receipts/{event_id}"): "audit:read",
    ("get", "/commands/{command_id}"): "runs:read",
    ("get", "/receipts/{run_id}/{step}"): "runs:read", ("get", "/operations"): "", ("get", "/workflows"): "",
    ("get", "/operations/{name}"): "", ("get", "/receipts/keys"): "",
}  # fmt: skip


def test_the_table_of_scopes_is_complete() -> None:
    assert set(NEEDS) == set(routes("TokenAuth"))


BODIES: dict[str, Any] = {
    "/runs": {"workflow": "x", "source": {"system": "a", "event_id": "b"}, "input": {}},
    "/runs/{run_id}/data": {"wait_id": str(new_id())}, "/runs/{run_id}/cancel": {"reason": "r"},
    "/proposals/{proposal_id}/withdraw": {"reason": "r"},
    "/proposals/{proposal_id}/answers": {"question_id": str(new_id()), "answer": "r"},
    "/proposals": {
        "workflow": "x", "source": {"system": "a", "event_id": "b"}, "key": "k", "operation": "o", "arguments": {},
        "reason": "r",
    },
}  # fmt: skip


@pytest.mark.parametrize(("route", "scope"), NEEDS.items())
def test_a_token_does_what_its_scopes_say_and_nothing_else(
    world: World, route: tuple[str, str], scope: str
) -> None:
    method, path = route
    either = {"runs:read", "proposals:read"} if path.startswith(("/commands", "/receipts/{")) else {scope}
    if path.startswith("/audit/receipts"):  # by what the event is about
        either = {"runs:read", "proposals:read", "audit:read"}
    others = [value for value in Scope.values if value not in either]
    for name, scopes, may in (("others", others, not scope), ("right", [scope] if scope else [], True)):
        caller = automation(token_for(world.desk.tenant, name, scopes=scopes))
        address = path.format(**SOME)
        answer = caller.get(address) if method == "get" else caller.post(address, BODIES[path])
        if may:
            assert answer.status_code in (200, 404), answer.content
        else:
            assert refused(answer, 403, "scope_missing") == {"scope": scope}


def test_a_token_that_is_over_revoked_or_of_a_stopped_automation_is_none(world: World) -> None:
    text = token_for(world.desk.tenant, "short")
    caller = automation(text)
    as_json(caller.get("/runs"))
    row = ApiToken.objects.get(agent__name="short")
    ApiToken.objects.filter(pk=row.pk).update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    refused(caller.get("/runs"), 401, "not_authenticated")
    ApiToken.objects.filter(pk=row.pk).update(
        expires_at=datetime.now(UTC) + timedelta(days=1), revoked_at=datetime.now(UTC)
    )
    refused(caller.get("/runs"), 401, "not_authenticated")
    ApiToken.objects.filter(pk=row.pk).update(revoked_at=None)
    Agent.objects.filter(name="short").update(is_active=False)
    refused(caller.get("/runs"), 401, "not_authenticated")
    refused(automation(text[:-1] + "x").get("/runs"), 401, "not_authenticated")


def test_a_person_who_lost_their_account_decides_nothing(world: World) -> None:  # field report K12
    proposal = world.proposed()
    body = decision_body(world.view(proposal))
    world.desk.ada.is_active = False
    world.desk.ada.save()
    refused(world.ada.post(f"/proposals/{proposal['id']}/decisions", body), 401, "not_authenticated")
