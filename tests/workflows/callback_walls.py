"""The walls of callbacks, their secrets and calls: what `test_walls` breaks of them, table by table."""

from collections.abc import Callable
from typing import Any

from django.db.models import Model

from common.signed_webhooks import new_secret
from tests import factories as f
from tests import rows
from workflows.enums import CallStatus
from workflows.models import CallbackCall, CallbackEndpoint, CallbackSecret

NOW = rows.now()


def destination_row(**fields: Any) -> CallbackEndpoint:
    """Not saved; its tenant is."""
    tenant = fields.pop("tenant", None) or f.make_tenant()
    return rows.made(CallbackEndpoint, {
        "tenant": tenant, "name": "crm", "url": "https://crm.example/placet", "created_by": "user:ada",
        "created_at": NOW,
    }, fields)  # fmt: skip


def make_destination(**fields: Any) -> CallbackEndpoint:
    return saved(destination_row(**fields))  # type: ignore[no-any-return]


def secret_row(endpoint: CallbackEndpoint | None = None, **fields: Any) -> CallbackSecret:
    endpoint = endpoint or make_destination()
    row = rows.made(
        CallbackSecret, {"tenant_id": endpoint.tenant_id, "endpoint": endpoint, "created_at": NOW}, {}
    )
    row.seal(new_secret())
    for name, value in fields.items():
        setattr(row, name, value)
    return row


def call_row(endpoint: CallbackEndpoint | None = None, **fields: Any) -> CallbackCall:
    endpoint = endpoint or make_destination()
    run = fields.pop("run", None) or f.make_run(endpoint.tenant)
    return rows.made(CallbackCall, {
        "tenant_id": endpoint.tenant_id, "endpoint": endpoint, "run": run, "state_version": 2,
        "run_status": "completed", "created_at": NOW, "due_at": NOW,
    }, fields)  # fmt: skip


def saved(row: Any) -> Any:
    row.save()
    return row


def second_of_a_name() -> CallbackEndpoint:
    return destination_row(tenant=make_destination().tenant, url="https://other.example/")


def second_of_an_address() -> CallbackEndpoint:
    return destination_row(tenant=make_destination().tenant, name="other")


def delivered_row(**fields: Any) -> CallbackCall:
    """Saved; delivered as the product does it."""
    row = saved(call_row(**fields))
    row.deliver(at=NOW)
    return saved(row)  # type: ignore[no-any-return]


def given_up_row(**fields: Any) -> CallbackCall:
    """Saved; given up just now."""
    row = saved(call_row(**fields))
    row.give_up(at=rows.now(), problem="refused")
    return saved(row)  # type: ignore[no-any-return]


def superseded_row(**fields: Any) -> CallbackCall:
    """Saved; its run has told of a newer state since."""
    row = saved(call_row(**fields))
    row.supersede(at=rows.now())
    return saved(row)  # type: ignore[no-any-return]


def second_of_a_state() -> CallbackCall:
    first = delivered_row()
    return call_row(first.endpoint, run=first.run)


def second_that_waits() -> CallbackCall:
    first = saved(call_row())
    return call_row(first.endpoint, run=first.run, state_version=3)


INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("workflows_callbackendpoint_name", second_of_a_name),
    ("workflows_callbackendpoint_url", second_of_an_address),
    ("workflows_callbackendpoint_gone_is_over", lambda: destination_row(gone=True)),
    ("workflows_callbacksecret_endpoint_tenant", lambda: secret_row(tenant_id=f.make_tenant().pk)),
    ("workflows_callbacksecret_erased_once_ended", lambda: secret_row(sealed=None)),
    ("workflows_callbackcall_endpoint_tenant", lambda: call_row(
        run=f.make_run(tenant := f.make_tenant()), tenant_id=tenant.pk)),
    ("workflows_callbackcall_run_tenant", lambda: call_row(run=f.make_run())),
    ("workflows_callbackcall_once", second_of_a_state),
    ("workflows_callbackcall_newest_only", second_that_waits),
    ("workflows_callbackcall_is_due_or_has_ended", lambda: call_row(due_at=None)),
    ("workflows_callbackcall_is_due_or_has_ended", lambda: call_row(ended_at=NOW)),
    ("workflows_callbackcall_moves", lambda: call_row(status="delivered", due_at=None, ended_at=NOW)),
    ("workflows_callbackcall_moves", lambda: call_row(status="lost", due_at=None, ended_at=NOW)),
]  # fmt: skip

UPDATES: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("workflows_callbackcall_moves", delivered_row, {"status": "pending", "due_at": NOW, "ended_at": None}),
    ("workflows_callbackcall_is_due_or_has_ended", delivered_row, {"ended_at": None}),
]  # fmt: skip

FROZEN: list[tuple[str, Callable[[], Model], list[str]]] = [
    ("workflows_callbackendpoint_bound", make_destination, ["tenant", "name", "url", "created_by", "created_at"]),
    ("workflows_callbacksecret_bound", lambda: saved(secret_row()), [
        "tenant", "endpoint", "created_at", "sealed"]),
    ("workflows_callbackcall_bound", lambda: saved(call_row()), [
        "tenant", "endpoint", "run", "state_version", "run_status", "created_at"]),
]  # fmt: skip

MADE: dict[str, Callable[[], CallbackCall]] = {
    "pending": lambda: saved(call_row()),
    "delivered": delivered_row,
    "superseded": superseded_row,
    "dead": given_up_row,
}
MACHINES: list[tuple[str, type[Model], type, Callable[[str], Model]]] = [
    ("workflows_callbackcall_moves", CallbackCall, CallStatus, lambda status: MADE[status]()),
]
