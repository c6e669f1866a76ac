"""Walls around what passkeys signed."""

from collections.abc import Callable
from typing import Any

from django.db.models import Model

from approvals.models import Decision, Signature
from common.ids import new_id
from tests import factories, rows


def signature_row(vote: Decision | None = None, **fields: Any) -> Signature:
    if vote is None:
        proposal = factories.make_proposal()
        vote = factories.make_decision(proposal, factories.make_user(proposal.tenant))
    values = {
        "tenant_id": vote.tenant_id, "decision": vote, "nonce": new_id().hex, "document": "{}", "credential_id": "Y3I",
        "public_key": "a2V5", "authenticator_data": "ZGF0YQ==", "client_data": "e30=", "signature": "c2ln",
        "at": rows.now(),
    }  # fmt: skip
    return Signature(**(values | fields))


def saved_signature() -> Signature:
    row = signature_row()
    row.save()
    return row


INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("approvals_signature_decision_tenant", lambda: signature_row(tenant_id=factories.make_tenant().pk)),
    ("approvals_signature_nonce_once", lambda: signature_row(nonce=saved_signature().nonce)),
    ("approvals_signature_is_whole", lambda: signature_row(signature="")),
    ("approvals_signature_is_whole", lambda: signature_row(document="")),
]
UPDATES: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("approvals_signature_bound", saved_signature, {"signature": "b3RoZXI="}),
    ("approvals_signature_bound", saved_signature, {"public_key": "b3RoZXI="}),
]
ROWS: list[tuple[str, Callable[[], Model]]] = [("approvals_signature_bound", saved_signature)]
