"""Read shown texts back into values: the inverse of rendering, by the name of the type alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from common.fields.arguments import Arguments, kinds_of
from common.fields.base import EMPTY_LIST_TEXT, NONE_TEXT, ArgumentType
from common.fields.instants import InstantType
from common.fields.measures import DateType, DurationType, PercentageType, ZonedTimeType
from common.fields.money import CurrencyType, MoneyType
from common.fields.net import EmailType, UrlType
from common.fields.scalars import BooleanType, ChoiceType, DecimalType, IdentifierType, IntegerType, TextType
from common.fields.secrets import SecretRefType
from common.fields.structures import StructureType
from common.fields.things import AccountType, FileType, HostType, IbanType, PersonType
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
    AccountType(),
    IbanType(),
    HostType(),
    PersonType(),
    FileType(),
    DurationType(),
    PercentageType(),
    DateType(),
    ZonedTimeType(),
)
PARSERS: Final[dict[str, ArgumentType]] = {kind.name: kind for kind in _TYPES}


class NoRenderer(TypeError):
    """An argument whose type nobody can be shown: what holds one could be proposed and never approved."""


def check_can_be_shown(schema: type[Arguments]) -> None:
    """Raises NoRenderer unless every type of the schema renders, and what it renders can be read back.

    A type of an author's own is remembered by its name, so that stored documents are read with it.
    """
    for path, kind in kinds_of(schema):
        silent = type(kind).render is ArgumentType.render or type(kind).parse is ArgumentType.parse
        if silent and not isinstance(kind, StructureType):
            raise NoRenderer(f"{schema.__name__}.{path} has a type that cannot be shown and read back.")
        if not isinstance(kind, StructureType):
            _remember(kind)


def _remember(kind: ArgumentType) -> None:
    known = PARSERS.setdefault(kind.name, kind)
    if type(known).parse is not type(kind).parse:
        raise NoRenderer(f"Two types are named {kind.name}: stored texts could be read back by either.")


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
