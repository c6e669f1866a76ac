"""Rows that were moved in memory, by their own transitions, and are saved with one statement per table."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from django.db import connection, models

from common import prepared
from common.fsm import sources_of
from common.pipelined import pipeline
from common.sealed import sealed_names
from common.tx import flush, require_transaction

Row = TypeVar("Row", bound=models.Model)
Values = dict[str, Any]
_sources_of = cache(sources_of)


class RowsChanged(RuntimeError):
    """Fewer rows were updated than were locked and moved: nothing of this batch is stored."""


@dataclass(frozen=True, slots=True)
class _Statement:
    sql: str
    parameters: list[Any]
    table: str
    rows: int
    """How many it must have written."""


class Kept(Generic[Row]):
    """Locked rows as they were when they were read, so that what their transitions changed can be saved."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)
        self._before = [row.__dict__.copy() for row in self.rows]

    def save(self) -> None:
        """As `save_together`, of these alone."""
        save_together(self)

    def update(self) -> _Statement | None:
        """What changed, in the rows that changed; None, if none did.

        A row counts while its state is the one that it had here, and the declaration allows the move from that one.
        """
        both = zip(self.rows, self._before, strict=True)
        changed = [(row, old) for row, old in both if row.__dict__ != old]
        names = _changed_names(changed)
        if not names:
            return None
        rows, model = [row for row, _ in changed], type(changed[0][0])
        states = [_state_before(row, old) for row, old in changed]
        parameters = [[row.pk for row in rows], states, *(_column(rows, name) for name in names)]
        return _Statement(_update(model, names), parameters, model._meta.db_table, len(rows))


def save_together(*kept: Kept[Any], new: Sequence[models.Model] = ()) -> None:
    """Save what changed in all of these, the ``new`` rows (of one model), and what else the action has gathered.

    Raises RowsChanged unless every row counts, which undoes the transaction.
    """
    require_transaction()
    statements = [statement for one in kept if (statement := one.update()) is not None]
    if new:
        statements.insert(0, _inserting(new))
    with ExitStack() as stack:
        running = [stack.enter_context(prepared.cursor()) for _ in statements]
        with pipeline():
            for cursor, statement in zip(running, statements, strict=True):
                cursor.execute(statement.sql, statement.parameters)
            flush()
        for cursor, statement in zip(running, statements, strict=True):
            if cursor.rowcount != statement.rows:
                raise RowsChanged(f"{cursor.rowcount} of {statement.rows} {statement.table}")


_NOT_READ: Final = object()


def _changed_names(changed: Sequence[tuple[models.Model, Values]]) -> tuple[str, ...]:
    """In the model's order, so that the same changes are the same statement."""
    differ: set[str] = set()
    for row, old in changed:
        differ.update([
            name for name, value in row.__dict__.items()
            if (before := old.get(name, _NOT_READ)) is not value and before != value
        ])  # fmt: skip
    return tuple(name for name in _names(type(changed[0][0])) if name in differ) if differ else ()


def _state_before(row: models.Model, old: Values) -> str:
    before, after = str(old["status"]), row.__dict__["status"]
    if before != after and before not in _sources_of(type(row), after):
        raise RowsChanged(f"{type(row).__name__} does not move from {before} to {after}")
    return before


_AS_IT_IS: Final = {UUID, datetime, str, int, bool, bytes, type(None)}
"""What the driver takes as it stands in the row. Their own fields make something else of dictionaries and lists."""


def _column(rows: Sequence[models.Model], name: str) -> list[Any]:
    field = _field(type(rows[0]), name)
    if name in sealed_names(type(rows[0])):
        return [field.get_db_prep_save(field.pre_save(row, add=False), connection) for row in rows]
    if isinstance(field, models.JSONField):
        return [field.get_db_prep_save(row.__dict__[name], connection) for row in rows]
    return [_value(field, row.__dict__[name]) for row in rows]


def _value(field: Any, value: Any) -> Any:
    if type(value) in _AS_IT_IS:
        return value
    made = field.get_db_prep_save(value, connection)
    # The members of our enums are texts to Django, and things of their own to the driver.
    return str(made) if isinstance(made, Enum) else made


@cache
def _names(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in model._meta.concrete_fields)


@cache
def _update(model: type[models.Model], names: tuple[str, ...]) -> str:
    fields = [_field(model, name) for name in names]
    changes = ", ".join(f"{field.column} = t.new_{field.column}" for field in fields)
    values = ", ".join(f"%s::{_array_type(field)}" for field in fields)
    columns = ", ".join(f"new_{field.column}" for field in fields)
    rows = f"unnest(%s::uuid[], %s::text[], {values}) AS t(id, status, {columns})"
    update = f"UPDATE {model._meta.db_table} r SET {changes} FROM {rows}"  # noqa: S608 - our own columns
    return f"{update} WHERE r.id = t.id AND r.status = t.status"


def _inserting(rows: Sequence[models.Model]) -> _Statement:
    model = type(rows[0])
    columns = [_column(rows, name) for name in _names(model)]
    return _Statement(_insert(model), columns, model._meta.db_table, len(rows))


@cache
def _insert(model: type[models.Model]) -> str:
    fields = model._meta.concrete_fields
    columns = ", ".join(str(field.column) for field in fields)
    values = ", ".join(f"%s::{_array_type(field)}" for field in fields)
    return f"INSERT INTO {model._meta.db_table} ({columns}) SELECT * FROM unnest({values})"  # noqa: S608


@cache
def _field(model: type[models.Model], attname: str) -> Any:
    return next(field for field in model._meta.concrete_fields if field.attname == attname)


def _array_type(field: Any) -> str:
    """Texts without their length: a cast to it would cut them silently, where the assignment to the column refuses."""
    type_ = field.db_type(connection)
    return "text[]" if type_.startswith("varchar") else f"{type_}[]"
