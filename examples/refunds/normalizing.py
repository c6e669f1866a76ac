"""From what people type to what code can compare: order numbers and amounts, without guessing."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from common.display import codes_of
from common.fields import SCALES
from workflows.authoring import Malformed

_REFERENCE = re.compile(
    r"\s*(?:(?:order|nr|no|number)\b\.?|[#:\s])*\s*([0-9A-Za-z][0-9A-Za-z-]{0,31})\s*",
    re.IGNORECASE | re.ASCII,
)
_MENTION = re.compile(r"\border\s*(?:no\.?|nr\.?|number)?\s*[#:]?\s*(\d{3,12})\b", re.IGNORECASE | re.ASCII)

_CODES = {"€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY", "euro": "EUR", "dollar": "USD", "buck": "USD",
          "pound": "GBP", "quid": "GBP", "yen": "JPY", "dinar": "KWD"}  # fmt: skip
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d{1,9})(?:\.\d{1,3})?|\d{1,9},\d{2}"
_BEFORE = re.compile(rf"([€$£¥]|\b(?:EUR|USD|GBP|JPY|KWD)\b)\s?({_NUMBER})(?![\d])", re.ASCII)
_WORD = r"(?:euro|dollar|buck|pound|quid|yen|dinar)s?\b"
_AFTER = re.compile(
    rf"(?<![\d.,€$£¥])({_NUMBER})\s?([€$£¥]|\b(?:EUR|USD|GBP|JPY|KWD)\b|{_WORD})"
    rf"|\b((?:an?|one)(?: extra| additional)?)\s({_WORD})", re.ASCII,
)  # fmt: skip

DECEPTIVE = frozenset({
    "bidi_control", "invisible", "tag_chars", "blank_letter", "ansi_escape", "private_use", "unassigned",
    "mixed_script", "stacked_marks",
})  # fmt: skip
_EMOJI_STYLE = "\ufe0f"


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in the scale of its currency."""

    amount: Decimal
    currency: str

    def __str__(self) -> str:
        return f"{self.currency} {self.amount}"


def order_number(text: str) -> str:
    """The bare number of ``order #9001``.

    Raises Malformed (`odd_order_id`) for anything else, look-alike digits above all: the number is not repaired,
    because somebody may have wanted it to be read as another one.
    """
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise Malformed("odd_order_id", {"order_id": text, "oddities": sorted(codes_of(text))})
    return found[1]


def orders_mentioned(message: str) -> set[str]:
    """Numbers that the message itself calls an order."""
    return set(_MENTION.findall(message))


def amounts_mentioned(message: str) -> list[Money]:
    """Amounts with a currency, in the order of the text. One whose scale does not fit is no amount of money."""
    found = [(match.start(), match[2], match[1]) for match in _BEFORE.finditer(message)]
    found += [
        (match.start(), match[1] or match[3], match[2] or match[4]) for match in _AFTER.finditer(message)
    ]
    read = (money_of(number, _currency(word)) for _, number, word in sorted(found))
    return [money for money in read if money is not None]


def _currency(word: str) -> str:
    return _CODES.get(word.lower().rstrip("s") if len(word) > 1 else word, word)


def money_of(number: str, currency: str) -> Money | None:
    """The number in the currency's scale, or None where it does not fit."""
    scale = SCALES.get(currency)
    if scale is None:
        return None
    plain = "1" if number[:1].isalpha() else _plain(number)
    try:
        amount = Decimal(plain)
    except InvalidOperation:
        return None
    exponent = amount.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent > scale or amount <= 0:
        return None
    return Money(amount.quantize(Decimal(1).scaleb(-scale)), currency)


def _plain(number: str) -> str:
    """``1,250.00`` and ``12,50`` with a point and nothing else."""
    if re.fullmatch(r"\d+,\d{2}", number):
        return number.replace(",", ".")
    return number.replace(",", "")


def deceptions_in(text: str) -> list[str]:
    """Codes of what hides or imitates characters. The mark that colours an emoji is no deception."""
    return sorted(codes_of(text.replace(_EMOJI_STYLE, "")) & DECEPTIVE)
