"""Lists of arguments, optional arguments, and types that nobody can show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from common.fields.base import NONE_TEXT, ArgumentType, CannotRender, Rendered
from common.strictjson import JsonValue


@dataclass(frozen=True)
class OptionalType(ArgumentType):
    """A value or null. Null is a value of its own: it is bound, and shown as "none"."""

    name: ClassVar[str] = "optional"
    inner: ArgumentType

    def render(self, value: Any, siblings: Mapping[str, Any]) -> Rendered:
        return Rendered(NONE_TEXT) if value is None else self.inner.render(value, siblings)

    def parse(self, text: str) -> JsonValue:
        return None if text == NONE_TEXT else self.inner.parse(text)


@dataclass(frozen=True)
class ListType(ArgumentType):
    """Several values of one type; the page shows each as a row of its own."""

    name: ClassVar[str] = "list"
    item: ArgumentType


@dataclass(frozen=True)
class StructureType(ArgumentType):
    """Arguments inside arguments; the page shows each member as a row of its own."""

    name: ClassVar[str] = "structure"
    model: Any
    """A subclass of Arguments (named loosely, because that module builds on this one)."""


@dataclass(frozen=True)
class UnknownType(ArgumentType):
    """A type without a faithful text. What holds one can be proposed, and never approved."""

    name: ClassVar[str] = "unknown"

    def render(self, value: Any, siblings: Mapping[str, Any]) -> Rendered:
        raise CannotRender
