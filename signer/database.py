"""What the signer reads and adds, as the role `placet_signer`, which may do nothing else."""

import hashlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final
from uuid import UUID

import psycopg

from audit.checkpoints import PublicKey, parse
from signer.folder import Refusal
from signer.history import Seal

LOCK: Final = 0x506C6163_65747369  # "Placetsi", a number of our own among the advisory locks
_BATCH: Final = 5_000
# The tenants by jumping from one to the next in the index: reading all their seals would take seconds each time.
_ENDS: Final = """
    WITH RECURSIVE found AS (
        (SELECT tenant_id FROM audit_seal ORDER BY tenant_id LIMIT 1)
        UNION ALL
        SELECT (SELECT s.tenant_id FROM audit_seal s WHERE s.tenant_id > f.tenant_id ORDER BY s.tenant_id LIMIT 1)
        FROM found f WHERE f.tenant_id IS NOT NULL)
    SELECT tenant_id, (SELECT max(s.seq) FROM audit_seal s WHERE s.tenant_id = f.tenant_id)
    FROM found f WHERE tenant_id IS NOT NULL
"""
_SEALS: Final = "SELECT seq, previous, hash FROM audit_seal WHERE tenant_id = %s AND seq > %s ORDER BY seq"
_PLACE: Final = "SELECT hash FROM audit_seal WHERE tenant_id = %s AND seq = %s"
_ADD_CHECKPOINT: Final = """
    INSERT INTO audit_checkpoint (id, tenant_id, size, root, note, key_hash, signed_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING
"""
_ADD_REPORT: Final = """
    INSERT INTO audit_signer_report (id, tenant_id, kind, cause, detail, at)
    VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO NOTHING
"""


def connect(address: str) -> psycopg.Connection:
    return psycopg.connect(
        address, autocommit=True, connect_timeout=5, application_name="placet_signer", keepalives_idle=10,
        keepalives_interval=5, keepalives_count=4, tcp_user_timeout=30_000,
    )  # fmt: skip


class Database:
    """The stored seals, and the signer's own tables. Rows are added once, however often that is tried."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def alone(self) -> bool:
        """Whether this is the only signer of this database, from now on until the connection ends."""
        row = self.connection.execute("SELECT pg_try_advisory_lock(%s)", [LOCK]).fetchone()
        return bool(row and row[0])

    @contextmanager
    def snapshot(self) -> Generator[None]:
        """One state of the database for all that is read inside."""
        with self.connection.transaction():
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def ends(self) -> dict[UUID, int]:
        """How many seals each tenant has."""
        return {tenant: int(size) for tenant, size in self.connection.execute(_ENDS)}

    def place(self, tenant: UUID, seq: int) -> str | None:
        row = self.connection.execute(_PLACE, [tenant, seq]).fetchone()
        return row[0] if row else None

    def seals(self, tenant: UUID, after: int = 0) -> Iterator[Seal]:
        """The seals behind a place, in order, through a cursor on the server. Inside `snapshot` only."""
        with self.connection.cursor("seals") as cursor:
            cursor.itersize = _BATCH
            cursor.execute(_SEALS, [tenant, after])
            for row in cursor:
                yield Seal(*row)

    def add_key(self, key: PublicKey) -> None:
        self.connection.execute(
            "INSERT INTO audit_signing_key (vkey) VALUES (%s) ON CONFLICT (vkey) DO NOTHING", [key.vkey]
        )

    def add_checkpoint(self, note: str, key: PublicKey) -> None:
        found = parse(note)
        values = [found.tenant, found.size, found.root.hex(), note, key.hash.hex(), found.time]
        self.connection.execute(_ADD_CHECKPOINT, [_id(note), *values])

    def has_checkpoint(self, note: str) -> bool:
        """Whether the row of this note is there, and says the same."""
        found, values = parse(note), [_id(note)]
        sql = "SELECT tenant_id, size, root, note FROM audit_checkpoint WHERE id = %s"
        return self.connection.execute(sql, values).fetchone() == (
            found.tenant,
            found.size,
            found.root.hex(),
            note,
        )

    def add_report(self, tenant: UUID, kind: str, refusal: Refusal) -> None:
        values = [kind, refusal.cause, refusal.detail, datetime.fromisoformat(refusal.at)]
        name = "\n".join([str(tenant), kind, refusal.at, refusal.cause, refusal.detail])
        self.connection.execute(_ADD_REPORT, [_id(name), tenant, *values])


def _id(text: str) -> UUID:
    """The same row has the same id each time it is added."""
    return UUID(bytes=hashlib.sha256(text.encode()).digest()[:16])
