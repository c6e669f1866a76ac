"""Columns whose content lies encrypted in the database: sealed when a row is saved, opened when somebody reads it.

A row names the run that its content belongs to, and so the key. AES-256-GCM; tenant, table, column and row are
authenticated, so ciphertext moved elsewhere does not open. Rows that come in numbers get their keys by `prefetch_keys`;
`common.prepared.Reading` brings them along in the statement that reads the rows.

What was stored before columns were sealed is plain, and is read as it is. Empty texts and lists stay empty.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, ClassVar, Final
from uuid import UUID

from django.db import models
from django.db.models.query_utils import DeferredAttribute

from common import content_keys
from common.content_errors import DAMAGED_TEXT, ERASED_TEXT, LOCKED_TEXT, ContentErased
from common.content_key_rows import found, found_many, made, raw
from common.content_keys import KeyUnknown, RunKey, SealBroken
from common.tx import memo

MARK: Final = b"\x00placet-sealed.1\x00"
"""What sealed bytes begin with, and nothing that was stored before."""
_TEXT: Final = "placet-sealed.1:"
_KEY: Final = "_content_key"
_SHUT: Final = object()


class Cell:
    """One sealed value of one row: as it is stored, and once somebody has read it also plain."""

    __slots__ = ("plain", "stored")

    def __init__(self, *, plain: Any = _SHUT, stored: Any = _SHUT) -> None:
        self.plain, self.stored = plain, stored

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Cell) and self.stored is not _SHUT and self.stored == other.stored
        )

    __hash__ = None  # type: ignore[assignment]


class SealedAttribute(DeferredAttribute):
    """Reads plain values; keeps cells."""

    def __get__(self, row: Any, owner: Any = None) -> Any:
        if row is None:
            return self
        cell = super().__get__(row, owner)
        if not isinstance(cell, Cell):
            return cell
        if cell.plain is _SHUT:
            field: Any = self.field
            cell.plain = field.opened(row, cell.stored)
        return cell.plain

    def __set__(self, row: Any, value: Any) -> None:
        kept = value is None or isinstance(value, Cell)
        row.__dict__[self.field.attname] = value if kept else Cell(plain=value)


class Ready:
    """A value as it goes into the column. Anything else is refused: it would pass the seal by."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _Sealed(models.Field):  # type: ignore[type-arg]
    descriptor_class = SealedAttribute

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return None if value is None else Cell(stored=value)

    def pre_save(self, model_instance: Any, add: bool) -> Any:
        if self.attname not in model_instance.__dict__:  # it was reloaded, and nobody has read this since
            model_instance.refresh_from_db(fields=[self.attname])
        cell = model_instance.__dict__[self.attname]
        if not isinstance(cell, Cell):
            return cell
        if cell.stored is _SHUT:
            cell.stored = self.sealed(model_instance, cell.plain)
        return Ready(cell.stored)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if isinstance(value, Ready):
            return value.value
        if value is None or value == "":
            return value
        raise TypeError(f"{self} is sealed: save it with its row.")

    def opened(self, row: SealedRow, stored: Any) -> Any:
        """For whoever shows it: what cannot be read is said in its place, where the column can hold that."""
        raise NotImplementedError

    def intact(self, row: SealedRow, stored: Any) -> Any:
        """For whoever acts on it. Raises ContentErased, SealBroken, KeyUnknown."""
        raise NotImplementedError

    def sealed(self, row: SealedRow, plain: Any) -> Any:
        raise NotImplementedError

    def is_plain(self, stored: Any) -> bool:
        """Whether this was stored before the column was sealed."""
        raise NotImplementedError

    def where_plain(self) -> str:
        """The same in SQL."""
        raise NotImplementedError

    def none(self) -> Any:
        """As stored: sealed, and nothing that a key could open."""
        raise NotImplementedError

    def _encrypted(self, row: SealedRow, plain: bytes) -> bytes:
        """Under a key that is damaged, what is sealed reads as damaged from the start: the work goes on without it."""
        try:
            return content_keys.encrypt(key_for(row).cipher, _place(row, self), plain)
        except SealBroken:
            return b""

    def _decrypted(self, row: SealedRow, sealed: bytes) -> bytes:
        """Raises ContentErased, SealBroken, KeyUnknown."""
        key = key_of(row)
        if key is None or key.erased:
            raise ContentErased
        return content_keys.decrypt(key.cipher, _place(row, self), sealed)


