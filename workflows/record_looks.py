"""The records that an approval rests on: which they were, and how they are when somebody looks at them later."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from approvals.models import Proposal
from common.content_errors import ContentErased
from common.content_keys import SealBroken
from common.strictjson import JsonRefused
from workflows import registry
from workflows.contracts import read_contract
from workflows.documents import load_json
from workflows.models import Document

KIND: Final = "record.look"
MOST_READ: Final = 5
UNREADABLE: Final = (ContentErased, SealBroken, JsonRefused, AssertionError)


@dataclass(frozen=True, slots=True)
class RecordLook:
    """How the records were at a moment: their names and version tags. ``seen_by``: the id of what holds it."""

    at: datetime
    pins: Mapping[str, str]
    seen_by: UUID


def pins_of(proposal: Proposal | None) -> Mapping[str, str]:
    """What the approval was pinned to; nothing where the contract cannot be read any more."""
    if proposal is None:
        return {}
    try:
        pins = read_contract(bytes(proposal.contract)).get("pins", {})
    except UNREADABLE:
        return {}
    return {str(name): str(tag) for name, tag in pins.items()} if isinstance(pins, Mapping) else {}


def kind_of_record(name: str) -> str:
    """*order* of ``order:1042``, without the id, which may be personal; *record* where a name has no kind."""
    kind, colon, _ = name.partition(":")
    return kind if colon else "record"


def can_be_looked_at(proposal: Proposal | None) -> bool:
    """Whether it rests on a record that the code here knows how to read."""
    if proposal is None or not registry.knows(proposal.operation, proposal.operation_version):
        return False
    return bool(pins_of(proposal))


def last_look(proposal: Proposal | None) -> RecordLook | None:
    """The newest that a person took for this proposal; None where nobody did, or it cannot be read any more."""
    if proposal is None:
        return None
    kept = Document.objects.filter(tenant_id=proposal.tenant_id, run_id=proposal.run_id, kind=KIND)
    looks = (_look_of(document, proposal.pk) for document in kept.order_by("-created_at", "-id")[:MOST_READ])
    return next((look for look in looks if look is not None), None)


def _look_of(document: Document, proposal_id: UUID) -> RecordLook | None:
    try:
        kept = load_json(document)
    except UNREADABLE:
        return None
    return (
        RecordLook(document.created_at, kept["pins"], document.pk)
        if kept["proposal"] == str(proposal_id)
        else None
    )
