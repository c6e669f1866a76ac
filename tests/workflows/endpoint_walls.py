"""The walls of endpoints, their secrets and deliveries: what `test_walls` breaks of them, table by table."""

from collections.abc import Callable
from typing import Any

from django.db.models import Model

from access.models import Agent
from common.signed_webhooks import new_secret
from tests import factories as f
from tests import rows
from workflows.models import Delivery, Endpoint, EndpointSecret

NOW = rows.now()


def endpoint_row(**fields: Any) -> Endpoint:
    """Not saved; its tenant and automation are."""
    tenant = fields.pop("tenant", None) or f.make_tenant()
    agent = fields.pop("agent", None) or Agent.objects.create(tenant=tenant, name=f"a-{rows.new_id()}")
    return rows.made(Endpoint, {
        "tenant": tenant, "agent": agent, "name": "tickets", "address": str(rows.new_id()), "workflow": "toy-pay",
        "source_system": "helpdesk", "scheme": "standard_webhooks", "signature_header": "webhook-signature",
        "timestamp_header": "webhook-timestamp", "created_by": "user:ada", "created_at": NOW,
    }, fields)  # fmt: skip


def make_endpoint(**fields: Any) -> Endpoint:
    row = endpoint_row(**fields)
    row.save()
    return row


def secret_row(endpoint: Endpoint | None = None, **fields: Any) -> EndpointSecret:
    endpoint = endpoint or make_endpoint()
    row = rows.made(EndpointSecret, {
        "tenant_id": endpoint.tenant_id, "endpoint": endpoint, "created_at": NOW}, {})  # fmt: skip
    row.seal(new_secret())
    for name, value in fields.items():
        setattr(row, name, value)
    return row


def delivery_row(endpoint: Endpoint | None = None, **fields: Any) -> Delivery:
    endpoint = endpoint or make_endpoint()
    row = rows.made(Delivery, {
        "tenant_id": endpoint.tenant_id, "endpoint": endpoint, "event_id": "msg_1", "body_hash": "hmac:1",
        "received_at": NOW, "due_at": NOW,
    }, fields)  # fmt: skip
    row.seal_body(b"{}")
    return row


def saved(row: Any) -> Any:
    row.save()
    return row


def second_of_a_name() -> Endpoint:
    first = make_endpoint()
    return endpoint_row(tenant=first.tenant, agent=first.agent)


def second_of_an_id() -> Delivery:
    return delivery_row(saved(delivery_row()).endpoint)


ENDED = {"due_at": None, "ended_at": NOW}
INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("workflows_endpoint_agent_tenant", lambda: endpoint_row(
        agent=Agent.objects.create(tenant=f.make_tenant(), name="other"))),
    ("workflows_endpoint_name", second_of_a_name),
    ("workflows_endpoint_scheme_known", lambda: endpoint_row(scheme="none")),
    ("workflows_endpointsecret_endpoint_tenant", lambda: secret_row(tenant_id=f.make_tenant().pk)),
    ("workflows_endpointsecret_erased_once_ended", lambda: secret_row(sealed=None)),
    ("workflows_delivery_endpoint_tenant", lambda: delivery_row(tenant_id=f.make_tenant().pk)),
    ("workflows_delivery_once", second_of_an_id),
    ("workflows_delivery_waits_or_has_ended", lambda: delivery_row(due_at=None)),
    ("workflows_delivery_says_what_came_of_it", lambda: delivery_row(outcome="lost", **ENDED)),
    ("workflows_delivery_says_what_came_of_it", lambda: delivery_row(outcome="accepted", **ENDED)),
    ("workflows_delivery_says_what_came_of_it", lambda: delivery_row(outcome="quarantined", **ENDED)),
]  # fmt: skip

UPDATES: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("workflows_delivery_bound", lambda: saved(delivery_row(outcome="quarantined", code="x", **ENDED)), {
        "outcome": "accepted"}),
]  # fmt: skip

FROZEN: list[tuple[str, Callable[[], Model], list[str]]] = [
    ("workflows_endpoint_bound", make_endpoint, [
        "tenant", "name", "address", "agent", "workflow", "source_system", "scheme", "signature_header",
        "timestamp_header", "input_member", "created_by", "created_at"]),
    ("workflows_endpointsecret_bound", lambda: saved(secret_row()), [
        "tenant", "endpoint", "created_at", "sealed"]),
    ("workflows_delivery_bound", lambda: saved(delivery_row()), [
        "tenant", "endpoint", "event_id", "body_hash", "received_at", "body"]),
]  # fmt: skip