class SealedBytes(_Sealed, models.BinaryField):  # type: ignore[type-arg]
    """Bytes. Reading those that do not open raises; erased ones of a column that may be NULL are None."""

    def opened(self, row: SealedRow, stored: Any) -> bytes | None:
        try:
            return self.intact(row, stored)
        except ContentErased:
            if self.null:
                return None
            raise

    def intact(self, row: SealedRow, stored: Any) -> bytes:
        raw = bytes(stored)
        return raw if self.is_plain(raw) else self._decrypted(row, raw[len(MARK) :])

    def sealed(self, row: SealedRow, plain: Any) -> bytes:
        return MARK + self._encrypted(row, bytes(plain))

    def is_plain(self, stored: Any) -> bool:
        return not bytes(stored).startswith(MARK)

    def where_plain(self) -> str:
        return f"substr({self.column}, 1, {len(MARK)}) <> '\\x{MARK.hex()}'"

    def none(self) -> bytes:
        return MARK


class SealedText(_Sealed, models.TextField):  # type: ignore[type-arg]
    """A text. One that does not open reads as one of `UNREAD_TEXTS`."""

    def opened(self, row: SealedRow, stored: Any) -> str:
        try:
            return self.intact(row, stored)
        except ContentErased:
            return ERASED_TEXT
        except SealBroken:
            return DAMAGED_TEXT
        except KeyUnknown:
            return LOCKED_TEXT

    def intact(self, row: SealedRow, stored: Any) -> str:
        return str(stored) if self.is_plain(stored) else self._decrypted(row, _bytes_of(stored)).decode()

    def sealed(self, row: SealedRow, plain: Any) -> str:
        return _text_of(self._encrypted(row, str(plain).encode())) if plain else ""

    def is_plain(self, stored: Any) -> bool:
        return not stored.startswith(_TEXT)

    def where_plain(self) -> str:
        return f"{self.column} <> '' AND NOT starts_with({self.column}, '{_TEXT}')"

    def none(self) -> str:
        return _TEXT


class SealedJson(_Sealed, models.JSONField):
    """A JSON value, such as a list. One that does not open is an empty one."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return super().from_db_value(
            models.JSONField.from_db_value(self, value, expression, connection), None, None
        )

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        ready = super().get_db_prep_value(value, connection, prepared)
        return models.JSONField.get_db_prep_value(self, ready, connection, prepared)

    def get_db_prep_save(self, value: Any, connection: Any) -> Any:
        return None if value is None else self.get_db_prep_value(value, connection)

    def opened(self, row: SealedRow, stored: Any) -> Any:
        try:
            return self.intact(row, stored)
        except (ContentErased, SealBroken, KeyUnknown):
            return self.get_default()

    def intact(self, row: SealedRow, stored: Any) -> Any:
        return stored if self.is_plain(stored) else json.loads(self._decrypted(row, _bytes_of(stored)))

    def sealed(self, row: SealedRow, plain: Any) -> Any:
        return _text_of(self._encrypted(row, json.dumps(plain).encode())) if plain else plain

    def is_plain(self, stored: Any) -> bool:
        return not (isinstance(stored, str) and stored.startswith(_TEXT))

    def where_plain(self) -> str:
        empty = """('null', '[]', '{}', '""')"""
        sealed = f"starts_with({self.column} #>> '{{}}', '{_TEXT}')"
        return f"{self.column} NOT IN {empty} AND NOT {sealed}"

    def none(self) -> str:
        return _TEXT


def _text_of(sealed: bytes) -> str:
    return _TEXT + b64encode(sealed).decode()


def _bytes_of(stored: str) -> bytes:
    try:
        return b64decode(stored[len(_TEXT) :], validate=True)
    except ValueError:
        raise SealBroken from None


def _place(row: SealedRow, field: models.Field) -> bytes:  # type: ignore[type-arg]
    meta = row._meta
    return f"{row.tenant_id}|{meta.db_table}.{field.column}|{row.pk}".encode()  # type: ignore[attr-defined]


class SealedRow(models.Model):
    """Mixin of rows with sealed columns. Stands before other mixins."""

    content_run: ClassVar[str] = "run_id"
    """The attribute with the run's id; with a dot, that of a row that this one belongs to, whose key is taken."""

    class Meta:
        abstract = True

    def refresh_from_db(
        self, using: str | None = None, fields: Iterable[str] | None = None, from_queryset: Any = None
    ) -> None:
        """Cells are read again as they are stored: opened and sealed anew, they would be other bytes."""
        sealed = sealed_names(type(self))
        self.__dict__.pop(_KEY, None)
        wanted = sealed if fields is None else tuple(name for name in fields if name in sealed)
        if fields is None:
            for name in sealed:
                self.__dict__.pop(name, None)
        elif wanted:
            rows: Any = type(self)._base_manager.using(using)  # noqa: SLF001 - as Django's own reload
            values = rows.filter(pk=self.pk).values_list(*wanted).get()
            self.__dict__.update(zip(wanted, values, strict=True))
        rest = None if fields is None else [name for name in fields if name not in sealed]
        if rest is None or rest:
            super().refresh_from_db(using=using, fields=rest, from_queryset=from_queryset)


