"""The orders of the queue. Each ends in the proposal's id and has an index of its own over what waits."""

from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import Q

from approvals.models import AMOUNT, URGENT_HOUR
from common.keyset import Key, Order

_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _from_hour(hour: int) -> Q:
    """Time runs out in this hour or later. Nothing is said of an hour that no clock reaches."""
    try:
        return Q(decide_by__gte=_BEGINNING + timedelta(hours=hour))
    except OverflowError:
        return Q()


_TIME: Final = Key("decide_by", "instant")
_ID: Final = Key("id", "id")
_RISK: Final = Key("risk", "integer", descending=True)
_AMOUNT: Final = Key("by_amount", "decimal", descending=True, expression=AMOUNT)

URGENCY: Final = Order(
    "urgency",
    "Urgency",
    (Key("by_hour", "integer", expression=URGENT_HOUR, implies=_from_hour), _RISK, _AMOUNT, _TIME, _ID),
)
"""By the hour in which time runs out; within it the higher risk first, then the larger amount."""
ORDERS: Final = {
    order.name: order
    for order in (
        URGENCY,
        Order("time", "Time left", (_TIME, _ID)),
        Order("risk", "Risk", (_RISK, _TIME, _ID)),
        Order("amount", "Amount", (_AMOUNT, _TIME, _ID)),
        Order("age", "Age", (Key("created_at", "instant"), _ID)),
    )
}
ALIKE: Final = Order("alike", "Alike", (Key("first_by", "instant"), Key("kind", "text")))
"""Of groups of what is alike: the one first whose first proposal has the least time."""
