"""Who calls the API in the tests: automations with a token, and signed-in people with their CSRF token."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.test import Client
from django.utils.crypto import get_random_string

from access import tokens
from access.enums import Scope
from access.models import Agent, ApiToken, User
from common.models import Tenant
from common.strictjson import JsonValue

ROOT = "/api/v1"
JSON = "application/json"


def token_for(
    tenant: Tenant,
    name: str = "intake",
    *,
    scopes: Collection[str] = tuple(Scope.values),
    acts_for: User | None = None,
) -> str:
    """The text of a token of a new automation."""
    agent = Agent.objects.create(tenant=tenant, name=name, acts_for=acts_for)
    text = tokens.new_token()
    ApiToken.objects.create(
        tenant=tenant, agent=agent, prefix=text[: tokens.SHOWN], sha256=tokens.fingerprint(text), scopes=list(scopes),
        expires_at=datetime.now(UTC) + timedelta(days=1),
    )  # fmt: skip
    return text


class Caller:
    """A client of the API that sends what it always sends: a bearer token, or a session's cookies."""

    def __init__(self, client: Client, headers: dict[str, str]) -> None:
        self.client = client
        self.headers = headers

    @property
    def on_the_wire(self) -> dict[str, str]:
        """All headers of it, cookies too, for those who do not call by `client`."""
        cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in self.client.cookies.items())
        return self.headers | ({"Cookie": cookies} if cookies else {})

    def get(self, path: str, **query: Any) -> HttpResponse:
        return self.client.get(ROOT + path, query, headers=self.headers)

    def post(self, path: str, body: Any = None, *, headers: dict[str, str] | None = None) -> HttpResponse:
        """``body`` as JSON; bytes go out as they are."""
        content_type = (headers or {}).get("Content-Type", JSON)
        more = {name: value for name, value in (headers or {}).items() if name != "Content-Type"}
        return self.client.post(ROOT + path, body, content_type=content_type, headers=self.headers | more)


def automation(text: str) -> Caller:
    return Caller(Client(), {"Authorization": f"Bearer {text}"})


def signed_in(user: User) -> Caller:
    """A person with a session and a CSRF token that belongs to it."""
    client, secret = Client(enforce_csrf_checks=True), get_random_string(32)
    client.force_login(user)
    client.cookies[settings.CSRF_COOKIE_NAME] = secret
    return Caller(client, {"X-CSRFToken": secret})


def refused(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """Check that the answer is a problem document with this code; returns its details."""
    assert response["Content-Type"] == "application/problem+json", response.content
    document: dict[str, Any] = response.json()
    assert (response.status_code, document["code"]) == (status, code), document
    assert set(document) == {
        "type", "title", "status", "detail", "code", "instance", "request_id", "details",
    }  # fmt: skip
    assert document["status"] == status
    assert document["type"] == f"urn:placet:problem:{code}"
    assert document["request_id"] == response["X-Request-ID"]
    details: dict[str, Any] = document["details"]
    return details


def as_json(response: HttpResponse, status: int = 200) -> Any:
    """The body of an answer with this status."""
    assert response.status_code == status, response.content
    assert response["Cache-Control"] == "no-store"
    return response.json()


def run_body(event: str = "e-1", *, workflow: str = "toy-pay", **changes: Any) -> dict[str, JsonValue]:
    body = {"workflow": workflow, "source": {"system": "test", "event_id": event}, "input": {"order": "1042"}}
    return body | changes


def proposal_body(key: str = "k-1", **changes: Any) -> dict[str, JsonValue]:
    body = {
        "workflow": "toy-outside", "source": {"system": "test", "event_id": "e-1"}, "key": key, "operation": "toy.pay",
        "arguments": {"order": "1042", "amount": "10.00", "currency": "EUR"}, "reason": "The test wants it.",
        "evidence": [
            {"kind": "message", "title": "A message", "ref": "m-1", "content": "Please pay.",
             "captured_at": "2026-09-19T13:50:00Z"}
        ],
    }  # fmt: skip
    return body | changes


def decision_body(view: dict[str, Any], decision: str = "approve", **changes: Any) -> dict[str, JsonValue]:
    """A decision on what `view` (of ``GET /proposals/{id}/view``) shows."""
    body = {
        "digest": view["digest"], "view_digest": view["view_digest"], "view_receipts": list(view["receipts"].values()),
        "decision": decision, "reason": "" if decision == "approve" else "Not this one.",
        "acknowledged": view["to_acknowledge"],
    }  # fmt: skip
    return body | changes
