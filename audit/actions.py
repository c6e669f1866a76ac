"""The only writers of the history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from audit.actors import Actor
from common import prepared
from common.ids import new_id
from common.strictjson import canonicalize
from common.tx import gather, require_transaction

MAX_BODY = 8192
"""Bytes of an event's canonical body; larger content is stored elsewhere and named by its digest."""
MAX_REASON = 500

_COLUMNS = """id, tenant_id, kind, subject_type, subject_id, run_id, from_state, to_state, performed_by,
    on_behalf_of, via, owner, reason, request_id, digest, body, through"""
# `at` and `xid` are set by the table's trigger.
_INSERT_MANY = f"""
    INSERT INTO audit_event ({_COLUMNS})
    SELECT * FROM unnest(
        %s::uuid[], %s::uuid[], %s::text[], %s::text[], %s::uuid[], %s::uuid[], %s::text[], %s::text[], %s::text[],
        %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::jsonb[], %s::text[])
"""  # noqa: S608


class EventTooLarge(ValueError):
    """The body of an event has more than 8,192 bytes: it holds ids, states, codes and digests, not content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One event to be recorded; the fields are those of `record`."""

    by: Actor
    kind: str
    tenant_id: UUID
    subject_type: str
    subject_id: UUID
    run_id: UUID | None = None
    from_state: str = ""
    to_state: str = ""
    reason: str = ""
    digest: str = ""
    body: Mapping[str, Any] | None = None

    def row(self, event_id: UUID) -> tuple[Any, ...]:
        """The values of the INSERT, in the order of its columns."""
        by = self.by
        return (
            event_id, self.tenant_id, self.kind, self.subject_type, self.subject_id, self.run_id, self.from_state,
            self.to_state, by.performed_by, by.on_behalf_of, str(by.via), str(by.owner), self.reason[:MAX_REASON],
            by.request_id, self.digest, _body(self.body), by.through,
        )  # fmt: skip


def record(
    *,
    by: Actor,
    kind: str,
    tenant_id: UUID,
    subject_type: str,
    subject_id: UUID,
    run_id: UUID | None = None,
    from_state: str = "",
    to_state: str = "",
    reason: str = "",
    digest: str = "",
    body: Mapping[str, Any] | None = None,
) -> UUID:
    """Add one event in the transaction of the change it records; returns its id.

    ``kind`` is ``<thing>.<what happened>`` (``proposal.approved``). ``reason`` is a code or a person's own words,
    cut at 500 characters. ``body`` is I-JSON of at most 8,192 bytes. Time and transaction id are the database's.
    If this insert fails, so does the change.
    """
    require_transaction()
    entry = Entry(
        by=by, kind=kind, tenant_id=tenant_id, subject_type=subject_type, subject_id=subject_id, run_id=run_id,
        from_state=from_state, to_state=to_state, reason=reason, digest=digest, body=body,
    )  # fmt: skip
    return record_many([entry])[0]


def record_many(entries: Sequence[Entry]) -> list[UUID]:
    """Add several events with one statement, in their order; returns their ids. No entries, no statement."""
    require_transaction()
    if not entries:
        return []
    ids = [new_id() for _ in entries]
    rows = [entry.row(event_id) for entry, event_id in zip(entries, ids, strict=True)]
    gather(_insert, rows)
    return ids


def _insert(rows: list[tuple[Any, ...]]) -> None:
    """The events of an action come with one statement, the last one before it commits."""
    with prepared.cursor() as cursor:
        cursor.execute(_INSERT_MANY, [list(column) for column in zip(*rows, strict=True)])


def _body(body: Mapping[str, Any] | None) -> str:
    """The canonical text of a body, so that the sealer can never meet one that it cannot hash."""
    if not body:
        return "{}"
    canonical = canonicalize(dict(body))
    if len(canonical) > MAX_BODY:
        raise EventTooLarge(EventTooLarge.__doc__)
    return canonical.decode()
