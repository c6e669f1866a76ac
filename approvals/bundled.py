"""What a bundle of the history has of asking people: the rows that it speaks of, and what was bound and shown.

The rows hold no words of people and customers. Those stand in contracts and views, which come along only where they
are for whoever takes the bundle along.
"""

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from approvals.bound import DECISION, LATER, PROPOSAL, of_decision, of_proposal
from approvals.models import Decision, Evidence, Proposal, Signature
from audit.bound import plain
from common.content_errors import ContentErased
from common.content_keys import KeyUnknown, SealBroken
from common.sealed import is_erased, prefetch_keys

AT_ONCE: Final = 500
_OF_PROPOSAL: Final = (
    "status", "run_id", "step", "operation", "operation_version", "target", "digest", "view_digest", "needed", "mode",
    "idempotency_key", "proposed_by", "proposed_through", "decided_at", "execute_by",
)  # fmt: skip
_ALSO_OF_PROPOSAL: Final = ("status", "decided_at", "execute_by")
_OF_DECISION: Final = (
    "proposal_id", "kind", "performed_by", "via", "role", "rule", "rule_version", "digest", "view_digest", "posture",
)  # fmt: skip


_OF_SIGNATURE: Final = (
    "document", "credential_id", "public_key", "authenticator_data", "client_data", "signature",
)  # fmt: skip


def rows(tenant_id: UUID, run_id: UUID | None) -> Iterator[dict[str, Any]]:
    """Proposals, then what was said about them."""
    proposals = _proposals(tenant_id, run_id).order_by("pk")
    for row in proposals.values("pk", *PROPOSAL, *LATER, *_ALSO_OF_PROPOSAL).iterator(chunk_size=AT_ONCE):
        yield {
            "table": "proposal", "id": str(row["pk"]), **{name: plain(row[name]) for name in _OF_PROPOSAL},
            "decide_by": _seconds(row["decide_by"]), "bound": of_proposal(row),
        }  # fmt: skip
    yield from _decisions(tenant_id, run_id)
    yield from _signatures(tenant_id, run_id)


def _decisions(tenant_id: UUID, run_id: UUID | None) -> Iterator[dict[str, Any]]:
    found = Decision.objects.filter(tenant_id=tenant_id).order_by("pk")
    if run_id is not None:
        found = found.filter(proposal__run_id=run_id)
    more = ("pk", "replaced_at", "proposal__excluded_users")
    for row in found.values(*more, *DECISION).iterator(chunk_size=AT_ONCE):
        yield {
            "table": "decision", "id": str(row["pk"]), "standing": row["replaced_at"] is None,
            "own": row["user_id"] in row["proposal__excluded_users"], "at": plain(row["at"]),
            **{name: plain(row[name]) for name in _OF_DECISION}, "bound": of_decision(row),
        }  # fmt: skip


def _signatures(tenant_id: UUID, run_id: UUID | None) -> Iterator[dict[str, Any]]:
    """What passkeys signed, each under the id of its decision."""
    found = Signature.objects.filter(tenant_id=tenant_id).order_by("decision_id")
    if run_id is not None:
        found = found.filter(decision__proposal__run_id=run_id)
    for row in found.values("decision_id", *_OF_SIGNATURE).iterator(chunk_size=AT_ONCE):
        yield {"table": "signature", "id": str(row.pop("decision_id")), **row}


def contracts(tenant_id: UUID, run_id: UUID | None, wanted: bool) -> Iterator[dict[str, Any]]:
    """The bytes that were approved, by their digest."""
    found = _proposals(tenant_id, run_id).only("tenant_id", "run_id", "digest", "contract")
    for row in _with_keys(found.prefetch_related("evidence")):
        contract = _content(row, "contract", wanted)
        yield {
            "digest": row.digest,
            **contract,
            "evidence": [_piece(row, it, wanted) for it in row.evidence.all()],
        }


def views(tenant_id: UUID, run_id: UUID | None, wanted: bool) -> Iterator[dict[str, Any]]:
    """The bytes that were shown to whoever decided, by their digest."""
    for row in _with_keys(_proposals(tenant_id, run_id).only("tenant_id", "run_id", "view_digest", "view")):
        yield {"digest": row.view_digest, **_content(row, "view", wanted)}


def _proposals(tenant_id: UUID, run_id: UUID | None) -> QuerySet[Proposal]:
    found = Proposal.objects.filter(tenant_id=tenant_id)
    return found if run_id is None else found.filter(run_id=run_id)


def _with_keys(found: QuerySet[Proposal]) -> Iterator[Proposal]:
    """The rows with their keys, which come in chunks too."""
    every = found.order_by("pk").iterator(chunk_size=AT_ONCE)
    while some := list(islice(every, AT_ONCE)):
        prefetch_keys(some)
        yield from some


def _content(row: Proposal | Evidence, name: str, wanted: bool) -> dict[str, Any]:
    """The bytes, or null and why: *erased*, *damaged*, or only left out."""
    if not wanted:
        return {name: None, "erased": is_erased(row)}
    try:
        stored = getattr(row, name)
        return {name: None if stored is None else b64encode(bytes(stored)).decode(), "erased": stored is None}
    except ContentErased:
        return {name: None, "erased": True}
    except SealBroken:
        return {name: None, "erased": False, "damaged": True}
    except KeyUnknown:
        return {name: None, "erased": False}


def _piece(row: Proposal, piece: Evidence, wanted: bool) -> dict[str, Any]:
    """What the proposal rests on: the digest that its contract names, over the salt and the bytes. The salt stays here
    without the bytes: with it, what they were could be guessed.
    """
    piece.proposal = row
    found = _content(piece, "content", wanted)
    salt = b64encode(bytes(piece.salt)).decode() if found["content"] is not None else None
    return {"digest": piece.digest, **found, "salt": salt}


def _seconds(at: datetime) -> str:
    """As it stands in the contract."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
