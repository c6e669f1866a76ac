"""How much is due, and who has to agree: by code, at every boundary."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from examples.refunds.arguments import RefundArguments
from examples.refunds.eligibility import AmountNeeded, Eligible, Not, eligible
from examples.refunds.normalizing import Money
from examples.refunds.operation import IssueRefund
from examples.refunds.source import Customer, Order
from workflows.authoring import OperationRefused, Verdict

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)
OPERATION = IssueRefund()


def order(paid: str = "100.00", refunded: str = "0.00", **fields: Any) -> Order:
    values: dict[str, Any] = {
        "id": "9001", "customer": "c-1", "currency": "EUR", "status": "delivered", "items": (), "etag": '"9001-v1"',
        "placed_at": NOW - timedelta(days=3), "paid": Decimal(paid), "refunded": Decimal(refunded),
        "remaining": Decimal(paid) - Decimal(refunded),
        "refunds": ({"id": "re_1", "amount": refunded, "currency": "EUR"},) if Decimal(refunded) else (),
    }  # fmt: skip
    return Order(**values | fields)


def arguments(amount: str = "10.00", **fields: Any) -> RefundArguments:
    raw = {
        "order": "9001", "amount": amount, "currency": "EUR", "reason": "damaged", "receipt_to": "mara@example.com",
    }  # fmt: skip
    return RefundArguments.model_validate(raw | fields)


def facts(found: Order | None, customer: Customer | None = None) -> dict[str, Any]:
    return {"order": found, "customer": customer or Customer("c-1", "mara@example.com", "active")}


def judge(amount: str, found: Order, **fields: Any) -> Verdict:
    return OPERATION.policy.judge(arguments(amount, **fields), facts(found))


@pytest.mark.parametrize(
    ("amount", "paid", "verdict", "rule", "group"),
    [
        ("0.01", "1000.00", "auto", "refund.small", "Refund desk"),
        ("20.00", "1000.00", "auto", "refund.small", "Refund desk"),
        ("20.01", "1000.00", "ask_one", "refund.one_person", "Refund desk"),
        ("500.00", "1000.00", "ask_one", "refund.one_person", "Refund desk"),
        ("500.01", "1000.00", "ask_two", "refund.two_people", "Finance"),
        ("1000.00", "1000.00", "ask_two", "refund.two_people", "Finance"),
        ("1000.01", "1000.00", "refuse", "above_paid", ""),
        ("0.00", "1000.00", "refuse", "nothing_to_refund", ""),
    ],
)
def test_the_limits(amount: str, paid: str, verdict: str, rule: str, group: str) -> None:
    found = judge(amount, order(paid))
    assert (found.verdict, found.rule, found.group) == (verdict, rule, group)


def test_a_small_second_refund_is_asked() -> None:
    assert judge("5.00", order("100.00", "30.00")).rule == "refund.one_person"


def test_never_above_what_is_left() -> None:
    assert judge("70.00", order("100.00", "30.00")).verdict == "ask_one"
    assert judge("70.01", order("100.00", "30.00")).rule == "above_paid"


@pytest.mark.parametrize(
    ("found", "rule"),
    [
        (order("0.00", status="cancelled"), "not_paid"),
        (order(status="cancelled"), "not_paid"),
        (order(currency="USD"), "currency_mismatch"),
        (order("100.00", "100.00"), "already_refunded"),
    ],
)
def test_what_nobody_is_asked_about(found: Order, rule: str) -> None:
    verdict = judge("10.00", found)
    assert (verdict.verdict, verdict.rule) == ("refuse", rule)


def test_a_currency_without_limits_needs_two() -> None:
    assert judge("1.00", order(currency="CHF"), currency="CHF").verdict == "ask_two"


def test_each_test_of_the_verdict_says_what_it_saw() -> None:
    tests = {test.label: (test.ok, test.says) for test in judge("600.00", order("1000.00")).tests}
    assert tests["At most EUR 500"] == (False, "EUR 600.00")
    assert tests["Not above what is left of the payment"] == (True, "EUR 1,000.00 left")


def test_the_operation_refuses_what_it_may_not_touch() -> None:
    blocked = Customer("c-1", "mara@example.com", "blocked")
    for found, customer, code in ((None, None, "unknown_order"), (order(), blocked, "customer_blocked")):
        with pytest.raises(OperationRefused) as refused:
            OPERATION.check(arguments(), facts(found, customer))
        assert refused.value.code == code


def test_the_pins_hold_the_order_and_the_customer() -> None:
    assert OPERATION.pins(arguments(), facts(order())) == {
        "order:9001": '"9001-v1"',
        "customer:c-1": "active",
    }
    assert OPERATION.pins(arguments(), facts(None)) == {"order:9001": "gone"}


def test_target_key_and_consequence() -> None:
    assert OPERATION.target(arguments()) == "order:9001"
    # Asked for in other words it is the same refund; another amount is another one.
    assert OPERATION.business_key(arguments("5.00")) == OPERATION.business_key(
        arguments("5.0", reason="unwanted")
    )
    assert OPERATION.business_key(arguments("5.00")) != OPERATION.business_key(arguments("6.00"))
    sentence = OPERATION.consequence(arguments(), facts(order()))
    assert sentence == "Refund EUR 10.00 for order 9001 to the card it was paid with, and mail the receipt."
    before_after = [(row.before, row.after) for row in OPERATION.affected(arguments(), facts(order()))]
    assert before_after == [("EUR 0.00", "EUR 10.00"), ("EUR 100.00", "EUR 90.00")]


@pytest.mark.parametrize(
    ("amount", "found", "receipt_to", "codes"),
    [
        ("100.00", order(), "mara@example.com", []),
        ("10.00", order(), "mara@example.com", ["unusual_amount"]),
        ("10.00", order(items=({"price": "10.00"},)), "mara@example.com", []),
        ("70.00", order("100.00", "30.00"), "mara@example.com", ["refunded_before"]),
        ("100.00", order(), "mara@example.org", ["other_domain"]),
        ("100.00", order(), "tara@example.com", ["other_address"]),
    ],
)
def test_warnings(amount: str, found: Order, receipt_to: str, codes: list[str]) -> None:
    warnings = OPERATION.warnings(arguments(amount, receipt_to=receipt_to), facts(found))
    assert [code for code, _, _ in warnings] == codes


def due(found: Order, reason: str = "damaged", *claims: str) -> Eligible | Not | AmountNeeded:
    named = [Money(Decimal(text.split()[1]), text.split()[0]) for text in claims]
    return eligible(found.figures(), reason, named, NOW)


@pytest.mark.parametrize(
    ("found", "reason", "claims", "expected"),
    [
        (order(), "damaged", (), Eligible(Money(Decimal("100.00"), "EUR"))),
        (order("100.00", "30.00"), "damaged", (), Eligible(Money(Decimal("70.00"), "EUR"))),
        (order(), "damaged", ("EUR 40.00",), Eligible(Money(Decimal("40.00"), "EUR"))),
        (order(), "damaged", ("EUR 100.01",), Not("claims_too_much")),
        (order(), "damaged", ("EUR 40.00", "EUR 41.00"), Not("contradictory_amounts")),
        (order(), "damaged", ("USD 40.00",), Not("other_currency")),
        (order(), "overcharged", (), AmountNeeded("EUR")),
        (order(), "overcharged", ("EUR 1.00",), Eligible(Money(Decimal("1.00"), "EUR"))),
        (order("100.00", "100.00"), "damaged", (), Not("already_refunded", ends=True)),
        (order("100.00", "30.00"), "refund_missing", (), Not("refund_on_its_way", ends=True)),
        (order(), "refund_missing", (), Eligible(Money(Decimal("100.00"), "EUR"))),
        (order("0.00", status="cancelled"), "damaged", (), Not("not_paid", ends=True)),
        (
            order(placed_at=NOW - timedelta(days=365)),
            "damaged",
            (),
            Eligible(Money(Decimal("100.00"), "EUR")),
        ),
        (order(placed_at=NOW - timedelta(days=366)), "damaged", (), Not("outside_window")),
    ],
)
def test_how_much_is_due(found: Order, reason: str, claims: tuple[str, ...], expected: object) -> None:
    assert due(found, reason, *claims) == expected
