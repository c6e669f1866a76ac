"""The walls of legal holds: what `tests.workflows.test_walls` breaks of them."""

from collections.abc import Callable
from typing import Any

from django.db.models import Model

from tests import factories as f
from tests import rows
from workflows.models import LegalHold

NOW = rows.now()


def legal_hold_row(**fields: Any) -> LegalHold:
    tenant = fields.pop("tenant", None) or f.make_tenant()
    return rows.made(LegalHold, {
        "tenant": tenant, "target": "order:1", "why": "file-18", "placed_by": "user:ada", "placed_at": NOW,
    }, fields)  # fmt: skip


def saved(**fields: Any) -> LegalHold:
    row = legal_hold_row(**fields)
    row.save()
    return row


def second_of_the_same() -> LegalHold:
    return legal_hold_row(tenant=saved().tenant)


LIFTED = {"lifted_at": NOW, "lifted_by": "user:ada", "lift_why": "over"}
INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("workflows_legalhold_one_scope", lambda: legal_hold_row(record="crm:7")),
    ("workflows_legalhold_lifted_by_somebody", lambda: legal_hold_row(lifted_at=NOW)),
    ("workflows_legalhold_once", second_of_the_same),
]
FROZEN: list[tuple[str, Callable[[], Model], list[str]]] = [
    ("workflows_legalhold_bound", saved, [
        "tenant", "target", "record", "person", "why", "placed_by", "placed_at"]),
    ("workflows_legalhold_bound", lambda: saved(**LIFTED), ["lifted_at", "lifted_by", "lift_why"]),
]  # fmt: skip
