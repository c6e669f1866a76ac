"""What the provider starts with: a few hundred orders by rule, and the named demo orders of ``orders.json``.

Everything but the dates is the same on every machine; dates are so many days before the first start. An
order that exists is left alone, so a restart keeps what happened.
"""

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from examples.refunds.provider.money import to_minor, to_text
from examples.refunds.provider.records import save_customer, save_order
from examples.refunds.provider.store import Store, order_row

NAMED = Path(__file__).with_name("orders.json")
FIRST_NUMBER = 1001
LAST_NUMBER = 8999
CUSTOMERS = 60
CURRENCIES = ("EUR", "EUR", "USD", "EUR", "JPY", "EUR", "USD", "KWD")
GIVEN = ("Ada", "Bruno", "Chloé", "Dmitri", "Elif", "Femi", "Grażyna", "Hiro", "Ines", "João")
FAMILY = ("Almeida", "Brandt", "Çelik", "Dubois", "Eriksen", "Fontaine")
GOODS = ("Desk lamp", "Kettle", "Rain jacket", "Headphones", "Notebook set", "Bicycle light", "Teapot")


def seed(store: Store, generated: int) -> None:
    """Add what is missing, in one transaction."""
    named = json.loads(NAMED.read_text(encoding="utf-8"))
    noon = last_noon(datetime.now(UTC))
    with store.writing() as db:
        for customer in [*_customers(), *named["customers"]]:
            _add_customer(db, customer)
        for index in range(min(generated, LAST_NUMBER - FIRST_NUMBER + 1)):
            _add_order(db, generated_order(index), noon)
        for order in named["orders"]:
            _add_order(db, order, noon)


def customer_of(index: int) -> str:
    """The customer of the generated order ``FIRST_NUMBER + index``."""
    return f"c-{101 + index % CUSTOMERS}"


def generated_order(index: int) -> dict[str, Any]:
    """Order ``1001 + index``: 5 to 204 units of its currency, in two items where the number is even."""
    currency = CURRENCIES[index % len(CURRENCIES)]
    factor = 100 if currency == "JPY" else 1
    minor = (5 + index * 37 % 200) * _unit(currency) * factor + index * 7 % _unit(currency)
    first = minor if index % 2 else minor * 2 // 5
    prices = [first] if first == minor else [first, minor - first]
    return {
        "id": str(FIRST_NUMBER + index),
        "customer": customer_of(index),
        "currency": currency,
        "paid": to_text(minor, currency),
        "placed_days_ago": 1 + index % 25,
        "items": [
            {"name": GOODS[(index + place) % len(GOODS)], "quantity": 1, "price": to_text(price, currency)}
            for place, price in enumerate(prices)
        ],
    }


def _unit(currency: str) -> int:
    return to_minor({"JPY": "1", "KWD": "1.000"}.get(currency, "1.00"), currency)


def _customers() -> list[dict[str, Any]]:
    people = [(given, family) for family in FAMILY for given in GIVEN]
    return [
        {"id": f"c-{101 + index}", "name": f"{given} {family}", "email": f"customer{101 + index}@example.com"}
        for index, (given, family) in enumerate(people)
    ]


def last_noon(now: datetime) -> datetime:
    """Days are counted back from the last noon: what is a day ago is so at every hour."""
    noon = now.replace(hour=12, minute=0, second=0, microsecond=0)
    return noon if noon <= now else noon - timedelta(days=1)


def _add_customer(db: sqlite3.Connection, customer: dict[str, Any]) -> None:
    whole = {"tenant": "demo", "status": "active"} | customer
    sql = "SELECT 1 FROM customers WHERE tenant = ? AND id = ?"
    if db.execute(sql, (whole["tenant"], whole["id"])).fetchone() is None:
        save_customer(db, whole)


def _add_order(db: sqlite3.Connection, order: dict[str, Any], noon: datetime) -> None:
    whole = {"tenant": "demo", "status": "delivered", "items": []} | order
    if order_row(db, whole["tenant"], whole["id"]) is not None:
        return
    placed_at = noon - timedelta(days=whole.get("placed_days_ago", 3))
    save_order(db, whole | {"placed_at": placed_at.isoformat()})
    for number, refund in enumerate(whole.get("refunds", [])):
        _add_refund(db, whole, refund, number, noon)


def _add_refund(
    db: sqlite3.Connection, order: dict[str, Any], refund: dict[str, Any], number: int, noon: datetime
) -> None:
    made_at = noon - timedelta(days=refund.get("days_ago", 1))
    db.execute(
        "INSERT INTO refunds (tenant, order_id, amount, currency, reason, key, body_hash, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, '', ?)",
        (
            order["tenant"],
            order["id"],
            to_minor(refund["amount"], order["currency"]),
            order["currency"],
            refund["reason"],
            f"seed-{order['id']}-{number}",
            made_at.timestamp(),
        ),
    )
