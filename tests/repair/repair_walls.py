"""The walls of causes, choices and alerts: what `tests.workflows.test_walls` breaks of them, table by table."""

from collections.abc import Callable
from typing import Any

from django.db.models import Model

from repair.models import RepairCause, RepairMove
from repair.models_alerts import StopAlert
from tests import factories as f
from tests import rows

NOW = rows.now()


def saved(row: Any) -> Any:
    row.save()
    return row


def cause_row(**fields: Any) -> RepairCause:
    tenant = fields.pop("tenant", None) or f.make_tenant()
    return rows.made(RepairCause, {
        "tenant": tenant, "title": "The till was shut", "created_by": "user:ada", "created_at": NOW,
    }, fields)  # fmt: skip


def second_of_a_title() -> RepairCause:
    return cause_row(tenant=saved(cause_row()).tenant)


def move_row(**fields: Any) -> RepairMove:
    packet = f.make_packet()
    return rows.made(RepairMove, {
        "tenant_id": packet.tenant_id, "packet": packet, "choice": "take", "user": f.make_user(packet.tenant),
        "at": NOW, "refused": "", "words": "I looked at it.",
    }, fields)  # fmt: skip


def alert_row(**fields: Any) -> StopAlert:
    tenant = fields.pop("tenant", None) or f.make_tenant()
    return rows.made(StopAlert, {
        "tenant": tenant, "workflow": "toy-pay", "cause": "command_dead", "owner": "payments", "opened_at": NOW,
        "due_at": NOW, "stopped": 2, "told": 1,
    }, fields)  # fmt: skip


def second_open_alert() -> StopAlert:
    return alert_row(tenant=saved(alert_row()).tenant)


INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("repair_cause_once", second_of_a_title),
    ("repair_move_packet_tenant", lambda: move_row(packet=f.make_packet())),
    ("repair_move_cause_tenant", lambda: move_row(root_cause=saved(cause_row()))),
    ("repair_alert_tells_what_stopped", lambda: alert_row(told=3)),
    ("repair_alert_ends_when_all_is_told", lambda: alert_row(due_at=None)),
    ("repair_alert_ends_when_all_is_told", lambda: alert_row(due_at=None, closed_at=NOW)),
    ("repair_alert_one_open", second_open_alert),
]  # fmt: skip

FROZEN: list[tuple[str, Callable[[], Model], list[str]]] = [
    ("repair_move_frozen", lambda: saved(move_row()), [
        "tenant", "packet", "choice", "user", "at", "refused", "root_cause", "words"]),
    ("repair_alert_bound", lambda: saved(alert_row()), ["tenant", "workflow", "cause", "owner", "opened_at"]),
]  # fmt: skip

TARGETS = {"repair_packet_tenant_id", "repair_cause_tenant_id", "repair_alert_tenant_id"}
"""Targets of composite foreign keys."""
