"""What a bundle is made of, read as it comes and inside its snapshot: links, other events, proofs, checkpoints."""

from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models.functions import TruncDate

from audit import checkpoints as notes
from audit.chain import SELECT_CONTENT, canonical_content, canonical_link, content_of
from audit.models import Checkpoint, SigningKey
from audit.tree import leaf_hash, node_hash

CHUNK: Final = 2000
_LINKS: Final = f"""
    SELECT s.seq, s.previous, {SELECT_CONTENT}
    FROM audit_seal s JOIN audit_event e ON e.id = s.event_id
    WHERE s.tenant_id = %s
"""  # noqa: S608
_UNSEALED: Final = f"""
    SELECT {SELECT_CONTENT} FROM audit_event e
    WHERE e.tenant_id = %s AND NOT EXISTS (SELECT FROM audit_seal s WHERE s.event_id = e.id)
"""  # noqa: S608
_KEYS: Final = """(e.kind IN ('user.mfa_added', 'user.mfa_removed') AND e.body ? 'credential_id' AND e.subject_id IN (
        SELECT (v.body -> 'document' ->> 'approver')::uuid FROM audit_event v
        WHERE v.tenant_id = %s AND v.run_id = %s AND v.kind = 'proposal.signed'))"""
"""That the passkeys were registered, or removed, with which something in the run was signed."""
_OF_RUN: Final = f" AND e.tenant_id = s.tenant_id AND (e.run_id = %s OR {_KEYS})"


def links(
    tenant_id: UUID, run_id: UUID | None, places: tuple[int, int] | None
) -> Iterator[tuple[int, bytes]]:
    """Places and canonical bytes of the sealed events, by place."""
    more, values = "", list[Any]([tenant_id])
    if run_id is not None:
        more, values = _OF_RUN, [tenant_id, run_id, tenant_id, run_id]
    elif places is not None:
        more, values = " AND s.seq BETWEEN %s AND %s", [tenant_id, *places]
    for seq, previous, *columns in _fetched(f"{_LINKS}{more} ORDER BY s.seq", values):
        content = content_of(columns)
        assert content is not None
        yield seq, canonical_link(seq, previous, content)


def unsealed(tenant_id: UUID, run_id: UUID | None) -> Iterator[bytes]:
    """The same of events that have no place yet; without ``seq`` and ``previous``."""
    more, values = "", list[Any]([tenant_id])
    if run_id is not None:
        more, values = f" AND (e.run_id = %s OR {_KEYS})", [tenant_id, run_id, tenant_id, run_id]
    for columns in _fetched(f"{_UNSEALED}{more} ORDER BY e.written NULLS FIRST, e.at, e.id", values):
        content = content_of(columns)
        assert content is not None
        yield canonical_content(content)


def _fetched(sql: str, values: list[Any]) -> Iterator[Any]:
    """Rows through a cursor on the server."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql, values)
        while rows := cursor.fetchmany(CHUNK):
            yield from rows


# --- proofs ----------------------------------------------------------------------------------------------------------


def proofs(tenant_id: UUID, places: Collection[int], size: int) -> Iterator[dict[str, Any]]:
    """The inclusion of each of these places among the first ``size`` events, by place. One pass over all hashes."""
    hashes = _fetched(
        "SELECT hash FROM audit_seal WHERE tenant_id = %s AND seq <= %s ORDER BY seq", [tenant_id, size]
    )
    found = paths((bytes.fromhex(row[0]) for row in hashes), {place - 1 for place in places})
    for index, path in sorted(found.items()):
        yield {"seq": index + 1, "size": size, "path": [b64encode(step).decode() for step in path]}


def paths(entries: Iterable[bytes], wanted: Collection[int]) -> dict[int, list[bytes]]:
    """The audit paths of RFC 6962 of the entries with these numbers (from 0) in the tree of all.

    It keeps the roots of complete subtrees, not the tree: of a million entries twenty, and the paths themselves.
    """
    found: dict[int, list[bytes]] = {}
    peaks: list[tuple[int, bytes, list[int]]] = []  # size, root, and which of the wanted are in it
    for index, entry in enumerate(entries):
        mine = [index] if index in wanted else []
        found |= {index: []} if mine else {}
        peaks.append((1, leaf_hash(entry), mine))
        while len(peaks) > 1 and peaks[-2][0] == peaks[-1][0]:
            right, left = peaks.pop(), peaks.pop()
            peaks.append(_joined(left, right, found))
    while len(peaks) > 1:
        right, left = peaks.pop(), peaks.pop()
        peaks.append(_joined(left, right, found))
    return found


def _joined(
    left: tuple[int, bytes, list[int]], right: tuple[int, bytes, list[int]], found: dict[int, list[bytes]]
) -> tuple[int, bytes, list[int]]:
    for index in left[2]:
        found[index].append(right[1])
    for index in right[2]:
        found[index].append(left[1])
    return left[0] + right[0], node_hash(left[1], right[1]), left[2] + right[2]


# --- checkpoints -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Copy:
    """A stored checkpoint under the name that its file has everywhere."""

    name: str
    note: str


def newest_checkpoint(tenant_id: UUID) -> Checkpoint | None:
    return Checkpoint.objects.filter(tenant_id=tenant_id).order_by("-recorded_at", "-size").first()


def checkpoints(tenant_id: UUID, *, all_of_them: bool) -> Iterator[Copy]:
    """The newest; with ``all_of_them`` also the last one of each day."""
    newest = newest_checkpoint(tenant_id)
    if newest is None:
        return
    yield Copy(notes.file_name(tenant_id, newest.size), newest.note)
    if all_of_them:
        days = Checkpoint.objects.filter(tenant_id=tenant_id).annotate(day=TruncDate("signed_at"))
        last = days.order_by("day", "-signed_at").distinct("day").iterator(chunk_size=CHUNK)
        # After a break that somebody accepted there may be two of one size: the file of that name is the newest.
        named = {newest.size}
        for one in last:
            if one.size not in named:
                named.add(one.size)
                yield Copy(notes.file_name(tenant_id, one.size), one.note)


def public_keys() -> list[str]:
    return list(SigningKey.objects.order_by("since").values_list("vkey", flat=True))


def utc(at: datetime) -> str:
    """UTC with the six digits that PostgreSQL keeps."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
