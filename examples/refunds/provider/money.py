"""Amounts as whole minor units, with the scale that ISO 4217 gives each currency."""

import re

SCALES = {"EUR": 2, "USD": 2, "GBP": 2, "CHF": 2, "SEK": 2, "JPY": 0, "KWD": 3}
AMOUNT = re.compile(r"(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,3}))?", re.ASCII)


class InvalidAmount(ValueError):
    """The amount is not a positive decimal text in the scale of its currency."""


def to_minor(text: object, currency: str) -> int:
    """Minor units of ``text``: "12.50" EUR is 1250, "5400" JPY is 5400. Raises :class:`InvalidAmount`."""
    match = AMOUNT.fullmatch(text) if isinstance(text, str) else None
    scale = SCALES.get(currency)
    if match is None or scale is None or len(match[2] or "") != scale:
        raise InvalidAmount(InvalidAmount.__doc__)
    return int(match[1] + (match[2] or ""))


def to_text(minor: int, currency: str) -> str:
    """The decimal text of ``minor`` units, always with all digits of the scale."""
    scale = SCALES[currency]
    if scale == 0:
        return str(minor)
    digits = str(minor).rjust(scale + 1, "0")
    return f"{digits[:-scale]}.{digits[-scale:]}"
