"""From arguments to the rows of a view document: one for each value that holds no other values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from approvals.viewmodels import MAIN, ViewField, ViewRow, ViewWarning
from common.display import LONG_TEXT, MANY_LINES, line_count
from common.fields import (
    EMPTY_LIST_TEXT,
    NONE_TEXT,
    Arguments,
    ArgumentSpec,
    ArgumentType,
    CannotRender,
    ListType,
    OptionalType,
    Rendered,
    StructureType,
)

Row = tuple[ViewField, tuple[ViewWarning, ...]]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands, what it is called, and what stands beside it."""

    spec: ArgumentSpec
    beside: Mapping[str, Any]
    path: tuple[str | int, ...]
    label: str

    @property
    def siblings(self) -> dict[str, Any]:
        """What a type needs to know to render: a money's currency."""
        return {"currency": self.beside[self.spec.currency]} if self.spec.currency else {}


def material_rows(schema: type[Arguments], arguments: Mapping[str, Any]) -> list[Row]:
    """The rows of the material arguments, in the order of their declaration."""
    specs = [spec for spec in schema.specs if spec.material]
    return list(_structure_rows(specs, arguments, (), ""))


def volatile_rows(
    schema: type[Arguments], arguments: Mapping[str, Any], volatile: Mapping[str, Any]
) -> list[ViewRow]:
    """The arguments that are shown as not part of what is signed."""
    specs = [spec for spec in schema.specs if not spec.material and spec.name in volatile]
    rows = _structure_rows(specs, {**arguments, **volatile}, (), "")
    return [
        ViewRow(label=field.label, text=text_or_word(field), data_class=field.data_class) for field, _ in rows
    ]


def text_or_word(field: ViewField) -> str:
    """The shown text, or the word for why there is none: its type cannot be shown, or nothing stands in it."""
    return "cannot be shown" if field.text is None else field.text or "empty"


def _structure_rows(
    specs: list[ArgumentSpec], values: Mapping[str, Any], above: tuple[str | int, ...], heading: str
) -> Iterator[Row]:
    with_money = {spec.currency for spec in specs if spec.currency and values[spec.name] not in (None, [])}
    for spec in specs:
        if spec.name not in with_money:
            place = _Place(spec, values, (*above, spec.name), f"{heading}{spec.label}")
            yield from _value_rows(place, spec.kind, values[spec.name])


def _value_rows(place: _Place, kind: ArgumentType, value: Any) -> Iterator[Row]:
    """One row for a single value; the rows of all members for a list or a structure."""
    if value is None:
        yield _row(place, kind, None, Rendered(NONE_TEXT))
    elif isinstance(kind, OptionalType):
        yield from _value_rows(place, kind.inner, value)
    elif isinstance(kind, StructureType):
        yield from _structure_rows(list(kind.model.specs), value, place.path, f"{place.label} › ")
    elif isinstance(kind, ListType) and value:
        for index, item in enumerate(value):
            label = f"{place.label} {index + 1} of {len(value)}"
            yield from _value_rows(replace(place, path=(*place.path, index), label=label), kind.item, item)
    elif isinstance(kind, ListType):
        yield _row(place, kind, value, Rendered(EMPTY_LIST_TEXT))
    else:
        yield _row(place, kind, value, _rendered(place, kind, value))


def _rendered(place: _Place, kind: ArgumentType, value: Any) -> Rendered | None:
    try:
        return kind.render(value, place.siblings)
    except CannotRender:
        return None


def _row(place: _Place, kind: ArgumentType, value: Any, rendered: Rendered | None) -> Row:
    """The row of a value; without a text where its type cannot be shown."""
    shown = rendered or Rendered("")
    identity = "-".join(str(step) for step in place.path)
    long = line_count(shown.text) > MANY_LINES or len(shown.text) > LONG_TEXT
    field = ViewField(
        path=place.path,
        label=place.label,
        type=kind.name,
        data_class=place.spec.data_class.value,
        text=None if rendered is None else shown.text,
        sub=shown.sub,
        covers=(place.spec.currency,) if place.spec.currency and value not in (None, []) else (),
        strong=shown.strong,
        instant=shown.instant,
        part=f"part-{identity}" if long else MAIN,
        lines=line_count(shown.text),
        characters=len(value) if isinstance(value, str) else len(shown.text),
    )
    return field, tuple(_warnings(field, shown))


def _warnings(field: ViewField, shown: Rendered) -> Iterator[ViewWarning]:
    for flag in shown.flags:
        yield ViewWarning(
            code=flag.code,
            pointer=field.pointer,
            label=field.label,
            sentence=flag.sentence,
            acknowledge=flag.acknowledge,
        )
