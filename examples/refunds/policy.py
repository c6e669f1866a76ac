"""Who has to agree to a refund. Deterministic, versioned, and with every number inside the class that is hashed."""

from decimal import Decimal
from typing import ClassVar

from examples.refunds.arguments import RefundArguments, ReversalArguments
from examples.refunds.source import Order
from workflows.authoring import Facts, Policy, Test, Verdict, money_text

DESK, FINANCE = "Refund desk", "Finance"


class RefundPolicy(Policy[RefundArguments]):
    """Refunds up to a small amount could go by themselves on stage *execute*; above, one person; far above, two."""

    name = "refund-policy"
    version = 1

    small: ClassVar[dict[str, Decimal]] = {
        "EUR": Decimal(20), "USD": Decimal(20), "GBP": Decimal(20), "JPY": Decimal(3000), "KWD": Decimal(6),
    }  # fmt: skip
    large: ClassVar[dict[str, Decimal]] = {
        "EUR": Decimal(500), "USD": Decimal(500), "GBP": Decimal(500), "JPY": Decimal(80000), "KWD": Decimal(150),
    }  # fmt: skip

    def judge(self, arguments: RefundArguments, facts: Facts) -> Verdict:
        """The first rule that applies; a currency without limits of its own is large from the first cent."""
        order, amount, currency = facts["order"], Decimal(arguments.amount), arguments.currency
        tests = self._tests(amount, currency, order)
        if refusal := self._refusal(amount, currency, order):
            return Verdict("refuse", *refusal, tests=tests)
        if amount > self.large.get(currency, Decimal(0)):
            because = f"More than {currency} {self.large.get(currency, 0)} needs two people of {FINANCE}."
            return Verdict("ask_two", "refund.two_people", because, tests, FINANCE, risk=3)
        small = money_text(self.small[currency], currency)
        if amount <= self.small[currency] and not order.refunds:
            because = f"A first refund of the order, of no more than {small}."
            return Verdict("auto", "refund.small", because, tests, DESK, risk=1)
        because = f"More than {small}, or not the order's first refund: one person decides."
        return Verdict("ask_one", "refund.one_person", because, tests, DESK, risk=2)

    def _refusal(self, amount: Decimal, currency: str, order: Order) -> tuple[str, str] | None:
        if not order.is_paid:
            return "not_paid", "The order was not paid, or it was cancelled."
        if currency != order.currency:
            return "currency_mismatch", "A refund is made in the currency of the payment."
        if order.remaining <= 0:
            return "already_refunded", "The whole payment was refunded before."
        if amount <= 0:
            return "nothing_to_refund", "The amount must be above zero."
        if amount > order.remaining:
            return "above_paid", "It is more than what was paid and not yet refunded."
        return None

    def _tests(self, amount: Decimal, currency: str, order: Order) -> tuple[Test, ...]:
        large, small = self.large.get(currency, Decimal(0)), self.small.get(currency, Decimal(0))
        earlier = len(order.refunds)
        return (
            Test("The order was paid", order.is_paid, money_text(order.paid, order.currency)),
            Test("In the currency of the payment", currency == order.currency, order.currency),
            Test("Not above what is left of the payment", amount <= order.remaining,
                 f"{money_text(order.remaining, order.currency)} left"),
            Test("The order's first refund", earlier == 0, f"{earlier} earlier" if earlier else "none before"),
            Test(f"At most {money_text(small, currency)}", amount <= small, money_text(amount, currency)),
            Test(f"At most {money_text(large, currency)}", amount <= large, money_text(amount, currency)),
        )  # fmt: skip


class ReversalPolicy(Policy[ReversalArguments]):
    """Whoever got money must not lose it again by a rule: a person decides on each, and two on what is large."""

    name = "reversal-policy"
    version = 1

    large: ClassVar[dict[str, Decimal]] = {
        "EUR": Decimal(500), "USD": Decimal(500), "GBP": Decimal(500), "JPY": Decimal(80000), "KWD": Decimal(150),
    }  # fmt: skip

    def judge(self, arguments: ReversalArguments, facts: Facts) -> Verdict:
        amount, large = Decimal(arguments.amount), self.large.get(arguments.currency, Decimal(0))
        tests = (
            Test(f"At most {money_text(large, arguments.currency)}", amount <= large,
                 money_text(amount, arguments.currency)),
        )  # fmt: skip
        if amount > large:
            because = f"More than {arguments.currency} {large} needs two people of {FINANCE}."
            return Verdict("ask_two", "reversal.two_people", because, tests, FINANCE, risk=3)
        return Verdict("ask_one", "reversal.one_person", "A person decides on each.", tests, DESK, risk=2)
