"""From arguments to the rows of a view document: one for each value that holds no other values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from approvals.paging import MANY_ROWS, cuts_of, notes_on_list, pages_of
from approvals.viewmodels import MAIN, ViewField, ViewList, ViewRow, ViewWarning
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


@dataclass(frozen=True, slots=True)
class Material:
    """The rows of the material arguments, in the order of their declaration, and the lists too long for the page."""

    rows: tuple[Row, ...]
    lists: tuple[ViewList, ...]

    @property
    def fields(self) -> tuple[ViewField, ...]:
        return tuple(field for field, _ in self.rows)

    @property
    def warnings(self) -> tuple[ViewWarning, ...]:
        return tuple(warning for _, own in self.rows for warning in own)


def material_rows(schema: type[Arguments], arguments: Mapping[str, Any]) -> Material:
    """The rows of the material arguments, each value in the part that will hold it."""
    specs = [spec for spec in schema.specs if spec.material]
    made = _Made()
    rows = tuple(_structure_rows(specs, arguments, (), "", made))
    return Material(rows, tuple(made.lists))


class _Made:
    """What rows that are being made share: the names of parts that are taken, and the long lists found so far."""

    def __init__(self) -> None:
        self.lists: list[ViewList] = []
        self._taken: set[str] = set()

    def part(self, path: tuple[str | int, ...]) -> str:
        """A name for a part that no other has, however odd the names of arguments are. Pages add `.1`, `.2`."""
        plain = "part-" + "-".join(str(step) for step in path).replace(".", "-")
        name = plain if plain not in self._taken else f"{plain}~{len(self._taken)}"
        self._taken.add(name)
        return name


def volatile_rows(
    schema: type[Arguments], arguments: Mapping[str, Any], volatile: Mapping[str, Any]
) -> list[ViewRow]:
    """The arguments that are shown as not part of what is signed."""
    specs = [spec for spec in schema.specs if not spec.material and spec.name in volatile]
    rows = _structure_rows(specs, {**arguments, **volatile}, (), "", _Made())
    return [
        ViewRow(label=field.label, text=text_or_word(field), data_class=field.data_class) for field, _ in rows
    ]


def text_or_word(field: ViewField) -> str:
    """The shown text, or the word for why there is none: its type cannot be shown, or nothing stands in it."""
    return "cannot be shown" if field.text is None else field.text or "empty"


def _structure_rows(
    specs: list[ArgumentSpec],
    values: Mapping[str, Any],
    above: tuple[str | int, ...],
    heading: str,
    made: _Made,
) -> Iterator[Row]:
    with_money = {spec.currency for spec in specs if spec.currency and values[spec.name] not in (None, [])}
    for spec in specs:
        if spec.name not in with_money:
            place = _Place(spec, values, (*above, spec.name), f"{heading}{spec.label}")
            yield from _value_rows(place, spec.kind, values[spec.name], made)


def _value_rows(place: _Place, kind: ArgumentType, value: Any, made: _Made) -> Iterator[Row]:
    """One row for a single value; the rows of all members for a list or a structure."""
    if value is None:
        yield _row(place, kind, None, Rendered(NONE_TEXT), made)
    elif isinstance(kind, OptionalType):
        yield from _value_rows(place, kind.inner, value, made)
    elif isinstance(kind, StructureType):
        yield from _structure_rows(list(kind.model.specs), value, place.path, f"{place.label} › ", made)
    elif isinstance(kind, ListType) and value:
        rows = [
            row
            for item in _items(place, value)
            for row in _value_rows(item, kind.item, value[item.path[-1]], made)
        ]
        yield from _in_pages(place, rows, len(value), made)
    elif isinstance(kind, ListType):
        yield _row(place, kind, value, Rendered(EMPTY_LIST_TEXT), made)
    else:
        yield _row(place, kind, value, _rendered(place, kind, value), made)


def _items(place: _Place, values: list[Any]) -> Iterator[_Place]:
    for index in range(len(values)):
        label = f"{place.label} {index + 1:,} of {len(values):,}"
        yield replace(place, path=(*place.path, index), label=label)


def _in_pages(place: _Place, rows: list[Row], count: int, made: _Made) -> list[Row]:
    """The rows of a list; those of a long one are put on pages, and what is odd in many of them is said once."""
    loose = [field for field, _ in rows if not field.folded]
    if len(loose) <= MANY_ROWS:
        return rows
    base, numbers = made.part(place.path), pages_of(loose)
    on_pages = iter(
        [
            field.model_copy(update={"part": f"{base}.{number}"})
            for field, number in zip(loose, numbers, strict=True)
        ]
    )
    paged = [field if field.folded else next(on_pages) for field, _ in rows]
    long = ViewList(
        path=place.path, label=place.label, count=count, data_class=place.spec.data_class.value,
        parts=tuple(f"{base}.{number}" for number in dict.fromkeys(numbers)), notes=notes_on_list(count, loose),
    )  # fmt: skip
    made.lists.append(long)
    said = _said_once(long, [warning for _, own in rows for warning in own])
    return [(field, said if index == 0 else ()) for index, field in enumerate(paged)]


def _said_once(long: ViewList, warnings: list[ViewWarning]) -> tuple[ViewWarning, ...]:
    """One warning for each kind, with how many values it is about and the first of them by name."""
    kinds: dict[tuple[str, bool], list[ViewWarning]] = {}
    for warning in warnings:
        kinds.setdefault((warning.code, warning.acknowledge), []).append(warning)
    return tuple(
        first
        if len(alike) == 1
        else first.model_copy(
            update={
                "label": long.label, "pointer": long.pointer,
                "sentence": f"{len(alike):,} of the values, the first is {first.label}: {first.sentence}",
            }
        )
        for alike in kinds.values()
        for first in alike[:1]
    )  # fmt: skip


def _rendered(place: _Place, kind: ArgumentType, value: Any) -> Rendered | None:
    try:
        return kind.render(value, place.siblings)
    except CannotRender:
        return None


def _row(place: _Place, kind: ArgumentType, value: Any, rendered: Rendered | None, made: _Made) -> Row:
    """The row of a value; without a text where its type cannot be shown."""
    shown = rendered or Rendered("")
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
        part=made.part(place.path) if long else MAIN,
        cuts=cuts_of(shown.text) if long else (),
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
