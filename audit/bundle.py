"""The bundle: a tenant's history, or a part of it, as one zip file that `verify_history.py` checks without this server.

    manifest.json      what it is: {"format": "placet.bundle.v1", tenant, scope, made_at, made_by, counts, …}
    events.jsonl       each line the canonical bytes of one link (`audit.chain`), by place
    unsealed.jsonl     events that have no place yet, without `seq` and `previous`
    proofs.jsonl       of one run or a stretch: {seq, size, path}, inclusion in the newest checkpoint
    contracts.jsonl, views.jsonl   {digest, contract | view: base64 or null, erased}
    tables.jsonl       the rows as they are now: {table, id, …}
    checkpoints/, keys.txt         copies, to look at; a verifier believes its own

Everything is read in one snapshot and written as it comes, so that no more than a chunk of it is in memory. The apps
above say what there is of rows and contents (`register`); this one knows events.
"""

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Final
from uuid import UUID

from django.db import connection, transaction

from audit import bundle_reading as reading
from common.strictjson import canonicalize

FORMAT: Final = "placet.bundle.v1"
PATIENCE: Final = "5min"
"""Of one statement: a long history takes its time, and nobody waits for a lock of it."""
COMPRESSION: Final = 5


@dataclass(frozen=True, slots=True)
class Scope:
    """What is taken along: a whole tenant, one run of it, or the events of some places without their rows.

    ``contracts``, ``views``: whether their bytes come along. They hold personal data; without them their digests stand.
    """

    tenant_id: UUID
    run_id: UUID | None = None
    places: tuple[int, int] | None = None
    contracts: bool = True
    views: bool = True

    @property
    def words(self) -> dict[str, Any]:
        if self.run_id is not None:
            return {"kind": "run", "run_id": str(self.run_id)}
        if self.places is not None:
            return {"kind": "range", "from_seq": self.places[0], "to_seq": self.places[1]}
        return {"kind": "tenant"}


Row = Mapping[str, Any]
Rows = Callable[[UUID, UUID | None], Iterator[Row]]
"""The rows of a tenant, or of one run of it; inside the snapshot."""
Contents = Callable[[UUID, UUID | None, bool], Iterator[Row]]
"""The same for contents; the last argument says whether their bytes come along."""
_rows: list[Rows] = []
_contents: dict[str, Contents] = {}


def register(rows: Rows, **contents: Contents) -> None:
    """Called when the apps are loaded."""
    if rows not in _rows:
        _rows.append(rows)
    _contents.update(contents)


def write(out: IO[bytes], scope: Scope, *, name: str, made_by: str) -> dict[str, int]:
    """Write the bundle; returns how many lines each part has. ``name`` is the tenant's, for people."""
    with (
        _snapshot() as at,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=COMPRESSION) as archive,
    ):
        writer = _Writer(archive)
        checkpoint = reading.newest_checkpoint(scope.tenant_id)
        places = writer.events(scope)
        if places and checkpoint is not None:
            proven = _proven(scope, places, checkpoint.size)
            if proven:
                writer.lines("proofs.jsonl", reading.proofs(scope.tenant_id, proven, checkpoint.size))
        writer.rest(scope)
        for one in reading.checkpoints(scope.tenant_id, all_of_them=scope.words["kind"] == "tenant"):
            writer.text(f"checkpoints/{one.name}", one.note)
        writer.text("keys.txt", "".join(f"{vkey}\n" for vkey in reading.public_keys()))
        writer.text("manifest.json", _manifest(scope, writer, at, name, made_by))
        return writer.counts


@contextmanager
def _snapshot() -> Iterator[datetime]:
    """One view of everything, and an instant before it was taken: what was signed until then is in it."""
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute(f"SET LOCAL statement_timeout = '{PATIENCE}'")
        cursor.execute("SELECT now()")
        yield cursor.fetchone()[0]


def _proven(scope: Scope, places: list[int], size: int) -> list[int]:
    """Which events get a proof. Of a stretch the last one is enough: each event carries the hash of the one before."""
    signed = [place for place in places if place <= size]
    if scope.run_id is not None:
        return signed
    return signed[-1:] if scope.places is not None else []


def _manifest(scope: Scope, writer: "_Writer", at: datetime, name: str, made_by: str) -> str:
    document = {
        "format": FORMAT, "tenant": str(scope.tenant_id), "tenant_name": name, "made_at": reading.utc(at),
        "made_by": made_by, "scope": scope.words, "first_seq": writer.first, "last_seq": writer.last,
        "counts": writer.counts,
    }  # fmt: skip
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


class _Writer:
    """Puts members into the archive, line by line, and counts."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.counts: dict[str, int] = {"events": 0}
        self.first = self.last = 0

    def events(self, scope: Scope) -> list[int]:
        """Write the sealed events; returns their places where proofs are made of them, which are few."""
        kept: list[int] = []
        few = scope.run_id is not None or scope.places is not None
        with self._archive.open("events.jsonl", "w", force_zip64=True) as member:
            for seq, line in reading.links(scope.tenant_id, scope.run_id, scope.places):
                member.write(line + b"\n")
                self.first, self.last = self.first or seq, seq
                self.counts["events"] += 1
                if few:
                    kept.append(seq)
        return kept

    def rest(self, scope: Scope) -> None:
        """What has happened since the last seal, contents and rows: for a stretch they would say nothing."""
        if scope.places is not None:
            return
        self.raw("unsealed.jsonl", reading.unsealed(scope.tenant_id, scope.run_id))
        for kind, contents in sorted(_contents.items()):
            wanted = {"contracts": scope.contracts, "views": scope.views}[kind]
            self.lines(f"{kind}.jsonl", contents(scope.tenant_id, scope.run_id, wanted))
        self.lines("tables.jsonl", (row for rows in _rows for row in rows(scope.tenant_id, scope.run_id)))

    def lines(self, name: str, rows: Iterable[Row]) -> None:
        self.raw(name, (canonicalize(dict(row)) for row in rows))

    def raw(self, name: str, lines: Iterable[bytes]) -> None:
        count = 0
        with self._archive.open(name, "w", force_zip64=True) as member:
            for line in lines:
                member.write(line + b"\n")
                count += 1
        self.counts[name.removesuffix(".jsonl")] = count

    def text(self, name: str, text: str) -> None:
        self._archive.writestr(name, text.encode(), zipfile.ZIP_DEFLATED)
