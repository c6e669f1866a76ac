"""Every foreign key between rows of tenants carries the tenant."""

import pytest
from django.apps import apps
from django.db import connection, models
from django.db.migrations.writer import MigrationWriter

from access.models import ApiToken, GroupMembership
from common.tenancy import SameTenant, TenantRow

TENANT_MODELS = [model for model in apps.get_models() if issubclass(model, TenantRow)]


def inner_keys(model: type[models.Model]) -> list[models.ForeignKey]:
    """The keys of a tenant's row that point at another tenant's-row."""
    return [
        field for field in model._meta.concrete_fields
        if isinstance(field, models.ForeignKey) and issubclass(field.related_model, TenantRow)
    ]  # fmt: skip


@pytest.mark.parametrize("model", TENANT_MODELS, ids=lambda model: model._meta.label)
def test_every_key_between_tenants_rows_has_its_constraint(model: type[models.Model]) -> None:
    declared = {item.field for item in model._meta.constraints if isinstance(item, SameTenant)}
    assert {field.name for field in inner_keys(model)} <= declared


@pytest.mark.django_db
@pytest.mark.parametrize("model", TENANT_MODELS, ids=lambda model: model._meta.label)
def test_the_constraints_are_in_the_database(model: type[models.Model]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint"
            " WHERE conrelid = %s::regclass AND contype = 'f'",
            [model._meta.db_table],
        )
        there = {name: (text, valid) for name, text, valid in cursor.fetchall()}
    for item in model._meta.constraints:
        if isinstance(item, SameTenant):
            text, valid = there[item.name]
            assert text.startswith(f"FOREIGN KEY (tenant_id, {item.field}_id")
            assert "(tenant_id, id" in text
            assert valid


def test_a_constraint_survives_the_migration_writer() -> None:
    (item,) = (item for item in ApiToken._meta.constraints if getattr(item, "field", "") == "agent")
    text, imports = MigrationWriter.serialize(item)
    assert text == "common.tenancy.SameTenant(field='agent', name='access_apitoken_agent_tenant')"
    assert imports == {"import common.tenancy"}
    assert item == SameTenant(field="agent", name="access_apitoken_agent_tenant")
    assert hash(item) == hash(SameTenant(field="agent", name="access_apitoken_agent_tenant"))
    assert item != SameTenant(field="agent", name="other")


@pytest.mark.django_db
def test_it_can_be_taken_back_and_made_again() -> None:
    from django.db import connections

    (item,) = (item for item in GroupMembership._meta.constraints if getattr(item, "field", "") == "group")
    owner = connections["owner"]
    with owner.schema_editor() as editor:
        editor.remove_constraint(GroupMembership, item)
    with owner.schema_editor(collect_sql=True) as editor:
        editor.add_constraint(GroupMembership, item)
    assert "".join(editor.collected_sql) == (
        'ALTER TABLE "access_groupmembership" ADD CONSTRAINT "access_groupmembership_group_tenant" FOREIGN KEY '
        '("tenant_id", "group_id") REFERENCES "access_group" ("tenant_id", "id");'
    )
    with owner.schema_editor() as editor:
        editor.add_constraint(GroupMembership, item)
