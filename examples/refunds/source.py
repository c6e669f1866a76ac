"""Reading the provider: orders, customers and refunds as typed records, and its failures as the engine knows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from common.deadline import Deadline
from common.outgoing import Answer, Outcome
from common.strictjson import JsonRefused, parse
from examples.refunds import client
from examples.refunds.site import provider_for
from workflows.authoring import CredentialRefused, RateLimited, Site, SourceDown

READ_WITHIN = 5.0
"""Seconds for one read, all together."""
LONGEST_WAIT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Order:
    """An order as the provider has it, with the tag of this very version."""

    id: str
    customer: str
    currency: str
    paid: Decimal
    refunded: Decimal
    remaining: Decimal
    status: str
    placed_at: datetime
    refunds: tuple[Mapping[str, Any], ...]
    """Those that stand."""
    items: tuple[Mapping[str, Any], ...]
    etag: str

    @property
    def is_paid(self) -> bool:
        return self.paid > 0 and self.status not in ("cancelled", "pending")

    def figures(self) -> dict[str, Any]:
        """What later stages need, without the items and without anything personal."""
        return {
            "id": self.id, "customer": self.customer, "currency": self.currency, "paid": str(self.paid),
            "refunded": str(self.refunded), "remaining": str(self.remaining), "status": self.status,
            "placed_at": self.placed_at.isoformat(), "etag": self.etag, "is_paid": self.is_paid,
            "refunds": [{key: refund[key] for key in ("id", "amount", "created_at") if key in refund}
                        for refund in self.refunds],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Customer:
    id: str
    email: str
    status: str

    @property
    def is_active(self) -> bool:
        return self.status == "active"


def read_order(site: Site, order: str) -> Order | None:
    """The order, or None when this tenant has none of that number. Raises what a source may raise."""
    answer = _answer(client.get_order(provider_for(site), order, deadline=Deadline.after(READ_WITHIN)))
    if answer is None:
        return None
    body = _body(answer)
    try:
        return Order(
            id=body["id"], customer=body["customer"], currency=body["currency"], paid=Decimal(body["paid"]),
            refunded=Decimal(body["refunded"]), remaining=Decimal(body["remaining"]), status=body["status"],
            placed_at=datetime.fromisoformat(body["placed_at"]),
            refunds=tuple(refund for refund in body["refunds"] if not is_reversed(refund)),
            items=tuple(body["items"]), etag=answer.headers["etag"],
        )  # fmt: skip
    except (KeyError, ArithmeticError, TypeError, ValueError) as error:
        raise SourceDown("the provider's order has another form than agreed") from error


def read_customer(site: Site, customer: str) -> Customer | None:
    answer = _answer(client.get_customer(provider_for(site), customer, deadline=Deadline.after(READ_WITHIN)))
    if answer is None:
        return None
    body = _body(answer)
    try:
        return Customer(body["id"], body["email"], body["status"])
    except (KeyError, TypeError) as error:
        raise SourceDown("the provider's customer has another form than agreed") from error


def is_reversed(refund: Mapping[str, Any]) -> bool:
    """Whether it was called back."""
    return refund.get("status") == "reversed"


def read_refunds(site: Site, order: str) -> tuple[Mapping[str, Any], ...]:
    """All refunds of an order, oldest first, those called back too; none for an order that is not there."""
    answer = _answer(client.get_refunds(provider_for(site), order, deadline=Deadline.after(READ_WITHIN)))
    return () if answer is None else tuple(_body(answer).get("refunds", ()))


def _answer(outcome: Outcome) -> Answer | None:
    """A good answer; None for 404; everything else is one of the failures that a stage may raise."""
    if not isinstance(outcome, Answer):
        raise SourceDown(f"the provider gave no answer: {outcome.kind}")
    if outcome.status == 200:
        return outcome
    if outcome.status == 404:
        return None
    if outcome.status in (401, 403):
        raise CredentialRefused(f"the provider refused the key with {outcome.status}")
    if outcome.status == 429:
        raise RateLimited(retry_after(outcome) or timedelta(seconds=5))
    raise SourceDown(f"the provider answered {outcome.status}")


def retry_after(answer: Answer) -> timedelta | None:
    """The header in seconds, within reason; None where there is none."""
    text = answer.headers.get("retry-after", "")
    return min(timedelta(seconds=int(text)), LONGEST_WAIT) if text.isascii() and text.isdigit() else None


def _body(answer: Answer) -> Mapping[str, Any]:
    found = parsed(answer)
    if not found:
        raise SourceDown("the provider's answer is not the JSON that was agreed")
    return found


def parsed(answer: Answer) -> Mapping[str, Any]:
    """The body as an object; an empty one where it is none."""
    try:
        found = parse(answer.body)
    except JsonRefused:
        return {}
    return found if isinstance(found, dict) else {}
