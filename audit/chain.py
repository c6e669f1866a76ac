"""How one event becomes one link: the canonical document that is hashed, shared by the sealer and the verifier.

``hash = SHA-256("placet.event.v1\\n" + RFC 8785({v, seq, previous, …the event}))``. ``previous`` is the hash of the
tenant's event before it; the first one has 64 zeros there.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from common.strictjson import JsonRefused, canonicalize

DOMAIN: Final = b"placet.event.v1\n"
GENESIS: Final = "0" * 64

EVENT_COLUMNS: Final = (
    "id", "tenant_id", "kind", "subject_type", "subject_id", "run_id", "from_state", "to_state", "performed_by",
    "on_behalf_of", "via", "owner", "reason", "request_id", "digest", "body", "at",
)  # fmt: skip
SELECT_EVENT: Final = ", ".join("e.body::text" if name == "body" else f"e.{name}" for name in EVENT_COLUMNS)
"""The body comes as jsonb's own text: always the same for the same value, and readable whatever is in it."""


def event_of(row: tuple[Any, ...]) -> dict[str, Any]:
    """A row of `SELECT_EVENT` by the names of its columns."""
    return dict(zip(EVENT_COLUMNS, row, strict=True))


def link_hash(seq: int, previous: str, event: Mapping[str, Any]) -> str:
    """The hash of the event at place ``seq`` after the event whose hash is ``previous``."""
    document = {
        "v": 1,
        "seq": seq,
        "previous": previous,
        "id": str(event["id"]),
        "tenant": str(event["tenant_id"]),
        "kind": event["kind"],
        "subject": f"{event['subject_type']}:{event['subject_id']}",
        "run": _text_or_none(event["run_id"]),
        "from": event["from_state"],
        "to": event["to_state"],
        "performed_by": event["performed_by"],
        "on_behalf_of": event["on_behalf_of"],
        "via": event["via"],
        "owner": event["owner"],
        "reason": event["reason"],
        "request_id": event["request_id"],
        "digest": event["digest"],
        "at": instant(event["at"]),
    }
    return hashlib.sha256(DOMAIN + _canonical(document, event["body"])).hexdigest()


def instant(at: datetime) -> str:
    """UTC with the six digits that PostgreSQL keeps: ``2026-09-19T17:52:08.000000Z``."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _canonical(document: dict[str, Any], body: str) -> bytes:
    """With the body as a value. One that has no canonical form is taken as its text.

    `record` writes none of that kind, but the application role could, and no row may stop a whole chain.
    """
    try:
        return canonicalize(document | {"body": json.loads(body)})
    except (JsonRefused, ValueError, RecursionError):
        return canonicalize(document | {"body": body})


def _text_or_none(value: UUID | None) -> str | None:
    return str(value) if value is not None else None
