"""What changes something: refunds, their reversals and messages, each with its journal row in the same transaction."""

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from examples.refunds.provider.exchange import Refusal, Reply, Request
from examples.refunds.provider.money import InvalidAmount, to_minor, to_text
from examples.refunds.provider.store import (
    REVERSIBLE_SECONDS,
    Store,
    body_hash,
    etag,
    message_document,
    note_arrival,
    order_row,
    refund_document,
    refund_rows,
    refunded,
    reversal_document,
)

REFUND_FIELDS = {
    "order": True,
    "amount": True,
    "currency": True,
    "reason": True,
    "receipt_to": False,
    "message": False,
}
REVERSAL_FIELDS = {"refund": True, "order": True, "amount": True, "currency": True}
MESSAGE_FIELDS = {"to": True, "subject": True, "text": True}
REFUNDABLE = frozenset({"paid", "shipped", "delivered"})


@dataclass(frozen=True)
class Kind:
    """A kind of effect: its table, what a body needs, how one is made and shown."""

    table: str
    fields: dict[str, bool]
    create: Callable[[sqlite3.Connection, Request, dict[str, Any]], int]
    show: Callable[[sqlite3.Row], dict[str, Any]]


def execute(store: Store, request: Request, *, dedup: bool) -> Reply:
    """Carry out a POST, once per key where ``dedup``; the answer says what happened, the journal too."""
    kind = KINDS[request.path]
    with store.writing() as db:
        try:
            body = _body(request, kind)
            earlier = _earlier(db, kind, request) if dedup else None
            if earlier is not None:
                reply = _same_answer(kind, earlier, request)
                note_arrival(db, request, status=reply.status)
                return reply
            number = kind.create(db, request, body)
        except Refusal as refusal:
            note_arrival(db, request, status=refusal.reply.status)
            return refusal.reply
        row = db.execute(f"SELECT * FROM {kind.table} WHERE id = ?", (number,)).fetchone()  # noqa: S608
        document = kind.show(row)
        note_arrival(db, request, status=201, effect_ref=document["id"])
    return Reply(201, document)


def only_note(store: Store, request: Request) -> int:
    """Journal an arrival that is not executed, or not yet."""
    with store.writing() as db:
        return note_arrival(db, request)


def _body(request: Request, kind: Kind) -> dict[str, Any]:
    if not request.key:
        raise Refusal(400, "idempotency_key_required", "The header Idempotency-Key is required.")
    body = request.json()
    if not isinstance(body, dict):
        raise Refusal(422, "invalid_request", "The body must be an object.")
    for name in body:
        if name not in kind.fields:
            raise Refusal(422, "invalid_request", "The body has a field that is not known.", field=name)
    for name, required in kind.fields.items():
        value = body.get(name)
        if not (isinstance(value, str) and value) and (required or value is not None):
            raise Refusal(422, "invalid_request", "A field is missing or not a text.", field=name)
    return body


def _earlier(db: sqlite3.Connection, kind: Kind, request: Request) -> sqlite3.Row | None:
    sql = f"SELECT * FROM {kind.table} WHERE tenant = ? AND key = ?"  # noqa: S608
    found = db.execute(sql, (request.tenant, request.key)).fetchone()
    return found if isinstance(found, sqlite3.Row) else None


def _same_answer(kind: Kind, earlier: sqlite3.Row, request: Request) -> Reply:
    if earlier["body_hash"] != body_hash(request.body):
        message = "This idempotency key was used with another body."
        raise Refusal(422, "idempotency_key_reused", message)
    return Reply(201, kind.show(earlier), {"Idempotent-Replayed": "true"})


def _create_refund(db: sqlite3.Connection, request: Request, body: dict[str, Any]) -> int:
    order = _refundable_order(db, request, body)
    amount = _amount(db, order, body)
    cursor = db.execute(
        "INSERT INTO refunds"
        " (tenant, order_id, amount, currency, reason, receipt_to, message, key, body_hash, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            request.tenant,
            body["order"],
            amount,
            body["currency"],
            body["reason"],
            body.get("receipt_to"),
            body.get("message"),
            request.key,
            body_hash(request.body),
            time.time(),
        ),
    )
    sql = "UPDATE orders SET version = version + 1 WHERE tenant = ? AND id = ?"
    db.execute(sql, (request.tenant, body["order"]))
    return cursor.lastrowid or 0


