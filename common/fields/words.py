"""Amounts in English words, so that a misread digit is read a second time in another form."""

from __future__ import annotations

from typing import Final

from common.fields.currencies import SCALES, UNITS

_SMALL: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_POWERS: Final = ("", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion")
_PARTS: Final = {1: "tenths", 2: "hundredths", 3: "thousandths", 4: "ten-thousandths"}


def in_words(number: int) -> str:
    """A whole number from zero up, below 10^21."""
    if number == 0:
        return "zero"
    groups = []
    for power in _POWERS:
        number, group = divmod(number, 1000)
        if group:
            groups.append(f"{_below_thousand(group)} {power}".strip())
    return " ".join(reversed(groups))


def _below_thousand(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    words = [f"{_SMALL[hundreds]} hundred"] if hundreds else []
    if rest:
        words.append(_below_hundred(rest))
    return " ".join(words)


def _below_hundred(number: int) -> str:
    if number < 20:
        return _SMALL[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_SMALL[ones]}" if ones else "")


def amount_in_words(amount: str, currency: str) -> str:
    """A normalized amount of money: "one thousand two hundred eighty-four euro and fifty cent"."""
    sign, digits = ("minus ", amount[1:]) if amount.startswith("-") else ("", amount)
    whole, _, fraction = digits.partition(".")
    major, minor = UNITS.get(currency, (currency, ""))
    text = f"{sign}{in_words(int(whole))} {major}"
    if not int(fraction or 0):
        return text
    return f"{text} and {in_words(int(fraction))} {minor or _PARTS[SCALES[currency]]}"
