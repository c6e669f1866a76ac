"""Read shown texts back into values: the inverse of rendering, by the name of the type alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from common.fields.base import EMPTY_LIST_TEXT, NONE_TEXT, ArgumentType
from common.fields.instants import InstantType
from common.fields.money import CurrencyType, MoneyType
from common.fields.net import EmailType, UrlType
from common.fields.scalars import BooleanType, ChoiceType, DecimalType, IdentifierType, IntegerType, TextType
from common.fields.secrets import SecretRefType
from common.strictjson import JsonValue

_TYPES: Final[tuple[ArgumentType, ...]] = (
    TextType(),
    IdentifierType(),
    ChoiceType(()),
    IntegerType(),
    BooleanType(),
    DecimalType(),
    MoneyType(),
    CurrencyType(),
    InstantType(),
    UrlType(),
    EmailType(),
    SecretRefType(),
)
PARSERS: Final[dict[str, ArgumentType]] = {kind.name: kind for kind in _TYPES}


def parse_shown(
    type_name: str, text: str, covers: Sequence[str] = ()
) -> tuple[JsonValue, dict[str, JsonValue]]:
    """The value that a text shows, and those of the arguments it covers; ValueError where it shows none."""
    if text in (NONE_TEXT, EMPTY_LIST_TEXT):
        return (None if text == NONE_TEXT else []), {}
    parser = PARSERS.get(type_name)
    if parser is None:
        raise ValueError(f"Texts of type {type_name} cannot be read back.")
    if isinstance(parser, MoneyType):
        amount, currency = parser.parse_both(text)
        return amount, dict.fromkeys(covers, currency)
    return parser.parse(text), {}
