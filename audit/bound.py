"""What a row must go on saying: a digest of its bound columns stands in the event that made it.

The history names the digest of a contract, and says who decided. A row has more: whom a proposal was asked of, in which
role somebody decided, when. None of these columns ever changes, so one digest of all of them holds the row fast.
``SHA-256("placet.row.v1\\n" + RFC 8785 bytes of {table, id, column: value})``. A column that is added later is
among these only in rows that have it: events of before know nothing of it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from common.strictjson import canonicalize

DOMAIN: Final = b"placet.row.v1\n"
ROW: Final = "row"
"""The member of an event's body."""


def bound_row(table: str, columns: Sequence[str], row: Mapping[str, Any]) -> dict[str, Any]:
    """The bound columns as plain JSON. ``row`` has them under their names, whether it is a model's dict or `values`."""
    ident = row["id"] if "id" in row else row["pk"]
    return {"table": table, "id": str(ident)} | {name: plain(row[name]) for name in columns}


def row_digest(bound: Mapping[str, Any]) -> str:
    return hashlib.sha256(DOMAIN + canonicalize(dict(bound))).hexdigest()


def plain(value: Any) -> Any:
    """JSON of a column's value: times as UTC with six digits, documents as their digest."""
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str):
        return str.__str__(value)  # the members of our enums are texts, too
    if isinstance(value, Mapping):
        return hashlib.sha256(canonicalize(dict(value))).hexdigest()
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def utc_text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
