"""Row-level security itself, by SQL and without any filter of ours: what the application role sees and may write."""

from typing import Any

import pytest
from django.db import DatabaseError, ProgrammingError, connections, models, transaction
from django_fsm import FSMField

from common.dbroles import as_application
from common.ids import new_id
from common.models import Tenant
from common.rowsecurity import RowSecurity, tenant_field
from common.tenancy import SameTenant
from tests.tenants.planted import as_superuser, column_of, plant, rows_of, secured_models

pytestmark = pytest.mark.django_db
MODELS = secured_models()
MINE = "({column} = (NULLIF(current_setting('placet.tenant'::text, true), ''::text))::uuid)"
MIGRATING = "(current_setting('placet.migrating'::text, true) = 'on'::text)"


@pytest.fixture
def ours() -> Tenant:
    return plant("ours", "swallow")


@pytest.fixture
def theirs(ours: Tenant) -> Tenant:
    return plant("theirs")


def by_label(model: type[models.Model]) -> str:
    return model._meta.label


def test_every_table_with_a_tenant_is_secured() -> None:  # security list S10
    with_tenant = as_superuser(
        "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class c"
        " WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace AND (c.relname = 'common_tenant'"
        " OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id'))"
    )
    assert dict(with_tenant) == {model._meta.db_table: True for model in MODELS}


@pytest.mark.parametrize("model", MODELS, ids=by_label)
def test_the_database_has_exactly_the_declared_policies(model: type[models.Model]) -> None:
    found = as_superuser(
        "SELECT policyname, permissive, roles::text[], cmd, qual, with_check FROM pg_policies WHERE tablename = %s",
        model._meta.db_table,
    )
    mine = MINE.format(column=column_of(model))
    (security,) = (item for item in model._meta.constraints if isinstance(item, RowSecurity))
    wanted = [
        ("tenant", "PERMISSIVE", ["public"], "ALL", mine, mine),
        ("system", "PERMISSIVE", ["placet_system"], "ALL", "true", "true"),
        ("owner", "PERMISSIVE", ["postgres"], "ALL", MIGRATING, MIGRATING),
    ]
    if security.signer:
        wanted.append(("signer", "PERMISSIVE", ["placet_signer"], "ALL", "true", "true"))
    if security.shared:
        wanted.append(("shared", "PERMISSIVE", ["public"], "SELECT", f"({security.column} IS NULL)", None))
    assert sorted(found) == sorted(wanted)


def test_no_role_that_works_can_pass_by() -> None:
    powers = as_superuser(
        "SELECT rolname, rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication,"
        " EXISTS (SELECT FROM pg_class c WHERE c.relowner = r.oid),"
        " EXISTS (SELECT FROM pg_auth_members WHERE member = r.oid)"
        " FROM pg_roles r WHERE rolname IN ('placet_app', 'placet_system', 'placet_signer') ORDER BY rolname"
    )
    assert powers == [
        (name, False, False, False) for name in ("placet_app", "placet_signer", "placet_system")
    ]


@pytest.mark.parametrize("role", ["placet_system", "placet_signer", "postgres"])
def test_the_application_role_becomes_no_other(role: str) -> None:
    with (
        as_application(),
        pytest.raises(ProgrammingError, match="permission denied to set role"),
        connections["app"].cursor() as cursor,
    ):
        cursor.execute(f"SET ROLE {role}")


@pytest.mark.parametrize("words", ["SET placet.migrating = 'on'", "SET row_security = off"])
def test_no_setting_opens_anything_to_the_application_role(ours: Tenant, words: str) -> None:
    """The owner's policy is the owner's: whoever says that they migrate must be it."""
    with as_application(), connections["app"].cursor() as cursor:
        try:
            cursor.execute(words)
            for model in MODELS:
                try:
                    cursor.execute(f"SELECT count(*) FROM {model._meta.db_table}")
                    assert cursor.fetchone() == (0,), model
                except ProgrammingError as refused:
                    assert "row-level security" in str(refused)  # noqa: PT017
        finally:
            cursor.execute("RESET ALL")


def test_without_a_filter_only_ones_own_rows_are_there(ours: Tenant, theirs: Tenant) -> None:
    for model in MODELS:
        name = model._meta.pk.name if model is Tenant else "tenant_id"
        with as_application(ours.pk):
            seen = set(model._default_manager.values_list(name, flat=True))
        assert seen == {ours.pk}, model
        with as_application():
            assert not model._default_manager.exists(), model
            assert model._default_manager.count() == 0, model


def test_nothing_of_another_is_changed_or_deleted(ours: Tenant, theirs: Tenant) -> None:
    for model in MODELS:
        if model._meta.label.startswith("audit."):
            continue  # no right to either, see below
        table, key, column = model._meta.db_table, model._meta.pk.column, column_of(model)
        before = as_superuser(
            f"SELECT count(*), max(xmin::text::bigint) FROM {table} WHERE {column} = %s", theirs.pk
        )
        for tenant_id in (ours.pk, None):
            with as_application(tenant_id), transaction.atomic(), connections["app"].cursor() as cursor:
                cursor.execute(f"UPDATE {table} SET {key} = {key} WHERE {column} = %s", [theirs.pk])
                assert cursor.rowcount == 0, model
                cursor.execute(f"DELETE FROM {table} WHERE {column} = %s", [theirs.pk])
                assert cursor.rowcount == 0, model
        after = as_superuser(
            f"SELECT count(*), max(xmin::text::bigint) FROM {table} WHERE {column} = %s", theirs.pk
        )
        assert before == after, model