@cache
def sealed_names(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in model._meta.concrete_fields if isinstance(field, _Sealed))


def sealed_models() -> list[type[SealedRow]]:
    """All models with sealed columns, for tests and documents."""
    found, todo = [], SealedRow.__subclasses__()
    while todo:
        model = todo.pop()
        todo.extend(model.__subclasses__())
        if not model._meta.abstract:
            found.append(model)
    return sorted(found, key=lambda model: model._meta.label)


# -- keys ---------------------------------------------------------------------------------------------------------


def key_of(row: SealedRow) -> RunKey | None:
    """The key of the row's run, read once; None where its run has none, because all it has is from before."""
    owner, run_id = _owner(row)
    if _KEY not in owner.__dict__:
        owner.__dict__[_KEY] = found(owner.tenant_id, run_id)  # type: ignore[attr-defined]
    key: RunKey | None = owner.__dict__[_KEY]
    return key


def key_for(row: SealedRow) -> RunKey:
    """The key to seal with; made where the run has none yet. Raises ContentErased where it was destroyed."""
    key = key_of(row)
    if key is None:
        owner, run_id = _owner(row)
        key = owner.__dict__[_KEY] = made(owner.tenant_id, run_id)  # type: ignore[attr-defined]
    if key.erased:
        raise ContentErased
    return key


def prefetch_keys(rows: Sequence[SealedRow]) -> None:
    """Read the keys of all these rows with one statement."""
    owners = [_owner(row) for row in rows]
    missing = [(owner, run_id) for owner, run_id in owners if _KEY not in owner.__dict__]
    if not missing:
        return
    keys = found_many({(owner.tenant_id, run_id) for owner, run_id in missing})  # type: ignore[attr-defined]
    for owner, run_id in missing:
        owner.__dict__[_KEY] = keys.get((owner.tenant_id, run_id))  # type: ignore[attr-defined]


def readable(row: SealedRow, name: str) -> bytes | None:
    """The bytes of a sealed column; None where they were erased or are not what was sealed. For checks that refuse."""
    try:
        value: bytes | None = getattr(row, name)
    except (ContentErased, SealBroken):
        return None
    return value


def check_intact(row: SealedRow, *names: str) -> None:
    """For whoever acts on these columns, and does not only show them. Raises ContentErased, SealBroken, KeyUnknown."""
    for name in names:
        if name not in row.__dict__:
            row.refresh_from_db(fields=[name])
        cell, field = row.__dict__[name], row._meta.get_field(name)
        if isinstance(cell, Cell) and cell.stored is not _SHUT:
            field.intact(row, cell.stored)  # type: ignore[union-attr]


def is_erased(row: SealedRow) -> bool:
    """Whether the content of the row's run was erased."""
    key = key_of(row)
    return key is not None and key.erased


def _owner(row: SealedRow) -> tuple[SealedRow, UUID]:
    *way, name = row.content_run.split(".")
    for step in way:
        row = getattr(row, step)
    return row, getattr(row, name)


# -- for statements of ours -----------------------------------------------------------------------------------------


def key_column(model: type[models.Model], fields: Iterable[Any]) -> str:
    """The column that brings a row's key along, for a SELECT of ``r``; empty where no sealed column is read, or where
    another row has the key.
    """
    run = getattr(model, "content_run", ".")
    if "." in run or not any(isinstance(field, _Sealed) for field in fields):
        return ""
    return (
        ", (SELECT ARRAY[k.wrapped] FROM common_contentkey k"  # noqa: S608 - our own columns
        f" WHERE k.tenant_id = r.tenant_id AND k.run_id = r.{'id' if run == 'pk' else run})"
    )


def attach_key(row: Any, column: list[Any] | None) -> None:
    """Give a row what `key_column` found: an array of one, so that a destroyed key differs from none."""
    run_id = _owner(row)[1]
    key = None if column is None else RunKey(row.tenant_id, run_id, raw(column[0]))
    row.__dict__[_KEY] = key
    known = memo()
    if known is not None and key is not None:
        known[row.tenant_id, run_id] = key
