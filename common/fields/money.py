"""Money: a decimal string in its currency's scale, and beside it an ISO 4217 code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from common.fields.base import ArgumentType, Rendered, need_text, refuse
from common.fields.currencies import SCALES
from common.fields.scalars import decimal_text, grouped_digits
from common.fields.words import amount_in_words

_MAX_WHOLE_DIGITS: Final = 18
_SHOWN: Final = re.compile(r"([A-Z]{3}) (-?[0-9,]+(?:\.[0-9]+)?)", re.ASCII)


@dataclass(frozen=True)
class CurrencyType(ArgumentType):
    """An ISO 4217 code, exactly as the list spells it."""

    name: ClassVar[str] = "currency"

    def normalize(self, value: Any) -> str:
        code = need_text(value)
        if code not in SCALES:
            refuse("currency_unknown", "The currency is no ISO 4217 code in capital letters.")
        return code

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^[A-Z]{3}$"}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(value)

    def parse(self, text: str) -> str:
        return text


def money_text(amount: object, currency: str) -> str:
    """An amount as the page shows it, for the sentences that operations write: ``EUR 1,284.50``."""
    return f"{currency} {grouped_digits(str(amount))}"


@dataclass(frozen=True)
class MoneyType(ArgumentType):
    """An amount as a decimal string. A JSON number is refused: 10 euro or 10 cents?

    The scale needs the currency beside it, so it is given by `scaled` once both are known. The text on the
    page holds both, and `parse_both` reads both.
    """

    name: ClassVar[str] = "money"
    signed: bool = False
    """Whether amounts below zero are allowed; they turn the meaning of a sentence round."""

    def normalize(self, value: Any) -> str:
        text = decimal_text(value, "money_must_be_string")
        if text.startswith("-") and not self.signed:
            refuse("money_negative", "The amount must not be negative.")
        if len(text.lstrip("-").partition(".")[0]) > _MAX_WHOLE_DIGITS:
            refuse(
                "money_out_of_range", f"The amount has more than {_MAX_WHOLE_DIGITS} digits before the point."
            )
        return text

    def scaled(self, amount: str, currency: str) -> str:
        """The amount with exactly the digits of its currency: "10" is "10.00" in EUR; "10.001" is refused."""
        whole, _, fraction = amount.partition(".")
        scale = SCALES[currency]
        if len(fraction) > scale:
            refuse("decimal_scale", f"{currency} has {scale} digits behind the point; nothing is rounded.")
        text = f"{whole}.{fraction.ljust(scale, '0')}" if scale else whole
        return text.lstrip("-") if not text.strip("-0.") else text

    def json_schema(self) -> dict[str, Any]:
        sign = "-?" if self.signed else ""
        return {"type": "string", "pattern": rf"^{sign}(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$", "maxLength": 40}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        currency = siblings["currency"]
        return Rendered(money_text(value, currency), (amount_in_words(value, currency),))

    def parse(self, text: str) -> str:
        return self.parse_both(text)[0]

    def parse_both(self, text: str) -> tuple[str, str]:
        """The amount and the currency that a shown text names."""
        found = _SHOWN.fullmatch(text)
        if found is None:
            raise ValueError("The text shows no amount of money.")
        return found[2].replace(",", ""), found[1]


Currency = Annotated[str, CurrencyType()]
Money = Annotated[str, MoneyType()]
SignedMoney = Annotated[str, MoneyType(signed=True)]
