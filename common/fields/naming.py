"""Schemas written as data: `{"amount": "money", "currency": "currency", "notify": "bool=true"}`.

For integrators who check their digests without Python code; see `common.canonicalize`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import create_model

from common.fields.arguments import Arguments
from common.fields.base import arg
from common.fields.instants import Instant
from common.fields.measures import Date, Duration, Percentage, ZonedTime
from common.fields.money import Currency, Money, SignedMoney
from common.fields.net import Email, Url
from common.fields.scalars import Boolean, ChoiceType, Decimal, Identifier, Integer, Text
from common.fields.secrets import SecretRef
from common.fields.things import Account, FileByHash, Host, Iban, Person

TYPES: Final[dict[str, Any]] = {
    "text": Text,
    "identifier": Identifier,
    "integer": Integer,
    "bool": Boolean,
    "boolean": Boolean,
    "decimal": Decimal,
    "money": Money,
    "signed-money": SignedMoney,
    "currency": Currency,
    "datetime": Instant,
    "instant": Instant,
    "url": Url,
    "email": Email,
    "secret-ref": SecretRef,
    "account": Account,
    "iban": Iban,
    "host": Host,
    "person": Person,
    "file": FileByHash,
    "duration": Duration,
    "percentage": Percentage,
    "date": Date,
    "zoned-time": ZonedTime,
}


class SchemaUnknown(ValueError):
    """The description of a schema is not understood."""


def arguments_from(schema: Mapping[str, str]) -> type[Arguments]:
    """The Arguments class for a mapping of names to types.

    A type may be followed by `=` and a default in JSON; `choice:a|b|c` offers words; `list:TYPE` is a list.
    Money takes its currency from the one field of type currency.
    """
    # Names of attributes are made up, so that any name in JSON will do.
    fields: dict[str, Any] = {
        f"field_{index}": _field(name, described) for index, (name, described) in enumerate(schema.items())
    }
    try:
        return create_model("DescribedArguments", __base__=Arguments, **fields)
    except TypeError as error:
        raise SchemaUnknown(str(error)) from error


def _field(name: str, described: str) -> tuple[Any, Any]:
    if not isinstance(described, str):
        raise SchemaUnknown(f"The type of {name} is not given as a string.")
    written, equals, default = described.partition("=")
    declared = arg(_default(default) if equals else ..., label=name, data_class="business", alias=name)
    return _annotation(written), declared


def _default(written: str) -> Any:
    try:
        return json.loads(written)
    except ValueError as error:
        raise SchemaUnknown(f"The default {written} is not JSON.") from error


def _annotation(written: str) -> Any:
    kind, _, rest = written.partition(":")
    if kind == "list":
        return list[_annotation(rest)]  # type: ignore[misc]
    if kind == "choice" and rest:
        return Annotated[str, ChoiceType(tuple(rest.split("|")))]
    if written not in TYPES:
        raise SchemaUnknown(f"There is no type named {written}.")
    return TYPES[written]
