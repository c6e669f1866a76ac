"""Writing orders and customers: used by the seed and by the operator."""

import json
import sqlite3
from typing import Any

from examples.refunds.provider.exchange import Refusal
from examples.refunds.provider.money import SCALES, InvalidAmount, to_minor


def save_order(db: sqlite3.Connection, order: dict[str, Any]) -> None:
    """Insert, or change and count the version up. Raises :class:`Refusal` 422."""
    texts = ("tenant", "id", "customer", "currency", "status", "placed_at")
    if not all(isinstance(order.get(name), str) for name in texts) or order["currency"] not in SCALES:
        raise Refusal(
            422, "invalid_order", "An order needs an id, a customer, a known currency and an amount."
        )
    try:
        paid = to_minor(order.get("paid"), order["currency"])
    except InvalidAmount as error:
        raise Refusal(422, "invalid_amount", str(error)) from None
    db.execute(
        "INSERT INTO orders (tenant, id, customer, currency, paid, status, placed_at, items, version)"
        " VALUES (:tenant, :id, :customer, :currency, :paid, :status, :placed_at, :items, 1)"
        " ON CONFLICT (tenant, id) DO UPDATE SET customer = excluded.customer, currency = excluded.currency,"
        " paid = excluded.paid, status = excluded.status, placed_at = excluded.placed_at,"
        " items = excluded.items, version = version + 1",
        order | {"paid": paid, "items": json.dumps(order["items"], ensure_ascii=False)},
    )


def save_customer(db: sqlite3.Connection, customer: dict[str, Any]) -> None:
    db.execute(
        "INSERT INTO customers (tenant, id, name, email, status)"
        " VALUES (:tenant, :id, :name, :email, :status)"
        " ON CONFLICT (tenant, id) DO UPDATE SET name = excluded.name, email = excluded.email,"
        " status = excluded.status",
        customer,
    )
