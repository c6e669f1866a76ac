"""How the tests break a wall: in three ways, as the application role, and by its name."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection
from django.db.models import Model

from common.sealed import Ready, sealed_names

Way = Callable[[Model, dict[str, Any]], object]


@contextmanager
def refused_by(name: str) -> Generator[None]:
    """The database refuses, and says which constraint or trigger it was."""
    with pytest.raises(DatabaseError) as caught:
        yield
    diagnostics = getattr(caught.value.__cause__, "diag", None)
    assert diagnostics is not None, caught.value
    assert diagnostics.constraint_name == name, f"refused by {diagnostics.constraint_name}: {caught.value}"


def _ready(row: Model, changes: dict[str, Any]) -> dict[str, Any]:
    """Values of sealed columns as they would be stored: the application itself would not let plain ones through."""
    sealed = sealed_names(type(row))
    return {name: Ready(value) if name in sealed else value for name, value in changes.items()}


def by_update(row: Model, changes: dict[str, Any]) -> object:
    return type(row)._default_manager.filter(pk=row.pk).update(**_ready(row, changes))


def by_bulk_update(row: Model, changes: dict[str, Any]) -> object:
    """Past the state machine: the value goes into the instance behind its back."""
    copy = type(row)._default_manager.get(pk=row.pk)
    for name, value in _ready(row, changes).items():
        field = type(row)._meta.get_field(name)
        copy.__dict__[field.attname] = value.pk if isinstance(value, Model) else value
    return type(row)._default_manager.bulk_update([copy], list(changes))


def by_sql(row: Model, changes: dict[str, Any]) -> object:
    sets, values = [], []
    for name, value in _ready(row, changes).items():
        field = type(row)._meta.get_field(name)
        sets.append(f'"{field.column}" = %s')
        plain = value.pk if isinstance(value, Model) else value
        values.append(field.get_db_prep_save(plain, connection))
    with connection.cursor() as cursor:
        return cursor.execute(
            f'UPDATE "{row._meta.db_table}" SET {", ".join(sets)} WHERE id = %s', [*values, row.pk]
        )


WAYS: list[Way] = [by_update, by_bulk_update, by_sql]


def delete_by_sql(row: Model) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f'DELETE FROM "{row._meta.db_table}" WHERE id = %s', [row.pk])


def insert(row: Model) -> None:
    """Past `save()`."""
    type(row)._default_manager.bulk_create([row])


def another_value(row: Model, name: str) -> Any:
    """A value of the field's type that the row does not have."""
    field = row._meta.get_field(name)
    kind = field.get_internal_type()
    old = getattr(row, field.attname)
    match kind:
        case "ForeignKey" | "OneToOneField" | "UUIDField":
            from common.ids import new_id

            return new_id()
        case "BinaryField":
            return bytes(old) + b" "
        case "DateTimeField":
            from datetime import UTC, datetime

            return datetime(2020, 1, 1, tzinfo=UTC)
        case "BooleanField":
            return not old
        case "ArrayField" | "JSONField":
            return ["11111111-1111-4111-8111-111111111111"]
        case "CharField" | "TextField" | "SlugField":
            return (old or "")[:5] + "x"
        case _:
            return (old or 0) + 1


def names_in(app_label: str) -> set[str]:
    """Every constraint and trigger of the app's models. Row-level security is broken in tests/tenants."""
    models = apps.get_app_config(app_label).get_models()
    constraints = {constraint.name for model in models for constraint in model._meta.constraints}
    constraints = {name for name in constraints if not name.endswith("_row_security")}
    models = apps.get_app_config(app_label).get_models()
    return constraints | {
        trigger.name for model in models for trigger in getattr(model._meta, "triggers", [])
    }
