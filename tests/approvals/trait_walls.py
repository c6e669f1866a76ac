"""Walls around what later proposals are compared with."""

from collections.abc import Callable
from typing import Any

from django.db.models import Model

from approvals.models import Proposal, Trait
from tests import factories


def trait_values(proposal: Proposal, **fields: Any) -> dict[str, Any]:
    defaults = {
        "tenant_id": proposal.tenant_id, "proposal": proposal, "operation": proposal.operation,
        "target": proposal.target, "kind": "account", "place": "/account", "fingerprint": f"hmac:{proposal.pk}",
    }  # fmt: skip
    return defaults | fields


def trait_row(**fields: Any) -> Trait:
    proposal = fields.pop("proposal", None) or factories.make_proposal()
    return Trait(**trait_values(proposal, **fields))


def saved_trait() -> Trait:
    row = trait_row()
    row.save()
    return row


INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("approvals_trait_kind_known", lambda: trait_row(kind="mood")),
    ("approvals_trait_proposal_tenant", lambda: trait_row(tenant_id=factories.make_tenant().pk)),
]
UPDATES: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("approvals_trait_bound", saved_trait, {"fingerprint": "hmac:other"}),
]
ROWS: list[tuple[str, Callable[[], Model]]] = [("approvals_trait_bound", saved_trait)]
