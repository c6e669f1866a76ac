"""A queue in which every order is another, and whoever looks at it."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from approvals.models import Proposal
from common.models import Tenant
from tests import factories, rows

ODD: list[dict[str, Any]] = [
    # summary, minutes left, risk, amount, age in minutes
    {"summary": "Row A", "left": 30, "risk": 1, "amount": "5.00", "age": 10},
    {"summary": "Row B", "left": 31, "risk": 3, "amount": None, "age": 20},
    {"summary": "Row C", "left": 32, "risk": 3, "amount": "900.00", "age": 5},
    {"summary": "Row D", "left": 3000, "risk": 2, "amount": "5.00", "age": 60},
    {"summary": "Row E", "left": 400, "risk": 1, "amount": "12.50", "age": 40},
    {"summary": "Row F", "left": 401, "risk": 2, "amount": "0.00", "age": 1},
]


def make_queue(tenant: Tenant, now: datetime | None = None, **fields: Any) -> list[Proposal]:
    """The first three run out within one hour of the clock, whenever the test runs."""
    now = (now or rows.now()).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    return [
        factories.make_proposal(
            tenant=tenant, summary=row["summary"], risk=row["risk"], decide_by=now + timedelta(minutes=row["left"]),
            amount=None if row["amount"] is None else Decimal(row["amount"]),
            amount_currency="" if row["amount"] is None else "EUR", at=now - timedelta(minutes=120 + row["age"]),
            **fields,
        )
        for row in ODD
    ]  # fmt: skip
