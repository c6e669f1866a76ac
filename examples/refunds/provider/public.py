"""The public API: orders, customers, refunds, their reversals and messages of the caller's tenant."""

import sqlite3
import time
from collections.abc import Callable

from examples.refunds.provider.effects import execute
from examples.refunds.provider.exchange import Refusal, Reply, Request
from examples.refunds.provider.store import (
    Store,
    etag,
    message_document,
    order_document,
    order_row,
    refund_document,
    refund_rows,
    reversal_document,
)
from examples.refunds.provider.switches import Switches

LIST_LIMIT = 100


class PublicApi:
    """Answers requests whose tenant is known. Another tenant's ids look like missing ones."""

    def __init__(self, store: Store, switches: Switches) -> None:
        self.store = store
        self.switches = switches
        self.routes: dict[tuple[str, int, str], Callable[[Request], Reply]] = {
            ("GET", 2, "orders"): self.get_order,
            ("GET", 3, "orders"): self.get_order_refunds,
            ("GET", 2, "customers"): self.get_customer,
            ("GET", 1, "refunds"): self.find_refunds,
            ("GET", 1, "messages"): self.find_messages,
            ("GET", 1, "reversals"): self.find_reversals,
            ("POST", 1, "refunds"): self.post,
            ("POST", 1, "reversals"): self.post,
            ("POST", 1, "messages"): self.post,
        }

    def answer(self, request: Request) -> Reply:
        """The reply; raises :class:`Refusal`."""
        parts = request.parts
        handler = self.routes.get((request.method, len(parts), parts[0]))
        if handler is None or (len(parts) == 3 and parts[2] != "refunds"):
            raise Refusal(404, "not_found", "There is no such resource.")
        return handler(request)

    def post(self, request: Request) -> Reply:
        return execute(self.store, request, dedup=self.switches.mode == "dedup")

    def get_order(self, request: Request) -> Reply:
        with self.store.reading() as db:
            order = order_row(db, request.tenant, request.parts[1])
            if order is None:
                raise Refusal(404, "unknown_order", "There is no such order.")
            tag = etag(order)
            if request.headers.get("if-none-match") == tag:
                return Reply(304, headers={"ETag": tag})
            return Reply(200, order_document(db, order, with_keys=self._shows_keys()), {"ETag": tag})

    def get_order_refunds(self, request: Request) -> Reply:
        number = request.parts[1]
        with self.store.reading() as db:
            if order_row(db, request.tenant, number) is None:
                raise Refusal(404, "unknown_order", "There is no such order.")
            rows = refund_rows(db, request.tenant, number)
        return Reply(200, {"refunds": [refund_document(row, with_key=self._shows_keys()) for row in rows]})

    def get_customer(self, request: Request) -> Reply:
        sql = "SELECT id, name, email, status FROM customers WHERE tenant = ? AND id = ?"
        with self.store.reading() as db:
            row = db.execute(sql, (request.tenant, request.parts[1])).fetchone()
        if row is None:
            raise Refusal(404, "unknown_customer", "There is no such customer.")
        return Reply(200, dict(row))

    def find_refunds(self, request: Request) -> Reply:
        """By ``key`` or by ``order``; a blind provider has no look-up by key."""
        if "order" in request.query and "key" not in request.query:
            with self.store.reading() as db:
                rows = refund_rows(db, request.tenant, request.query["order"])
            return Reply(
                200, {"refunds": [refund_document(row, with_key=self._shows_keys()) for row in rows]}
            )
        rows = self._by_key("refunds", request)
        return Reply(200, {"refunds": [refund_document(row) for row in rows]})

    def find_messages(self, request: Request) -> Reply:
        return Reply(200, {"messages": [message_document(row) for row in self._by_key("messages", request)]})

    def find_reversals(self, request: Request) -> Reply:
        rows = self._by_key("reversals", request)
        return Reply(200, {"reversals": [reversal_document(row) for row in rows]})

    def _by_key(self, table: str, request: Request) -> list[sqlite3.Row]:
        if not self._shows_keys():
            raise Refusal(501, "lookup_not_supported", "This provider has no look-up by key.")
        if not request.query.get("key"):
            raise Refusal(422, "invalid_request", "The look-up needs a key.", field="key")
        seen_until = time.time() - self.switches.lookup_lag_seconds
        found = f"SELECT * FROM {table} WHERE tenant = ? AND key = ? AND created_at <= ?"  # noqa: S608
        values = (request.tenant, request.query["key"], seen_until, LIST_LIMIT)
        with self.store.reading() as db:
            return db.execute(f"{found} ORDER BY id LIMIT ?", values).fetchall()

    def _shows_keys(self) -> bool:
        return self.switches.mode != "blind"
