"""What every type of argument can do, and how an argument is declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, NoReturn

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from common.display import Flag
from common.strictjson import JsonValue

NONE_TEXT = "⟦none⟧"
EMPTY_LIST_TEXT = "⟦empty list⟧"
"""Texts for values that have none. No value can imitate them: `visible` escapes the brackets."""


class DataClass(StrEnum):
    """Who may see a value beside the reviewer. Packets, mails and exports show the first two."""

    PUBLIC = "public"
    BUSINESS = "business"
    PERSONAL = "personal"
    SECRET = "secret"  # noqa: S105 - the name of a class of data


@dataclass(frozen=True, slots=True)
class Rendered:
    """One value as the page shows it.

    `text` can be read back by the type's `parse`. `sub` are explanations beside it. `strong` is the half-open
    range of `text` to print bold, such as a host. `instant` is there for local times and distances, which are
    decoration made by the page.
    """

    text: str
    sub: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    strong: tuple[int, int] | None = None
    instant: str | None = None


class CannotRender(Exception):
    """The type has no faithful text, so nobody can approve what holds it."""


class ArgumentType:
    """A type of argument: normalizes (refusing, never repairing), has a schema, renders, parses back."""

    name: ClassVar[str]
    display_version: ClassVar[int] = 1
    """Raised whenever `render` changes; it is part of an operation's content hash."""

    def normalize(self, value: Any) -> JsonValue:
        """The one spelling of the value, or a refusal through `refuse`."""
        raise NotImplementedError

    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of what `normalize` may accept."""
        raise NotImplementedError

    def render(self, value: Any, siblings: Mapping[str, Any]) -> Rendered:
        """What the page shows for a normalized value; `siblings` holds a money's `currency`."""
        raise NotImplementedError

    def parse(self, text: str) -> JsonValue:
        """The normalized value that `render` showed as this text."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.normalize)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**self.json_schema(), "x-placet-type": self.name}


def refuse(code: str, message: str) -> NoReturn:
    """Refuse a value with a stable code. The message never quotes the value: it may be personal."""
    raise PydanticCustomError(code, "{message}", {"message": message})


def need_text(value: Any, code: str = "type") -> str:
    """The value, if it is a string."""
    if not isinstance(value, str):
        refuse(code, "A string is needed here.")
    return value


def arg(
    default: Any = ...,
    *,
    label: str,
    data_class: str,
    material: bool = True,
    currency: str | None = None,
    description: str = "",
    alias: str | None = None,
) -> Any:
    """Declare one argument of an operation.

    `material` arguments are bound by the approval and reach the provider; the others do neither. `currency`
    names the field with a money's currency; it may be left out where there is only one. `alias` is the name
    outside Python where that cannot be an attribute's name.
    """
    extra: dict[str, Any] = {
        "x-placet-label": label,
        "x-placet-data-class": DataClass(data_class).value,
        "x-placet-material": material,
    }
    if currency:
        extra["x-placet-currency"] = currency
    return Field(default, title=label, description=description or None, alias=alias, json_schema_extra=extra)


@dataclass(frozen=True, slots=True)
class ArgumentSpec:
    """One declared argument, resolved. `name` is its name in JSON, `attribute` in Python."""

    name: str
    attribute: str
    label: str
    data_class: DataClass
    material: bool
    kind: ArgumentType = field(repr=False)
    currency: str | None = None
