"""Texts, identifiers, choices, numbers and truth values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Annotated, Any, ClassVar, Final

from common import display
from common.fields.base import ArgumentType, Rendered, need_text, refuse
from common.strictjson import MAX_INTEGER, JsonValue

_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:~-]*", re.ASCII)
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_LONG_DIGITS: Final = re.compile(r"[0-9]{9,}", re.ASCII)


@dataclass(frozen=True)
class TextType(ArgumentType):
    """Any text, kept to the byte. What is odd in it is shown and flagged, never removed."""

    name: ClassVar[str] = "text"
    max_length: int = 65_536
    min_length: int = 0

    def normalize(self, value: Any) -> str:
        text = need_text(value)
        if not self.min_length <= len(text) <= self.max_length:
            refuse("text_length", f"The text must have {self.min_length} to {self.max_length} characters.")
        return text

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": self.min_length, "maxLength": self.max_length}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(display.visible(value), display.explained(value), display.flags_of(value))

    def parse(self, text: str) -> str:
        return display.unveil(text)


@dataclass(frozen=True)
class IdentifierType(ArgumentType):
    """A name that machines give: ASCII letters, digits and `_ . : ~ -`."""

    name: ClassVar[str] = "identifier"
    max_length: int = 128

    def normalize(self, value: Any) -> str:
        text = need_text(value)
        if not _IDENTIFIER.fullmatch(text):
            refuse("identifier_charset", "An identifier has ASCII letters, digits and _ . : ~ - only.")
        if len(text) > self.max_length:
            refuse("identifier_length", f"An identifier has at most {self.max_length} characters.")
        return text

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{_IDENTIFIER.pattern}$", "maxLength": self.max_length}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(value, _grouped(value))

    def parse(self, text: str) -> str:
        return text


def _grouped(text: str) -> tuple[str, ...]:
    """Long runs of digits once more in groups of four, which people can compare."""
    if not _LONG_DIGITS.search(text):
        return ()
    return ("in groups: " + _LONG_DIGITS.sub(lambda run: " ".join(re.findall(r".{1,4}", run[0])), text),)


@dataclass(frozen=True)
class ChoiceType(ArgumentType):
    """One of a few fixed words."""

    name: ClassVar[str] = "choice"
    options: tuple[str, ...]

    def normalize(self, value: Any) -> str:
        text = need_text(value)
        if text not in self.options:
            refuse("choice_unknown", "The value is none of those on offer.")
        return text

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.options)}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(display.visible(value), (f"one of {len(self.options)}",))

    def parse(self, text: str) -> str:
        return display.unveil(text)


@dataclass(frozen=True)
class IntegerType(ArgumentType):
    """A whole number within ±(2^53 − 1). 1.0 and 1 are one integer; 1.5, true and "1" are none."""

    name: ClassVar[str] = "integer"
    minimum: int = -MAX_INTEGER
    maximum: int = MAX_INTEGER

    def normalize(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            refuse("type", "An integer is needed here.")
        if isinstance(value, float) and not value.is_integer():
            refuse("number_not_integer", "An integer is needed here; nothing is rounded.")
        if not self.minimum <= value <= self.maximum:
            refuse("integer_out_of_range", f"The integer must lie between {self.minimum} and {self.maximum}.")
        return int(value)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}

    def render(self, value: int, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(f"{value:,}")

    def parse(self, text: str) -> int:
        plain = text.replace(",", "")
        if not _INTEGER.fullmatch(plain):
            raise ValueError("The text shows no integer.")
        return int(plain)


@dataclass(frozen=True)
class BooleanType(ArgumentType):
    """Yes or no; 1 and "true" are neither."""

    name: ClassVar[str] = "boolean"

    def normalize(self, value: Any) -> bool:
        if not isinstance(value, bool):
            refuse("type", "true or false is needed here.")
        return value

    def json_schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def render(self, value: bool, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered("yes" if value else "no")

    def parse(self, text: str) -> bool:
        return {"yes": True, "no": False}[text]


def decimal_text(value: Any, number_code: str) -> str:
    """A plain decimal number as a string: no sign but minus, no exponent, no grouping, no other digits."""
    if isinstance(value, int | float | Number) and not isinstance(value, bool):
        refuse(number_code, "Send this number as a string, so that its digits are exact.")
    text = need_text(value)
    if not _DECIMAL.fullmatch(text) or len(text) > 40:
        refuse("decimal_format", "A decimal number looks like 1234.50, with at most 40 characters.")
    return text


def grouped_digits(text: str) -> str:
    """The decimal with a comma at every third digit of its whole part."""
    whole, point, fraction = text.partition(".")
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    return f"{sign}{int(digits):,}{point}{fraction}"


@dataclass(frozen=True)
class DecimalType(ArgumentType):
    """An exact decimal number as a string. 1.50 and 1.5 are one number, spelled 1.5."""

    name: ClassVar[str] = "decimal"
    max_scale: int = 12

    def normalize(self, value: Any) -> str:
        text = decimal_text(value, "decimal_must_be_string")
        whole, _, fraction = text.partition(".")
        fraction = fraction.rstrip("0")
        if len(fraction) > self.max_scale:
            refuse("decimal_scale", f"The number has more than {self.max_scale} digits behind the point.")
        if not fraction:
            return "0" if whole == "-0" else whole
        return f"{whole}.{fraction}"

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{_DECIMAL.pattern}$", "maxLength": 40}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(grouped_digits(value))

    def parse(self, text: str) -> JsonValue:
        return text.replace(",", "")


Text = Annotated[str, TextType()]
Identifier = Annotated[str, IdentifierType()]
Integer = Annotated[int, IntegerType()]
Boolean = Annotated[bool, BooleanType()]
Decimal = Annotated[str, DecimalType()]
