"""Row-level security: the second wall between tenants, behind the queries that name the tenant themselves.

Every model with a tenant gets a `RowSecurity` among its constraints by itself, so ``makemigrations`` writes it, a new
model cannot be without it, and what the database has is compared with it in the tests. The security is *forced*, so
that the tables' owner is bound by it too.
"""

from typing import Any, Final

from django.conf import settings
from django.core.exceptions import FieldDoesNotExist
from django.db import connection, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement
from django.db.models.constraints import BaseConstraint
from django.db.models.signals import class_prepared

MINE: Final = "NULLIF(current_setting('placet.tenant', true), '')::uuid"
"""The tenant of the present transaction; NULL, which equals nothing, where none was named."""
MIGRATING: Final = "current_setting('placet.migrating', true) = 'on'"
"""Set for the connection that migrates, and for whoever else has the owner's address and says so."""


class RowSecurity(BaseConstraint):
    """The policies of one table. ``shared``: rows without a tenant concern everybody, who may read them.

    ``signer`` lets the signer's role see the rows of all tenants, as far as its rights on the table go.
    """

    def __init__(
        self, *, name: str, column: str = "tenant_id", shared: bool = False, signer: bool = False
    ) -> None:
        super().__init__(name=name)
        self.column, self.shared, self.signer = column, shared, signer

    def policies(self, system_role: str) -> dict[str, str]:
        """What is behind ``CREATE POLICY name ON table``, by name."""
        mine = f"{self.column} = {MINE}"
        found = {
            "tenant": f"USING ({mine}) WITH CHECK ({mine})",
            "system": f"TO {system_role} USING (true) WITH CHECK (true)",
            "owner": f"TO CURRENT_USER USING ({MIGRATING}) WITH CHECK ({MIGRATING})",
        }
        if self.signer:
            role = connection.ops.quote_name(settings.PLACET_SIGNER_ROLE)
            found["signer"] = f"TO {role} USING (true) WITH CHECK (true)"
        return found | ({"shared": f"FOR SELECT USING ({self.column} IS NULL)"} if self.shared else {})

    def _add_sql(self, model: type[models.Model], editor: BaseDatabaseSchemaEditor) -> Statement:
        table = editor.quote_name(model._meta.db_table)
        policies = self.policies(editor.quote_name(settings.PLACET_SYSTEM_ROLE))
        lines = [f"CREATE POLICY {name} ON {table} {rest}" for name, rest in policies.items()]
        lines += [f"ALTER TABLE {table} {verb} ROW LEVEL SECURITY" for verb in ("ENABLE", "FORCE")]
        return Statement("; ".join(lines))

    def constraint_sql(self, model: Any, schema_editor: Any) -> None:  # type: ignore[override]
        """Nothing inside CREATE TABLE."""
        schema_editor.deferred_sql.append(self._add_sql(model, schema_editor))

    def create_sql(self, model: Any, schema_editor: Any) -> Statement:  # type: ignore[override]
        return self._add_sql(model, schema_editor)

    def remove_sql(self, model: Any, schema_editor: Any) -> Statement:  # type: ignore[override]
        table = schema_editor.quote_name(model._meta.db_table)
        lines = [f"DROP POLICY {name} ON {table}" for name in self.policies("nobody")]
        lines += [f"ALTER TABLE {table} {verb} ROW LEVEL SECURITY" for verb in ("NO FORCE", "DISABLE")]
        return Statement("; ".join(lines))

    def validate(self, *args: Any, **kwargs: Any) -> None:
        """The database alone judges."""

    def deconstruct(self) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        arguments: dict[str, Any] = {"name": self.name}
        arguments |= {"column": self.column} if self.column != "tenant_id" else {}
        arguments |= {"signer": True} if self.signer else {}
        return "common.rowsecurity.RowSecurity", (), arguments | ({"shared": True} if self.shared else {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowSecurity) and self.deconstruct() == other.deconstruct()

    def __hash__(self) -> int:
        return hash((self.name, self.column, self.shared, self.signer))


def tenant_field(model: type[models.Model]) -> "models.Field[Any, Any] | None":
    """The column that says whose row it is: of the tenants' own table the key, of most others ``tenant``; else None."""
    if model._meta.label == "common.Tenant":
        return model._meta.pk
    for name in ("tenant", "tenant_id"):
        try:
            field = model._meta.get_field(name)
        except FieldDoesNotExist:
            continue
        if isinstance(field, models.Field):
            return field
    return None


def _secure(sender: Any, **_: Any) -> None:
    """Give a model with a tenant its row security. Not the models of migrations, which have what was written there."""
    meta = sender._meta
    if meta.abstract or meta.proxy or not meta.managed or sender.__module__ == "__fake__":
        return
    field = tenant_field(sender)
    if field is None or any(isinstance(known, RowSecurity) for known in meta.constraints):
        return
    column = field.column or field.name
    security = RowSecurity(name=f"{meta.db_table}_row_security", column=column, shared=field.null)
    meta.constraints = [*meta.constraints, security]
    meta.original_attrs["constraints"] = meta.constraints


class_prepared.connect(_secure, dispatch_uid="common.rowsecurity")
