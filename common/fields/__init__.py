"""Typed argument fields: the words in which operations declare what they do. See docs/contract.md."""

from common.fields.arguments import ArgumentError, Arguments, ArgumentsRefused, Normalized
from common.fields.base import (
    EMPTY_LIST_TEXT,
    NONE_TEXT,
    ArgumentSpec,
    ArgumentType,
    CannotRender,
    DataClass,
    Rendered,
    arg,
)
from common.fields.currencies import SCALES
from common.fields.instants import Instant, InstantType
from common.fields.money import Currency, CurrencyType, Money, MoneyType, SignedMoney, money_text
from common.fields.naming import SchemaUnknown, arguments_from
from common.fields.net import Email, EmailType, Url, UrlType
from common.fields.scalars import (
    Boolean,
    BooleanType,
    ChoiceType,
    Decimal,
    DecimalType,
    Identifier,
    IdentifierType,
    Integer,
    IntegerType,
    Text,
    TextType,
)
from common.fields.secrets import SecretRef, SecretRefType
from common.fields.structures import ListType, OptionalType, StructureType, UnknownType
from common.fields.words import amount_in_words

__all__ = [
    "EMPTY_LIST_TEXT",
    "NONE_TEXT",
    "SCALES",
    "ArgumentError",
    "ArgumentSpec",
    "ArgumentType",
    "Arguments",
    "ArgumentsRefused",
    "Boolean",
    "BooleanType",
    "CannotRender",
    "ChoiceType",
    "Currency",
    "CurrencyType",
    "DataClass",
    "Decimal",
    "DecimalType",
    "Email",
    "EmailType",
    "Identifier",
    "IdentifierType",
    "Instant",
    "InstantType",
    "Integer",
    "IntegerType",
    "ListType",
    "Money",
    "MoneyType",
    "Normalized",
    "OptionalType",
    "Rendered",
    "SchemaUnknown",
    "SecretRef",
    "SecretRefType",
    "SignedMoney",
    "StructureType",
    "Text",
    "TextType",
    "UnknownType",
    "Url",
    "UrlType",
    "amount_in_words",
    "arg",
    "arguments_from",
    "money_text",
]
