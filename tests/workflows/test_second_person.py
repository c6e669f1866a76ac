"""From which amount on it takes two people to say what became of an action: any amount, wherever it stands."""

from decimal import Decimal
from typing import Any

import pytest

from common.fields import Currency, Identifier, Money, SignedMoney
from workflows.authoring import Arguments, Operation, arg


class Line(Arguments):
    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")


class Everywhere(Arguments):
    order: Identifier = arg(label="Order", data_class="business")
    price: Money | None = arg(None, label="Price", data_class="business")
    change: SignedMoney | None = arg(None, label="Change", data_class="business")
    currency: Currency = arg("EUR", label="Currency", data_class="business")
    lines: list[Line] = arg([], label="Lines", data_class="business")


class Spread(Operation[Everywhere]):
    second_person_from = Decimal(100)


class Unlimited(Operation[Everywhere]):
    pass


def arguments(**values: Any) -> Everywhere:
    return Everywhere.model_validate({"order": "1"} | values)


def line(amount: str) -> dict[str, str]:
    return {"amount": amount, "currency": "EUR"}


@pytest.mark.parametrize(
    ("values", "two"),
    [
        ({"price": "99.99"}, False),
        ({"price": "100"}, True),
        ({"price": "1", "change": "-100"}, True),
        ({"price": "1", "change": "-99.99"}, False),
        ({"price": "1", "lines": [line("5"), line("100.01")]}, True),
        ({"price": "1", "lines": [line("5"), line("99")]}, False),
        ({}, True),
    ],
    ids=[
        "under",
        "at",
        "below zero",
        "a little below zero",
        "in a list",
        "under in a list",
        "no amount at all",
    ],
)
def test_any_amount_that_reaches_the_limit(values: dict[str, Any], two: bool) -> None:
    assert Spread().needs_second_person(arguments(**values)) is two


def test_without_a_limit_one_is_enough() -> None:
    assert Unlimited().needs_second_person(arguments(price="999999")) is False
    assert Unlimited().needs_second_person(arguments()) is False
