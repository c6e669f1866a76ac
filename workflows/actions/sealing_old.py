"""Seal what was stored before contents were sealed: a batch at a time, as the owner of the tables.

The columns are bound: no role that serves can change one, and neither can the owner while their walls stand. So each
batch is one transaction in which the owner takes down the triggers of one table, writes the same content sealed, and
puts them up again; nobody else writes to that table meanwhile, and a crash undoes it all. Digests are taken over the
plain bytes, so every digest, receipt and event says what it said. Of a run that was erased nothing is sealed: what was
left of it in clear is removed.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from django.db import connections, transaction

from audit.actions import record
from audit.actors import Actor
from common.sealed import (
    Cell,
    Ready,
    SealedRow,
    is_erased,
    key_for,
    key_of,
    prefetch_keys,
    sealed_models,
    sealed_names,
)
from common.tx import action

OWNER: Final = "owner"
BATCH: Final = 200


class OwnerNeeded(RuntimeError):
    """This needs the owner of the tables: set DATABASE_OWNER_URL, as for the migrations."""


def seal_old(*, by: Actor, batch: int = BATCH) -> int:
    """Seal every plain value of every sealed column; returns how many rows were changed. Again: none is left.

    Raises OwnerNeeded, and KeyUnknown where a run's key cannot be opened; what was done until then stays done.
    """
    if OWNER not in connections:
        raise OwnerNeeded(OwnerNeeded.__doc__)
    total = 0
    for model in sealed_models():
        for ids in _plain(model, batch):
            _make_keys(model, ids)
            tenants = Counter(_seal(model, ids))
            total += tenants.total()
            _note(model._meta.db_table, tenants, by=by)
    return total


@action
def _note(table: str, tenants: Counter[UUID], *, by: Actor) -> None:
    for tenant_id, count in tenants.items():
        record(
            by=by, kind="tenant.contents_sealed", tenant_id=tenant_id, subject_type="tenant", subject_id=tenant_id,
            body={"table": table, "rows": count},
        )  # fmt: skip


def _plain(model: type[SealedRow], batch: int) -> Iterator[list[UUID]]:
    """Ids of rows with something in clear. By primary key, so that each is looked at once, whatever becomes of it."""
    table, after = model._meta.db_table, UUID(int=0)
    query = f"SELECT id FROM {table} WHERE id > %s AND ({_where(model)}) ORDER BY id LIMIT %s"  # noqa: S608
    while True:
        with connections[OWNER].cursor() as cursor:
            cursor.execute(query, [after, batch])
            ids = [id_ for (id_,) in cursor.fetchall()]
        if not ids:
            return
        yield ids
        after = ids[-1]


def _make_keys(model: type[SealedRow], ids: Sequence[UUID]) -> None:
    """Committed before anything is sealed under them. One that was destroyed stays so."""
    for row in _rows(model, "default", ids):
        if key_of(row) is None:
            key_for(row)


def _rows(model: type[SealedRow], alias: str, ids: Sequence[UUID]) -> list[Any]:
    rows: Any = model._base_manager.using(alias).filter(pk__in=ids)  # noqa: SLF001 - all rows, as Django itself reads them
    *way, _ = model.content_run.split(".")
    found = list(rows.select_related("__".join(way)) if way else rows)
    prefetch_keys(found)
    return found


def _seal(model: type[SealedRow], ids: Sequence[UUID]) -> list[UUID]:
    """Returns the tenant of each row that was changed."""
    table, changed = model._meta.db_table, []
    with transaction.atomic(using=OWNER), connections[OWNER].cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        for row in _rows(model, OWNER, ids):
            columns = _anew(row)
            if columns:
                sets = ", ".join(f"{column} = %s" for column in columns)
                cursor.execute(f"UPDATE {table} SET {sets} WHERE id = %s", [*columns.values(), row.pk])  # noqa: S608
                changed.append(row.tenant_id)
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    return changed


def _fields(model: type[SealedRow]) -> list[Any]:
    return [model._meta.get_field(name) for name in sealed_names(model)]


def _where(model: type[SealedRow]) -> str:
    return " OR ".join(f"({field.where_plain()})" for field in _fields(model))


def _anew(row: SealedRow) -> dict[str, Any]:
    """What the row has in clear, as it is to be stored: by column. Of an erased run nothing is kept."""
    found = {}
    for field in _fields(type(row)):
        cell = row.__dict__[field.attname]
        if isinstance(cell, Cell) and cell.stored and field.is_plain(cell.stored):
            stored = field.none() if is_erased(row) else field.sealed(row, field.intact(row, cell.stored))
            found[field.column] = field.get_db_prep_save(Ready(stored), connections[OWNER])
    return found