def _refundable_order(db: sqlite3.Connection, request: Request, body: dict[str, Any]) -> sqlite3.Row:
    order = order_row(db, request.tenant, body["order"])
    if order is None:
        raise Refusal(404, "unknown_order", "There is no such order.")
    wanted = request.headers.get("if-match")
    # What was accepted earlier is applied late without a second look at the version.
    if wanted not in (None, "*", etag(order)) and request.arrival is None:
        raise Refusal(412, "stale_order", "The order has changed since it was read.", etag=etag(order))
    if order["status"] not in REFUNDABLE:
        raise Refusal(422, "not_refundable", "The order was not paid or is cancelled.")
    if order["currency"] != body["currency"]:
        raise Refusal(422, "currency_mismatch", "The order was paid in another currency.")
    return order


def _amount(db: sqlite3.Connection, order: sqlite3.Row, body: dict[str, Any]) -> int:
    try:
        amount = to_minor(body["amount"], body["currency"])
    except InvalidAmount as error:
        raise Refusal(422, "invalid_amount", str(error)) from None
    remaining = order["paid"] - refunded(refund_rows(db, order["tenant"], order["id"]))
    if amount > remaining:
        left = to_text(max(remaining, 0), order["currency"])
        raise Refusal(422, "exceeds_paid", "More than what is left of the payment.", remaining=left)
    if amount == 0:
        raise Refusal(422, "invalid_amount", "The amount must be above zero.")
    return amount


def _create_reversal(db: sqlite3.Connection, request: Request, body: dict[str, Any]) -> int:
    """Call one refund back, whole, while it has not been paid out."""
    refund = _reversible(db, request, body)
    cursor = db.execute(
        "INSERT INTO reversals (tenant, refund_id, order_id, amount, currency, key, body_hash, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            request.tenant,
            refund["id"],
            refund["order_id"],
            refund["amount"],
            refund["currency"],
            request.key,
            body_hash(request.body),
            time.time(),
        ),
    )
    sql = "UPDATE orders SET version = version + 1 WHERE tenant = ? AND id = ?"
    db.execute(sql, (request.tenant, refund["order_id"]))
    return cursor.lastrowid or 0


def _reversible(db: sqlite3.Connection, request: Request, body: dict[str, Any]) -> sqlite3.Row:
    order = order_row(db, request.tenant, body["order"])
    found = [] if order is None else refund_rows(db, request.tenant, body["order"])
    refund = next((row for row in found if refund_document(row)["id"] == body["refund"]), None)
    if order is None or refund is None:
        raise Refusal(404, "unknown_refund", "There is no such refund of this order.")
    if refund["reversal"] is not None:
        raise Refusal(409, "already_reversed", "This refund was called back before.")
    wanted = request.headers.get("if-match")
    if wanted not in (None, "*", etag(order)) and request.arrival is None:
        raise Refusal(412, "stale_order", "The order has changed since it was read.", etag=etag(order))
    if time.time() >= refund["created_at"] + REVERSIBLE_SECONDS:
        raise Refusal(422, "paid_out", "This refund was paid out, and cannot be called back any more.")
    if (to_text(refund["amount"], refund["currency"]), refund["currency"]) != (
        body["amount"],
        body["currency"],
    ):
        raise Refusal(422, "amount_mismatch", "A refund is called back as a whole: the amount is another.")
    return refund


def _create_message(db: sqlite3.Connection, request: Request, body: dict[str, Any]) -> int:
    cursor = db.execute(
        "INSERT INTO messages (tenant, recipient, subject, text, key, body_hash, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            request.tenant,
            body["to"],
            body["subject"],
            body["text"],
            request.key,
            body_hash(request.body),
            time.time(),
        ),
    )
    return cursor.lastrowid or 0


KINDS = {
    "/refunds": Kind("refunds", REFUND_FIELDS, _create_refund, refund_document),
    "/reversals": Kind("reversals", REVERSAL_FIELDS, _create_reversal, reversal_document),
    "/messages": Kind("messages", MESSAGE_FIELDS, _create_message, message_document),
}
