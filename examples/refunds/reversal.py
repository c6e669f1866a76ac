"""The counter-action of a refund: it is called back while the provider has not paid it out."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from common.deadline import Deadline
from common.outgoing import Answer
from examples.refunds import client
from examples.refunds.answers import found, observed
from examples.refunds.arguments import ReversalArguments
from examples.refunds.policy import ReversalPolicy
from examples.refunds.site import account_of, provider_for
from examples.refunds.source import (
    READ_WITHIN,
    Order,
    is_reversed,
    parsed,
    read_order,
    read_refunds,
)
from workflows.authoring import (
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


class ReverseRefund(Operation[ReversalArguments]):
    """Call one refund back, as a whole. Nobody proposes it but people, after a refund that was wrong."""

    name = "refunds.reverse"
    version = 2
    title = "Call a refund back"
    provider = "refund-provider"
    arguments = ReversalArguments
    policy = ReversalPolicy()
    outcomes = OutcomeTable(
        # The provider checks all of these before it books anything.
        refused=frozenset({400, 404, 409, 412, 422}),
        rejects_unauthorized=True,
        throttles_before_executing=True,
        key_reused="idempotency_key_reused",
    )
    decide_within = timedelta(hours=4)
    execute_within = timedelta(minutes=10)
    settle_time = timedelta(seconds=30)
    undo = "The customer would have to be refunded anew."
    second_person_from = Decimal(500)

    def look(self, site: Site, arguments: ReversalArguments) -> Facts:
        order = read_order(site, arguments.order)
        found = read_refunds(site, arguments.order) if order else ()
        refund = next((one for one in found if one.get("id") == arguments.refund), None)
        return {"order": order, "refund": refund, "in_time": refund is not None and _is_in_time(refund)}

    def check(self, arguments: ReversalArguments, facts: Facts) -> None:
        refund = facts["refund"]
        if refund is None:
            raise OperationRefused("unknown_refund", "The provider has no such refund of this order.")
        if is_reversed(refund):
            raise OperationRefused("already_reversed", "This refund was called back before.")
        if (refund.get("amount"), refund.get("currency")) != (arguments.amount, arguments.currency):
            raise OperationRefused("amount_mismatch", "The provider's refund is of another amount.")
        if not facts["in_time"]:
            raise OperationRefused("paid_out", "The refund was paid out: it cannot be called back any more.")

    def target(self, arguments: ReversalArguments) -> str:
        return f"order:{arguments.order}"

    def business_key(self, arguments: ReversalArguments) -> str:
        return f"reversal of {arguments.refund}"

    def consequence(self, arguments: ReversalArguments, facts: Facts) -> str:
        return (
            f"Call refund {arguments.refund} of {_shown(arguments)} for order {arguments.order} back:"
            " the customer does not get this money."
        )

    def summary(self, arguments: ReversalArguments, facts: Facts) -> str:
        return f"Call back {_shown(arguments)} for order {arguments.order}"

    def affected(self, arguments: ReversalArguments, facts: Facts) -> tuple[Affected, ...]:
        order: Order = facts["order"]
        amount, record = Decimal(arguments.amount), f"order:{order.id}"
        return tuple(
            Affected(record, field, money_text(before, order.currency), money_text(after, order.currency))
            for field, before, after in (
                ("Refunded", order.refunded, order.refunded - amount),
                ("Left of the payment", order.remaining, order.remaining + amount),
            )
        )

    def pins(self, arguments: ReversalArguments, facts: Facts) -> Mapping[str, str]:
        order: Order | None = facts["order"]
        return {f"order:{arguments.order}": order.etag if order else "gone"}

    def account(self, site: Site) -> str:
        return account_of(site)

    def earlier_effects(self, site: Site, arguments: ReversalArguments) -> tuple[str, ...]:
        """Of this very refund: it can be called back only once."""
        return tuple(
            str(refund.get("reversal", "")) for refund in read_refunds(site, arguments.order)
            if refund.get("id") == arguments.refund and is_reversed(refund)
        )  # fmt: skip

    def execute(self, call: Call[ReversalArguments]) -> Observation:
        arguments = call.arguments
        reversal = client.Reversal(arguments.refund, arguments.order, arguments.amount, arguments.currency)
        outcome = client.reverse_refund(
            provider_for(call.site), reversal, key=call.idempotency_key, deadline=call.deadline,
            if_match=call.pins.get(f"order:{arguments.order}"),
        )  # fmt: skip
        return observed(outcome, lambda reversal: _is_ours(reversal, arguments), KEPT)

    def reconcile(self, call: Call[ReversalArguments]) -> Finding:
        """By key. Anything but a plain answer is no answer: it settles nothing."""
        deadline = Deadline(min(call.deadline.at, Deadline.after(READ_WITHIN).at))
        outcome = client.lookup_reversal(provider_for(call.site), call.idempotency_key, deadline=deadline)
        if not isinstance(outcome, Answer):
            return Finding("no_answer", detail=str(outcome.kind))
        reversals = parsed(outcome).get("reversals")
        if outcome.status != 200 or not isinstance(reversals, list):
            return Finding("no_answer", detail=f"status {outcome.status}")
        return found(reversals, "reversal", lambda reversal: _is_ours(reversal, call.arguments), KEPT)


KEPT = ("id", "refund", "order", "amount", "currency", "created_at")
"""Of the provider's reversal: nothing personal."""


def _is_in_time(refund: Mapping[str, Any]) -> bool:
    try:
        return datetime.now(UTC) < datetime.fromisoformat(str(refund.get("reversible_until", "")))
    except (TypeError, ValueError):
        return False


def _is_ours(reversal: Mapping[str, Any], arguments: ReversalArguments) -> bool:
    named = tuple(reversal.get(name) for name in ("refund", "order", "amount", "currency"))
    wanted = (arguments.refund, arguments.order, arguments.amount, arguments.currency)
    return named == wanted


def _shown(arguments: ReversalArguments) -> str:
    return money_text(arguments.amount, arguments.currency)
