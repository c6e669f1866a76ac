"""The side effect of the example: a refund through the provider. `reversal` takes it back."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from common.deadline import Deadline
from common.outgoing import Answer, Outcome
from examples.refunds import client
from examples.refunds.answers import found, observed
from examples.refunds.arguments import RefundArguments
from examples.refunds.policy import RefundPolicy
from examples.refunds.reversal import ReverseRefund
from examples.refunds.site import account_of, provider_for
from examples.refunds.source import (
    READ_WITHIN,
    Customer,
    Order,
    is_reversed,
    parsed,
    read_customer,
    read_order,
    read_refunds,
)
from workflows.authoring import (
    REFERENCE,
    Affected,
    Call,
    Facts,
    Finding,
    Observation,
    Operation,
    OperationRefused,
    OutcomeTable,
    Site,
    money_text,
)


class IssueRefund(Operation[RefundArguments]):
    """Pay back a part of a payment, or all of it, to the card it was paid with.

    The business key is the order with the amount: the same refund asked for twice is one thing. Another amount is
    another refund, which waits while the first is under way (they share the target) and is asked again afterwards,
    because the pins no longer hold. They are the order's version and the customer's standing, so neither a refund made
    elsewhere nor a customer who was blocked in the meantime slips through between approval and sending.
    """

    name = "refunds.issue"
    version = 2
    title = "Refund a payment"
    provider = "refund-provider"
    arguments = RefundArguments
    policy = RefundPolicy()
    outcomes = OutcomeTable(
        # The provider checks all of these before it books anything.
        refused=frozenset({400, 404, 409, 412, 422}),
        rejects_unauthorized=True,
        throttles_before_executing=True,
        key_reused="idempotency_key_reused",
    )
    decide_within = timedelta(hours=4)
    execute_within = timedelta(minutes=10)
    editable = ("amount", "message")
    call_deadline = timedelta(seconds=8)
    settle_time = timedelta(seconds=30)
    undo = (
        "It can be called back for a day, as an action of its own; then the customer would have to pay again."
    )
    counter = ReverseRefund
    counter_from = {"order": "order", "refund": REFERENCE, "amount": "amount", "currency": "currency"}
    second_person_from = Decimal(500)

    def look(self, site: Site, arguments: RefundArguments) -> Facts:
        order = read_order(site, arguments.order)
        customer = read_customer(site, order.customer) if order else None
        return {"order": order, "customer": customer}

    def check(self, arguments: RefundArguments, facts: Facts) -> None:
        if facts["order"] is None:
            raise OperationRefused("unknown_order", "The provider has no such order for this tenant.")
        customer: Customer | None = facts["customer"]
        if customer is None or not customer.is_active:
            raise OperationRefused("customer_blocked", "The customer's account is blocked or gone.")

    def target(self, arguments: RefundArguments) -> str:
        return f"order:{arguments.order}"

    def business_key(self, arguments: RefundArguments) -> str:
        return f"refund of {arguments.currency} {arguments.amount} for order:{arguments.order}"

    def consequence(self, arguments: RefundArguments, facts: Facts) -> str:
        return (
            f"Refund {_shown(arguments)} for order {arguments.order} to the card it was paid with,"
            " and mail the receipt."
        )

    def summary(self, arguments: RefundArguments, facts: Facts) -> str:
        return f"Refund {_shown(arguments)} for order {arguments.order}"

    def affected(self, arguments: RefundArguments, facts: Facts) -> tuple[Affected, ...]:
        order: Order = facts["order"]
        amount, record = Decimal(arguments.amount), f"order:{order.id}"
        return tuple(
            Affected(record, field, money_text(before, order.currency), money_text(after, order.currency))
            for field, before, after in (
                ("Refunded", order.refunded, order.refunded + amount),
                ("Left of the payment", order.remaining, order.remaining - amount),
            )
        )

    def pins(self, arguments: RefundArguments, facts: Facts) -> Mapping[str, str]:
        """What was true when the person looked. Something that is gone pins as *gone*, and so differs."""
        order: Order | None = facts["order"]
        customer: Customer | None = facts["customer"]
        pins = {f"order:{arguments.order}": order.etag if order else "gone"}
        if order is not None:
            pins[f"customer:{order.customer}"] = customer.status if customer else "gone"
        return pins

    def warnings(self, arguments: RefundArguments, facts: Facts) -> tuple[tuple[str, str, str], ...]:
        order, customer = facts["order"], facts["customer"]
        found = []
        if arguments.currency == order.currency and not _is_usual(Decimal(arguments.amount), order):
            sentence = (
                "The amount is neither the whole payment, nor what is left of it, nor the price of an item."
            )
            found.append(("unusual_amount", "amount", sentence))
        if order.refunds:
            before = money_text(order.refunded, order.currency)
            times = "once" if len(order.refunds) == 1 else f"{len(order.refunds)} times"
            sentence = f"The order was refunded before, {times}: {before} in all."
            found.append(("refunded_before", "order", sentence))
        if _domain(arguments.receipt_to) != _domain(customer.email):
            sentence = "The receipt goes to another domain than that of the customer's own address."
            found.append(("other_domain", "receipt_to", sentence))
        elif arguments.receipt_to != customer.email:
            sentence = "The receipt goes to another address than the customer's own."
            found.append(("other_address", "receipt_to", sentence))
        return tuple(found)

    def account(self, site: Site) -> str:
        return account_of(site)

    def earlier_effects(self, site: Site, arguments: RefundArguments) -> tuple[str, ...]:
        """Refunds of this order with this very amount. Others were shown to the reviewer, and the pin holds them."""
        same = Decimal(arguments.amount)
        return tuple(
            str(refund.get("id", "")) for refund in read_refunds(site, arguments.order)
            if not is_reversed(refund) and refund.get("currency") == arguments.currency
            and Decimal(str(refund.get("amount", "0"))) == same
        )  # fmt: skip

    def execute(self, call: Call[RefundArguments]) -> Observation:
        arguments = call.arguments
        refund = client.Refund(
            order=arguments.order, amount=arguments.amount, currency=arguments.currency, reason=arguments.reason,
            receipt_to=arguments.receipt_to, message=arguments.message or None,
        )  # fmt: skip
        outcome = client.issue_refund(
            provider_for(call.site), refund, key=call.idempotency_key, deadline=call.deadline,
            if_match=call.pins.get(f"order:{arguments.order}"),
        )  # fmt: skip
        return _observed(outcome, arguments)

    def reconcile(self, call: Call[RefundArguments]) -> Finding:
        """By key. Anything but a plain answer is no answer: it settles nothing."""
        deadline = Deadline(min(call.deadline.at, Deadline.after(READ_WITHIN).at))
        outcome = client.lookup_refund(provider_for(call.site), call.idempotency_key, deadline=deadline)
        if not isinstance(outcome, Answer):
            return Finding("no_answer", detail=str(outcome.kind))
        refunds = parsed(outcome).get("refunds")
        if outcome.status == 501:
            return Finding("no_answer", detail="the provider cannot look this up")
        if outcome.status != 200 or not isinstance(refunds, list):
            return Finding("no_answer", detail=f"status {outcome.status}")
        return _found(refunds, call.arguments)


KEPT = ("id", "order", "amount", "currency", "created_at")
"""Of the provider's refund: nothing personal."""


def _found(refunds: list[Any], arguments: RefundArguments) -> Finding:
    return found(refunds, "refund", lambda refund: _is_ours(refund, arguments), KEPT)


def _observed(outcome: Outcome, arguments: RefundArguments) -> Observation:
    return observed(outcome, lambda refund: _is_ours(refund, arguments), KEPT)


def _is_ours(refund: Mapping[str, Any], arguments: RefundArguments) -> bool:
    named = (refund.get("order"), refund.get("amount"), refund.get("currency"))
    return named == (arguments.order, arguments.amount, arguments.currency)


def _shown(arguments: RefundArguments) -> str:
    return money_text(arguments.amount, arguments.currency)


def _is_usual(amount: Decimal, order: Order) -> bool:
    prices = {Decimal(str(item.get("price", "0"))) for item in order.items}
    return amount in {order.paid, order.remaining, *prices}


def _domain(address: str) -> str:
    return address.rpartition("@")[2]
