"""How much is due: computed from the payment, never taken from a message or a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from examples.refunds.normalizing import Money

WINDOW = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Eligible:
    """The amount that may be proposed."""

    money: Money


@dataclass(frozen=True, slots=True)
class Not:
    """Nothing is proposed; ``case`` names the row of the exception table, ``ends`` whether no person is needed."""

    case: str
    ends: bool = False


@dataclass(frozen=True, slots=True)
class AmountNeeded:
    """Only the requester knows how much too much it was."""

    currency: str


def eligible(
    order: Mapping[str, Any], reason: str, claims: Sequence[Money], now: datetime
) -> Eligible | Not | AmountNeeded:
    """What may be proposed for the order of these figures.

    Never more than what was paid and not yet refunded. A claim can only lower the amount; one that does not fit
    goes to a specialist, who sees all of it.
    """
    if (ended := _nothing_due(order, reason)) is not None:
        return ended
    if now - datetime.fromisoformat(order["placed_at"]) > WINDOW:
        return Not("outside_window")
    remaining = Money(Decimal(order["remaining"]), order["currency"])
    if not claims:
        return AmountNeeded(remaining.currency) if reason == "overcharged" else Eligible(remaining)
    return _claimed(claims, remaining)


def _nothing_due(order: Mapping[str, Any], reason: str) -> Not | None:
    if Decimal(order["remaining"]) <= 0 < Decimal(order["refunded"]):
        return Not("already_refunded", ends=True)
    if not order["is_paid"]:
        return Not("not_paid", ends=True)
    if reason == "refund_missing" and order["refunds"]:
        return Not("refund_on_its_way", ends=True)
    return None


def _claimed(claims: Sequence[Money], remaining: Money) -> Eligible | Not:
    if any(claim.currency != remaining.currency for claim in claims):
        return Not("other_currency")
    if len(set(claims)) > 1:
        return Not("contradictory_amounts")
    return Eligible(claims[0]) if claims[0].amount <= remaining.amount else Not("claims_too_much")
