"""Every row belongs to a tenant, and says so in its foreign keys too."""

from collections.abc import Sequence
from typing import Any

from django.db import models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement
from django.db.models.constraints import BaseConstraint

from common.ids import new_id


class SameTenant(BaseConstraint):
    """A composite foreign key ``(tenant_id, <field>_id) → (tenant_id, id)``.

    Django's own key on ``<field>`` would let a row of one tenant point at another's. Use it with a
    ``ForeignKey(..., db_constraint=False)``; the target has a unique constraint over ``(tenant, id)``.
    """

    def __init__(self, *, field: str, name: str, also: Sequence[str] = ()) -> None:
        """``also`` names further columns that both rows carry and that must agree, such as ``mode``."""
        super().__init__(name=name)
        self.field, self.also = field, tuple(also)

    def _add_sql(self, model: type[models.Model], editor: BaseDatabaseSchemaEditor) -> Statement:
        meta: Any = model._meta
        field = meta.get_field(self.field)
        target = field.remote_field.model._meta
        quote = editor.quote_name
        shared = [meta.get_field(name).column for name in self.also]
        ours = ", ".join(quote(column) for column in ("tenant_id", field.column, *shared))
        theirs = ", ".join(quote(column) for column in ("tenant_id", target.pk.column, *shared))
        return Statement(
            f"ALTER TABLE {quote(meta.db_table)} ADD CONSTRAINT {quote(self.name)} "
            f"FOREIGN KEY ({ours}) REFERENCES {quote(target.db_table)} ({theirs})"
        )

    def constraint_sql(self, model: Any, schema_editor: Any) -> None:  # type: ignore[override]
        """Nothing inside CREATE TABLE: the target's unique constraint may be made by a later operation."""
        schema_editor.deferred_sql.append(self._add_sql(model, schema_editor))

    def create_sql(self, model: Any, schema_editor: Any) -> None:  # type: ignore[override]
        """At the end of the migration, as Django does with its own foreign keys, for the same reason."""
        schema_editor.deferred_sql.append(self._add_sql(model, schema_editor))

    def remove_sql(self, model: Any, schema_editor: Any) -> Statement:  # type: ignore[override]
        table = schema_editor.quote_name(model._meta.db_table)
        return Statement(f"ALTER TABLE {table} DROP CONSTRAINT {schema_editor.quote_name(self.name)}")

    def validate(self, *args: Any, **kwargs: Any) -> None:
        """The database alone judges."""

    def deconstruct(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        arguments: dict[str, Any] = {"field": self.field, "name": self.name}
        return "common.tenancy.SameTenant", (), arguments | ({"also": self.also} if self.also else {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameTenant) and self.deconstruct() == other.deconstruct()

    def __hash__(self) -> int:
        return hash((self.field, self.name, self.also))


class TenantRow(models.Model):
    """Base of every domain row: a UUIDv7 key and the tenant it belongs to."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey("common.Tenant", on_delete=models.PROTECT, related_name="+", db_index=False)

    class Meta:
        abstract = True


def tenant_key(name: str) -> models.UniqueConstraint:
    """The unique constraint that composite foreign keys point at."""
    return models.UniqueConstraint(fields=["tenant", "id"], name=name)
