"""The four roles: what each may do, and what is said when they cannot be made."""

import psycopg
import pytest
from psycopg import sql

from launch import LaunchError, roles
from launch.postgres import Postgres


@pytest.fixture
def urls(postgres: Postgres) -> tuple[str, str]:
    """The owner's and the application role's addresses on a bootstrapped server."""
    owner, app, system = (
        postgres.url(user=user, database=roles.DATABASE) for user in (roles.OWNER, roles.APP, roles.SYSTEM)
    )
    for _ in range(2):  # it is safe to repeat
        roles.bootstrap(postgres.url(), owner_url=owner, app_url=app, system_url=system)
    return owner, app


def run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def make_role(postgres: Postgres, name: str, powers: str) -> None:
    run(postgres.url(), f"CREATE ROLE {name} LOGIN {powers}")


def owned_database(postgres: Postgres, owner: str) -> str:
    run(postgres.url(), f"CREATE DATABASE theirs OWNER {owner}")
    return postgres.url(user=owner, database="theirs")


def test_no_role_has_powers(postgres: Postgres, urls: tuple[str, str]) -> None:
    with psycopg.connect(postgres.url()) as connection:
        rows = connection.execute(
            "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls, rolcanlogin "
            "FROM pg_roles WHERE rolname IN ('placet_owner', 'placet_app', 'placet_system', 'placet_signer')"
        ).fetchall()
    assert rows == [(False, False, False, False, False, True)] * 4


def test_application_role_works_with_the_owners_tables(urls: tuple[str, str]) -> None:
    owner, app = urls
    run(owner, "CREATE TABLE thing (id serial PRIMARY KEY, name text)")
    run(app, "INSERT INTO thing (name) VALUES ('one')")
    run(app, "UPDATE thing SET name = 'two'")
    run(app, "DELETE FROM thing")


def test_one_role_is_not_used_for_two_purposes(postgres: Postgres) -> None:
    owner, app = (postgres.url(user=user, database=roles.DATABASE) for user in (roles.OWNER, roles.APP))
    with pytest.raises(LaunchError, match="different roles"):
        roles.bootstrap(postgres.url(), owner_url=owner, app_url=app, system_url=app)


def test_the_system_role_works_with_the_owners_tables_and_owns_nothing(
    postgres: Postgres, urls: tuple[str, str]
) -> None:
    run(urls[0], "CREATE TABLE thing (id int)")
    system = postgres.url(user=roles.SYSTEM, database=roles.DATABASE)
    run(system, "INSERT INTO thing VALUES (1)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(system, "ALTER TABLE thing DISABLE ROW LEVEL SECURITY")


def test_the_signers_role_may_use_nothing_that_is_not_given_to_it(
    postgres: Postgres, urls: tuple[str, str]
) -> None:
    run(urls[0], "CREATE TABLE thing (id int)")
    signer = postgres.url(user=roles.SIGNER, database=roles.DATABASE)
    for statement in ("SELECT 1 FROM thing", "INSERT INTO thing VALUES (1)", "CREATE TABLE mine (id int)"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run(signer, statement)


def test_a_signers_role_on_an_existing_server_may_use_nothing_either(postgres: Postgres) -> None:
    make_role(postgres, "dba", "CREATEROLE")
    owner = owned_database(postgres, "dba")
    signer = roles.app_url(owner, "secret", roles.SIGNER)
    roles.use_existing(owner, signer, may_make=True, variable="DATABASE_SIGNER_URL", signs=True)
    run(owner, "CREATE TABLE thing (id int)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(signer, "SELECT 1 FROM thing")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (id int)",
        "CREATE SCHEMA mine",
        "CREATE TEMPORARY TABLE mine (id int)",
        "DROP TABLE thing",
        "ALTER TABLE thing DISABLE TRIGGER ALL",
        "TRUNCATE thing",
        "SET session_replication_role = replica",
        "SET ROLE placet_owner",
        "SET ROLE placet_system",
    ],
)
def test_application_role_cannot(urls: tuple[str, str], statement: str) -> None:
    owner, app = urls
    run(owner, "CREATE TABLE thing (id int)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(app, statement)


def test_existing_server_gets_an_application_role(postgres: Postgres) -> None:
    make_role(postgres, "dba", "CREATEROLE")
    owner = owned_database(postgres, "dba")
    app = roles.app_url(owner, "a/secret@with:marks")
    roles.use_existing(owner, app, may_make=True)
    run(owner, "CREATE TABLE thing (id int)")
    run(app, "INSERT INTO thing VALUES (1)")


def test_owner_who_may_not_make_roles_is_told_what_to_do(postgres: Postgres) -> None:
    make_role(postgres, "plain", "")
    owner = owned_database(postgres, "plain")
    with pytest.raises(LaunchError, match="CREATE ROLE placet_app LOGIN"):
        roles.use_existing(owner, roles.app_url(owner, "secret"), may_make=True)


def test_application_role_must_not_be_the_owner(postgres: Postgres, urls: tuple[str, str]) -> None:
    with pytest.raises(LaunchError, match="another role"):
        roles.use_existing(urls[0], urls[0], may_make=False)


@pytest.mark.parametrize("powers", ["SUPERUSER", "BYPASSRLS", "IN ROLE placet_owner"])
def test_powerful_application_role_is_refused(postgres: Postgres, urls: tuple[str, str], powers: str) -> None:
    make_role(postgres, "strong", powers)
    with pytest.raises(LaunchError, match="may do no more than sign in"):
        roles.use_existing(urls[0], postgres.url(user="strong", database=roles.DATABASE), may_make=False)


def test_password_arrives_as_it_is(postgres: Postgres) -> None:
    address = roles.app_url("postgresql://o:x@h:5433/d?sslmode=require", "a/secret@with:marks%")
    parsed = psycopg.conninfo.conninfo_to_dict(address)
    assert (parsed["user"], parsed["password"]) == ("placet_app", "a/secret@with:marks%")
    assert (parsed["host"], parsed["port"], parsed["dbname"], parsed["sslmode"]) == (
        "h",
        "5433",
        "d",
        "require",
    )


def test_unreachable_server_is_named_by_its_variable() -> None:
    with pytest.raises(LaunchError, match="DATABASE_URL") as caught:
        roles.use_existing(
            "postgresql://o:secret@127.0.0.1:1/d", "postgresql://a@127.0.0.1:1/d", may_make=False
        )
    assert "secret" not in str(caught.value)


def test_role_names_are_quoted(postgres: Postgres) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        roles.make_login(connection, 'odd"; DROP ROLE postgres; --')
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier('odd"; DROP ROLE postgres; --')))
