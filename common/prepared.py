"""Statements that a worker repeats all day: bound and prepared by the server, so that it plans them once.

Django's own cursors write every value into the text of the statement, which is then read and planned anew each time.
Where a batch costs a dozen statements, that is most of their cost. For texts that never vary: whatever varies in number
is an array.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cache
from typing import Any, Final, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.backends.utils import CursorWrapper
from django.db.models.base import ModelState

from common.arrays import ArrayCursor
from common.instants import InstantLoader
from common.sealed import attach_key, key_column

Row = TypeVar("Row", bound=models.Model)
PREPARE_FROM: Final = 2
"""A statement is prepared when it comes for the third time on a connection."""


def healthy() -> Any:
    """The driver's own connection, opened anew where the server had cut it between two pieces of work, as Django's
    cursors do it.
    """
    return _healthy(connections[DEFAULT_DB_ALIAS])


def _healthy(ours: Any) -> Any:
    ours.close_if_health_check_failed()
    ours.ensure_connection()
    return ours.connection


@contextmanager
def cursor() -> Generator[CursorWrapper]:
    """A cursor of the present connection, inside whatever transaction is open."""
    # Looked up once: behind Django's name for it, each attribute is a look-up.
    ours: Any = connections[DEFAULT_DB_ALIAS]
    raw = _healthy(ours)
    if raw.prepare_threshold is None:
        raw.prepare_threshold = PREPARE_FROM
        raw.adapters.register_loader("timestamptz", InstantLoader)
    # As Django wraps its own: errors, hooks around execution, and the log of statements that tests read.
    wrap = ours.make_debug_cursor if ours.queries_logged else ours.make_cursor
    bound: Any = ArrayCursor(raw)
    with wrap(bound) as wrapped:
        yield wrapped


def fetch(sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
    with cursor() as running:
        running.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = running.fetchall()
    return rows


class Reading(Generic[Row]):
    """Rows of one model by a statement of ours: ``SELECT columns FROM table r`` and what comes after it."""

    def __init__(self, model: type[Row], rest: str, *, only: Iterable[str] = ()) -> None:
        """``only`` names the fields that are read; the others are read when somebody asks for them."""
        self.model, self.rest, self.only = model, rest, tuple(only)

    @property
    def statement(self) -> str:
        return _select(self.model, self.only)[1] + self.rest

    def rows(self, *parameters: Any) -> list[Row]:
        return self.read(fetch(self.statement, parameters))

    def read(self, rows: Iterable[tuple[Any, ...]]) -> list[Row]:
        """What the statement found, as rows of the model."""
        names, _, converters = _select(self.model, self.only)
        found = []
        for row in rows:
            values = dict(zip(names, row, strict=False))  # perhaps a key comes after them
            for name, convert in converters:
                values[name] = convert(values[name], None, connection)
            made = as_stored(self.model, values)
            if len(row) > len(names):
                attach_key(made, row[-1])
            found.append(made)
        return found


def as_stored(model: type[Row], values: dict[str, Any]) -> Row:
    """As `Model.from_db`, several times quicker: nothing of ours hooks into how a row is made from its columns."""
    made = model.__new__(model)
    state = ModelState()
    state.adding, state.db = False, DEFAULT_DB_ALIAS
    made.__dict__ = {"_state": state, **values}
    return made


def insert(
    row: models.Model, *, or_nothing: bool = False, found: Mapping[str, tuple[str, Any]] | None = None
) -> bool:
    """Insert a new row whole. With ``or_nothing`` it answers False, and raises nothing, where a unique index forbids.

    ``found`` gives columns that the statement looks up itself: a sub-select of ours, and its parameters. The row in
    memory does not know what was found.
    """
    found = found or {}
    places: list[str] = []
    values: list[Any] = []
    for field in row._meta.concrete_fields:
        text, parameters = found.get(str(field.column)) or ("%s", [_value_of(row, field, add=True)])
        places.append(text)
        values += parameters
    sql = _insert(type(row), tuple(places)) + (" ON CONFLICT DO NOTHING" if or_nothing else "")
    with cursor() as running:
        running.execute(sql, values)
        inserted = bool(running.rowcount)
    row._state.adding, row._state.db = not inserted, "default"  # noqa: SLF001 - as Django's own `save`
    return inserted


def insert_all(rows: Sequence[Row]) -> list[Row]:
    """Insert these new rows of one model with one statement, one after the other as far as unique indexes go."""
    if not rows:
        return []
    fields = rows[0]._meta.concrete_fields
    places = tuple("%s" for _ in fields)
    more = f", ({', '.join(places)})" * (len(rows) - 1)
    with cursor() as running:
        values = [_value_of(row, field, add=True) for row in rows for field in fields]
        running.execute(_insert(type(rows[0]), places) + more, values)
    for row in rows:
        row._state.adding, row._state.db = False, "default"  # noqa: SLF001 - as Django's own `save`
    return list(rows)


def update(row: models.Model, names: Sequence[str] = ()) -> None:
    """Save these fields of a row that is there, or all of them. For rows that this transaction has locked."""
    fields = _fields(type(row), tuple(names))
    values = [_value_of(row, field, add=False) for field in fields]
    with cursor() as running:
        running.execute(_update(type(row), tuple(names)), [*values, row.pk])
        assert running.rowcount == 1, "an update that matched no row"


def _value_of(row: models.Model, field: Any, *, add: bool) -> Any:
    value = field.get_db_prep_save(field.pre_save(row, add=add), connection)
    return value.value if isinstance(value, Enum) else value


@cache
def _insert(model: type[models.Model], places: tuple[str, ...]) -> str:
    columns = ", ".join(str(field.column) for field in model._meta.concrete_fields)
    return f"INSERT INTO {model._meta.db_table} ({columns}) VALUES ({', '.join(places)})"  # noqa: S608 - as below


@cache
def _fields(model: type[models.Model], names: tuple[str, ...]) -> list[Any]:
    if names:
        return [model._meta.get_field(name) for name in names]
    return [field for field in model._meta.concrete_fields if not field.primary_key]


@cache
def _update(model: type[models.Model], names: tuple[str, ...]) -> str:
    settings = ", ".join(f"{field.column} = %s" for field in _fields(model, names))
    return f"UPDATE {model._meta.db_table} SET {settings} WHERE id = %s"  # noqa: S608 - as below


Converter = tuple[str, Callable[..., Any]]


@cache
def _select(model: type[models.Model], only: tuple[str, ...]) -> tuple[list[str], str, list[Converter]]:
    """Names, statement and converters; the primary key always comes along, and names come in the model's order."""
    fields = [f for f in model._meta.concrete_fields if not only or f.primary_key or f.attname in only]
    columns = ", ".join(f"r.{field.column}" for field in fields)
    converters = [(field.attname, field.from_db_value) for field in fields if hasattr(field, "from_db_value")]
    columns += key_column(model, fields)  # what is sealed comes with its key
    start = f"SELECT {columns} FROM {model._meta.db_table} r "  # noqa: S608 - names of our own columns
    return [field.attname for field in fields], start, converters
