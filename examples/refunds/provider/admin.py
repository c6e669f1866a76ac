"""The operator's side: switches, keys, orders, and the journal that says what really arrived.

Without authentication, and for that reason on the loopback only.
"""

import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from examples.refunds.provider.exchange import Refusal, Reply, Request
from examples.refunds.provider.keys import Keys
from examples.refunds.provider.money import to_text
from examples.refunds.provider.records import save_customer, save_order
from examples.refunds.provider.store import Store, etag, moment, order_document, order_row
from examples.refunds.provider.switches import Switches, make_rule

ORDER_FIELDS = frozenset({"tenant", "id", "customer", "currency", "paid", "status", "placed_at", "items"})
CUSTOMER_FIELDS = ("tenant", "id", "name", "email", "status")
PAGE = 1000


class AdminApi:
    def __init__(self, store: Store, switches: Switches, keys: Keys) -> None:
        self.store = store
        self.switches = switches
        self.keys = keys
        self.routes: dict[tuple[str, str], Callable[[Request], Reply]] = {
            ("GET", "/_admin/switches"): self.show_switches,
            ("PUT", "/_admin/switches"): self.replace_switches,
            ("POST", "/_admin/switches"): self.add_rule,
            ("DELETE", "/_admin/switches"): self.reset_switches,
            ("PUT", "/_admin/keys"): self.change_keys,
            ("POST", "/_admin/orders"): self.change_order,
            ("POST", "/_admin/customers"): self.change_customer,
            ("GET", "/_admin/deliveries"): self.deliveries,
            ("GET", "/_admin/journal"): self.journal,
        }

    def answer(self, request: Request) -> Reply:
        handler = self.routes.get((request.method, request.path))
        if handler is None:
            raise Refusal(404, "not_found", "There is no such resource.")
        return handler(request)

    def show_switches(self, request: Request) -> Reply:
        return Reply(200, self.switches.document())

    def replace_switches(self, request: Request) -> Reply:
        self.switches.replace(request.json())
        return self.show_switches(request)

    def add_rule(self, request: Request) -> Reply:
        self.switches.add(make_rule(request.json()))
        return self.show_switches(request)

    def reset_switches(self, request: Request) -> Reply:
        self.switches.reset()
        return self.show_switches(request)

    def change_keys(self, request: Request) -> Reply:
        self.keys.change(request.json())
        return Reply(204)

    def change_order(self, request: Request) -> Reply:
        """Add an order, or change the fields that are named; the ETag changes with it."""
        wanted = _object(request, ORDER_FIELDS)
        tenant = wanted.get("tenant", "demo")
        with self.store.writing() as db:
            current = order_row(db, tenant, wanted["id"])
            save_order(db, _merged(current, wanted, tenant))
            saved = order_row(db, tenant, wanted["id"])
            if saved is None:
                raise Refusal(422, "invalid_order", "The order could not be saved.")
            return Reply(200 if current else 201, order_document(db, saved), {"ETag": etag(saved)})

    def change_customer(self, request: Request) -> Reply:
        wanted = {"tenant": "demo", "status": "active"} | _object(request, frozenset(CUSTOMER_FIELDS))
        with self.store.writing() as db:
            sql = "SELECT * FROM customers WHERE tenant = ? AND id = ?"
            current = db.execute(sql, (wanted["tenant"], wanted["id"])).fetchone()
            merged = (dict(current) if current else {}) | wanted
            if not all(isinstance(merged.get(name), str) for name in CUSTOMER_FIELDS):
                raise Refusal(
                    422, "invalid_customer", "A customer needs an id, a name and an e-mail address."
                )
            save_customer(db, merged)
        return Reply(200 if current else 201, merged)

    def deliveries(self, request: Request) -> Reply:
        """Arrivals and effects of one ``key``, or of all keys."""
        key = request.query.get("key")
        sql = "SELECT key, count(*) AS arrivals, sum(effect) AS effects FROM journal"
        with self.store.reading() as db:
            if key is not None:
                row = db.execute(f"{sql} WHERE key = ? GROUP BY key", (key,)).fetchone()
                return Reply(200, dict(row) if row else {"key": key, "arrivals": 0, "effects": 0})
            rows = db.execute(f"{sql} GROUP BY key ORDER BY min(seq)").fetchall()
        return Reply(200, {"deliveries": [dict(row) for row in rows]})

    def journal(self, request: Request) -> Reply:
        """Every arrival in order, after ``after``, of one ``key`` where given, a page at a time."""
        after = request.query.get("after", "0")
        if not after.isdecimal():
            raise Refusal(422, "invalid_request", "The position must be a number.", field="after")
        sql = "SELECT * FROM journal WHERE seq > ? AND (? IS NULL OR key = ?) ORDER BY seq LIMIT ?"
        key = request.query.get("key")
        with self.store.reading() as db:
            rows = db.execute(sql, (int(after), key, key, PAGE)).fetchall()
        following = rows[-1]["seq"] if len(rows) == PAGE else None
        return Reply(200, {"arrivals": [_arrival(row) for row in rows], "next_after": following})


def _arrival(row: sqlite3.Row) -> dict[str, Any]:
    times = {"first_byte_at": moment(row["first_byte_at"]), "effect_at": moment(row["effect_at"])}
    return dict(row) | times | {"effect": bool(row["effect"])}


def _object(request: Request, known: frozenset[str]) -> dict[str, Any]:
    wanted = request.json()
    if not isinstance(wanted, dict) or not set(wanted) <= known or not isinstance(wanted.get("id"), str):
        raise Refusal(422, "invalid_request", f"Expected an object with an id; fields: {sorted(known)}.")
    return wanted


def _merged(current: sqlite3.Row | None, wanted: dict[str, Any], tenant: str) -> dict[str, Any]:
    """The whole order: what is named, then what was stored, then defaults."""
    known = {"status": "delivered", "placed_at": datetime.now(UTC).isoformat(timespec="seconds"), "items": []}
    if current is not None:
        stored = {name: current[name] for name in ("customer", "currency", "status", "placed_at")}
        paid = to_text(current["paid"], current["currency"])
        known = stored | {"paid": paid, "items": json.loads(current["items"])}
    return known | wanted | {"tenant": tenant}
