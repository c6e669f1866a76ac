"""The provider's own durable store: one SQLite file in WAL mode, and a journal of every arrival."""

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from examples.refunds.provider.exchange import Request
from examples.refunds.provider.money import to_text

SCHEMA = """
CREATE TABLE IF NOT EXISTS customers (
  tenant TEXT, id TEXT, name TEXT NOT NULL, email TEXT NOT NULL, status TEXT NOT NULL,
  PRIMARY KEY (tenant, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS orders (
  tenant TEXT, id TEXT, customer TEXT NOT NULL, currency TEXT NOT NULL, paid INTEGER NOT NULL,
  status TEXT NOT NULL, placed_at TEXT NOT NULL, items TEXT NOT NULL, version INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS refunds (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, order_id TEXT NOT NULL, amount INTEGER NOT NULL,
  currency TEXT NOT NULL, reason TEXT NOT NULL, receipt_to TEXT, message TEXT, key TEXT NOT NULL,
  body_hash TEXT NOT NULL, created_at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS refunds_by_order ON refunds (tenant, order_id);
CREATE INDEX IF NOT EXISTS refunds_by_key ON refunds (tenant, key);
CREATE TABLE IF NOT EXISTS reversals (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, refund_id INTEGER NOT NULL UNIQUE, order_id TEXT NOT NULL,
  amount INTEGER NOT NULL, currency TEXT NOT NULL, key TEXT NOT NULL, body_hash TEXT NOT NULL,
  created_at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS reversals_by_key ON reversals (tenant, key);
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, recipient TEXT NOT NULL, subject TEXT NOT NULL,
  text TEXT NOT NULL, key TEXT NOT NULL, body_hash TEXT NOT NULL, created_at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS messages_by_key ON messages (tenant, key);
CREATE TABLE IF NOT EXISTS journal (
  seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, path TEXT NOT NULL, key TEXT NOT NULL,
  body_hash TEXT NOT NULL, first_byte_at REAL NOT NULL, effect INTEGER NOT NULL,
  effect_at REAL, status INTEGER, fault TEXT, ref TEXT);
CREATE INDEX IF NOT EXISTS journal_by_key ON journal (key);
"""
REVERSIBLE_SECONDS = 24 * 3600.0
"""For so long a refund lies with the provider and can be called back; then it is paid out."""


class Store:
    """One connection behind one lock: SQLite has one writer anyway, and a read here takes microseconds."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = threading.Lock()
        self.db = sqlite3.connect(folder / "provider.sqlite3", isolation_level=None, check_same_thread=False)
        self.db.row_factory = sqlite3.Row
        self.db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=5000;")
        self.db.executescript(SCHEMA)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self.lock:
            yield self.db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on file when the block ends, or nothing."""
        with self.lock:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
            except BaseException:
                self.db.execute("ROLLBACK")
                raise
            self.db.execute("COMMIT")

    def close(self) -> None:
        with self.lock:
            self.db.close()


def body_hash(body: bytes) -> str:
    return "sha256:" + hashlib.sha256(body).hexdigest()


def note_arrival(
    db: sqlite3.Connection, request: Request, *, status: int | None = None, effect_ref: str | None = None
) -> int:
    """Write or complete the journal's row of ``request``, with its effect where there was one."""
    effect_at = time.time() if effect_ref else None
    outcome = (int(effect_ref is not None), effect_at, status, effect_ref)
    if request.arrival is not None:
        sql = "UPDATE journal SET effect = ?, effect_at = ?, status = ?, ref = ? WHERE seq = ?"
        db.execute(sql, (*outcome, request.arrival))
        return request.arrival
    cursor = db.execute(
        "INSERT INTO journal"
        " (tenant, path, key, body_hash, first_byte_at, fault, effect, effect_at, status, ref)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            request.tenant,
            request.path,
            request.key,
            body_hash(request.body),
            request.first_byte_at,
            request.fault,
            *outcome,
        ),
    )
    return cursor.lastrowid or 0


def moment(seconds: float | None) -> str | None:
    """ISO 8601 in UTC with microseconds."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def refund_document(row: sqlite3.Row, *, with_key: bool = True) -> dict[str, Any]:
    """A refund as every answer shows it; computed from the row, so a repetition gets the same. Of a refund that is read
    with its reversal, that too.
    """
    reversal = row["reversal"] if "reversal" in row.keys() else None  # noqa: SIM118 - a row is no mapping
    document = {
        "id": f"re_{row['id']:06d}",
        "order": row["order_id"],
        "amount": to_text(row["amount"], row["currency"]),
        "currency": row["currency"],
        "reason": row["reason"],
        "receipt_to": row["receipt_to"],
        "status": "completed" if reversal is None else "reversed",
        "created_at": moment(row["created_at"]),
        "reversible_until": moment(row["created_at"] + REVERSIBLE_SECONDS),
    }
    document |= {} if reversal is None else {"reversal": f"rv_{reversal:06d}"}
    return document | {"key": row["key"]} if with_key else document


def reversal_document(row: sqlite3.Row) -> dict[str, Any]:
    return {
        "id": f"rv_{row['id']:06d}",
        "refund": f"re_{row['refund_id']:06d}",
        "order": row["order_id"],
        "amount": to_text(row["amount"], row["currency"]),
        "currency": row["currency"],
        "status": "completed",
        "key": row["key"],
        "created_at": moment(row["created_at"]),
    }


def message_document(row: sqlite3.Row) -> dict[str, Any]:
    return {
        "id": f"msg_{row['id']:06d}",
        "to": row["recipient"],
        "subject": row["subject"],
        "status": "accepted",
        "key": row["key"],
        "created_at": moment(row["created_at"]),
    }


def order_row(db: sqlite3.Connection, tenant: str, order: str) -> sqlite3.Row | None:
    found = db.execute("SELECT * FROM orders WHERE tenant = ? AND id = ?", (tenant, order)).fetchone()
    return found if isinstance(found, sqlite3.Row) else None


def refund_rows(db: sqlite3.Connection, tenant: str, order: str) -> list[sqlite3.Row]:
    """Each with the number of its reversal, where it was called back."""
    sql = (
        "SELECT refunds.*, reversals.id AS reversal FROM refunds"
        " LEFT JOIN reversals ON reversals.refund_id = refunds.id"
        " WHERE refunds.tenant = ? AND refunds.order_id = ? ORDER BY refunds.id"
    )
    return db.execute(sql, (tenant, order)).fetchall()


def refunded(rows: list[sqlite3.Row]) -> int:
    """What stands of these refunds, in the smallest unit."""
    return sum(row["amount"] for row in rows if row["reversal"] is None)


def etag(order: sqlite3.Row) -> str:
    """Changes with every change of the order, a refund included."""
    return f'"{order["id"]}-v{order["version"]}"'


def order_document(db: sqlite3.Connection, order: sqlite3.Row, *, with_keys: bool = True) -> dict[str, Any]:
    refunds = refund_rows(db, order["tenant"], order["id"])
    returned = refunded(refunds)
    currency = order["currency"]
    return {
        "id": order["id"],
        "customer": order["customer"],
        "currency": currency,
        "paid": to_text(order["paid"], currency),
        "refunded": to_text(returned, currency),
        "remaining": to_text(order["paid"] - returned, currency),
        "status": "refunded" if refunds and returned >= order["paid"] else order["status"],
        "placed_at": order["placed_at"],
        "items": json.loads(order["items"]),
        "refunds": [refund_document(row, with_key=with_keys) for row in refunds],
    }