def test_nothing_is_written_into_another_tenant(ours: Tenant, theirs: Tenant) -> None:
    for model in MODELS:
        row = rows_of(model, theirs).first()
        for tenant_id in (ours.pk, None):
            with as_application(tenant_id), pytest.raises(DatabaseError) as caught:
                copy_of(row)
            diagnostics = caught.value.__cause__.diag  # type: ignore[union-attr]
            assert diagnostics.sqlstate == "42501", (model, caught.value)


def test_a_row_is_not_given_away(ours: Tenant, theirs: Tenant) -> None:
    """By whatever wall comes first: the policy, or the column that never changes."""
    for model in MODELS:
        if model is Tenant or model._meta.label.startswith("audit."):
            continue
        with as_application(ours.pk), pytest.raises(DatabaseError), transaction.atomic():
            rows_of(model, ours).update(tenant_id=theirs.pk)


def test_requests_add_to_the_history_and_only_the_sealer_seals(ours: Tenant) -> None:
    for table, column in (("audit_seal", "seq"), ("audit_head", "seq"), ("audit_watermark", "cluster")):
        for words in ("DELETE FROM {0}", "UPDATE {0} SET {1} = 0", "INSERT INTO {0} DEFAULT VALUES"):
            with as_application(ours.pk), pytest.raises(ProgrammingError, match="permission denied"):
                run(words.format(table, column))


def test_the_owner_is_bound_too_unless_it_migrates(ours: Tenant) -> None:
    """Forced: a process that was given the owner's address by mistake sees no tenant's rows."""
    with transaction.atomic("owner"), connections["owner"].cursor() as cursor:
        cursor.execute("CREATE ROLE somebody; GRANT CREATE ON SCHEMA public TO somebody")
        cursor.execute("ALTER TABLE access_group OWNER TO somebody; SET LOCAL ROLE somebody")
        cursor.execute("SELECT count(*) FROM access_group")
        assert cursor.fetchone() == (0,)
        transaction.set_rollback(rollback=True, using="owner")


def copy_of(row: models.Model) -> None:
    """The same row, past Django; under another key where the key is not the tenant."""
    fields = row._meta.concrete_fields
    names = ", ".join(f'"{field.column}"' for field in fields)
    values = [field.get_db_prep_save(field.pre_save(row, add=False), connections["app"]) for field in fields]
    for at, field in enumerate(fields):
        if isinstance(field, FSMField):
            values[at] = field.default  # a trigger, which comes first, lets rows begin in no other state
    if column_of(type(row)) != row._meta.pk.column:
        values[fields.index(row._meta.pk)] = new_id()
    run(f"INSERT INTO {row._meta.db_table} ({names}) VALUES ({', '.join(['%s'] * len(fields))})", *values)


def run(statement: str, *values: Any) -> None:
    with transaction.atomic(), connections["default"].cursor() as cursor:
        cursor.execute(statement, values)


def test_every_composite_key_refuses_another_tenants_row(ours: Tenant, theirs: Tenant) -> None:
    """As the system role, which row-level security does not bind: the foreign keys alone."""
    for model in MODELS:
        for item in model._meta.constraints:
            if not isinstance(item, SameTenant):
                continue
            row = rows_of(model, ours).exclude(**{item.field: None}).first()
            if row is None:
                continue
            target = model._meta.get_field(item.field).remote_field.model
            taken = (
                rows_of(model, theirs)
                .exclude(**{item.field: None})
                .values_list(f"{item.field}_id", flat=True)
            )
            strangers = list(rows_of(target, theirs).values_list("pk", flat=True))
            # One that no row of theirs points at, so that no unique constraint answers first.
            stranger = next((pk for pk in strangers if pk not in set(taken)), strangers[0])
            with pytest.raises(DatabaseError) as caught, transaction.atomic():
                model._default_manager.filter(pk=row.pk).update(**{f"{item.field}_id": stranger})
            name = caught.value.__cause__.diag.constraint_name  # type: ignore[union-attr]
            # A wall that comes first, of columns or rows that never change, says so.
            assert name == item.name or str(caught.value).startswith(("frozen:", "append-only:")), (
                item.name, caught.value,
            )  # fmt: skip


def test_no_row_is_without_its_tenant() -> None:  # field report K7
    for model in MODELS:
        (security,) = (item for item in model._meta.constraints if isinstance(item, RowSecurity))
        nullable = as_superuser(
            "SELECT NOT attnotnull FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s",
            model._meta.db_table, security.column,
        )  # fmt: skip
        assert nullable == [(security.shared,)], model
        if isinstance(tenant_field(model), models.ForeignKey):
            keys = as_superuser(
                "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated AND conrelid = %s::regclass"
                " AND confrelid = 'common_tenant'::regclass",
                model._meta.db_table,
            )
            assert keys == [(1,)], f"{model}: a row could be an orphan"
    assert [
        model._meta.label for model in MODELS if model._meta.label != "common.Tenant" and shared(model)
    ] == ["workflows.Hold"]


def shared(model: type[models.Model]) -> bool:
    return any(isinstance(item, RowSecurity) and item.shared for item in model._meta.constraints)
