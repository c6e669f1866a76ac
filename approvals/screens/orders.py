"""The orders of the queue. Each ends in the proposal's id and has an index of its own over what waits."""

from typing import Final

from approvals.models import AMOUNT, URGENT_HOUR
from common.keyset import Key, Order

_TIME: Final = Key("decide_by", "instant")
_ID: Final = Key("id", "id")
_RISK: Final = Key("risk", "integer", descending=True)
_AMOUNT: Final = Key("by_amount", "decimal", descending=True, expression=AMOUNT)

URGENCY: Final = Order(
    "urgency", "Urgency", (Key("by_hour", "integer", expression=URGENT_HOUR), _RISK, _AMOUNT, _TIME, _ID)
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
