"""The four database roles: one owns and migrates; one serves requests and one works, and these own nothing.

The application role (`app`) sees the rows of one tenant at a time, the system role those of all. The signer's role
may use nothing that the owner makes, but what a migration gives it.
"""

from urllib.parse import quote, unquote, urlsplit

import psycopg
from psycopg import sql

from launch import LaunchError

OWNER, APP, SYSTEM, DATABASE = "placet_owner", "placet_app", "placet_system", "placet"
SIGNER = "placet_signer"

_TABLE_RIGHTS = "SELECT, INSERT, UPDATE, DELETE"
_SECONDS = 10


def default_rights(connection: psycopg.Connection, *, owner: str, app: str) -> None:
    """What `owner` makes from now on in this database, `app` may use. Migrations take single rights back."""
    for rights, kind in ((_TABLE_RIGHTS, "TABLES"), ("USAGE", "SEQUENCES")):
        connection.execute(
            sql.SQL("ALTER DEFAULT PRIVILEGES FOR ROLE {} GRANT {} ON {} TO {}").format(
                sql.Identifier(owner), sql.SQL(rights), sql.SQL(kind), sql.Identifier(app)
            )
        )


def make_login(connection: psycopg.Connection, role: str, *, password: str | None = None) -> None:
    """Makes the role, or sets the password of one that is there. It gets no right beyond signing in."""
    verb = "ALTER" if _exists(connection, role) else "CREATE"
    secret = sql.SQL("PASSWORD {}").format(sql.Literal(password)) if password else sql.SQL("")
    connection.execute(sql.SQL("{} ROLE {} LOGIN {}").format(sql.SQL(verb), sql.Identifier(role), secret))


def bootstrap(admin_url: str, *, owner_url: str, app_url: str, system_url: str, signer_url: str = "") -> None:
    """On a server where we are superuser: makes the roles and the owner's database. Safe to repeat.

    Names and passwords come from the addresses, where the server asks for passwords. Without one for the signer its
    role is made all the same, because migrations name it, and cannot sign in where a password is asked for.
    """
    signer_url = signer_url or f"postgresql://{SIGNER}@"
    _check_apart(owner_url, app_url, system_url, signer_url)
    owner, database = _user(owner_url), urlsplit(owner_url).path.lstrip("/")
    with connect(admin_url, "DATABASE_ADMIN_URL") as connection:
        for url in (owner_url, app_url, system_url, signer_url):
            make_login(connection, _user(url), password=_password(url))
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone()
        if known is None:
            statement = sql.SQL("CREATE DATABASE {} OWNER {}")
            connection.execute(statement.format(sql.Identifier(database), sql.Identifier(owner)))
    with connect(owner_url, "DATABASE_OWNER_URL") as connection:
        statement = sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC")
        connection.execute(statement.format(sql.Identifier(database)))
        for url in (app_url, system_url):
            grant_use(connection, app=_user(url))
        grant_entry(connection, _user(signer_url))


def _check_apart(*urls: str) -> None:
    """One role for two purposes would be the weaker of both: walls stand between these roles."""
    if len({_user(url) for url in urls}) < len(urls):
        raise LaunchError(
            "DATABASE_OWNER_URL, DATABASE_URL, DATABASE_SYSTEM_URL and DATABASE_SIGNER_URL must name different roles."
        )


def grant_use(connection: psycopg.Connection, *, app: str) -> None:
    """As the owner: lets `app` connect, and use what the owner makes from now on."""
    grant_entry(connection, app)
    default_rights(connection, owner=connection.info.user, app=app)


def grant_entry(connection: psycopg.Connection, role: str) -> None:
    """As the owner: lets `role` connect and name what is there. It may use nothing of it yet."""
    for right, what in (("CONNECT ON DATABASE", connection.info.dbname), ("USAGE ON SCHEMA", "public")):
        statement = sql.SQL("GRANT {} {} TO {}").format(
            sql.SQL(right), sql.Identifier(what), sql.Identifier(role)
        )
        connection.execute(statement)


def use_existing(
    owner_url: str,
    app_url: str,
    *,
    may_make: bool,
    variable: str = "DATABASE_APP_URL",
    signs: bool = False,
) -> None:
    """On somebody's server: makes the role of `app_url` if it is missing and we may, and checks it.

    `may_make` says that `app_url` holds a password of ours; `variable` is what names it otherwise; `signs`: it is
    the signer's, which may use no table by default. Raises LaunchError with the statement to run when the owner's
    role is not allowed to do what is missing.
    """
    owner, app = _user(owner_url), _user(app_url)
    if owner == app:
        raise LaunchError(
            f"{variable} must name another role than DATABASE_URL: the owner's role only migrates."
        )
    with connect(owner_url, "DATABASE_URL") as connection:
        if not _exists(connection, app):
            _make_or_explain(connection, app, _password(app_url), variable)
        elif not may_make:
            _refuse_powers(connection, app, variable)
        if signs:
            grant_entry(connection, app)
        else:
            grant_use(connection, app=app)
    connect(app_url, variable).close()


def app_url(owner_url: str, password: str, role: str = APP) -> str:
    """The owner's address with another role in it."""
    parts = urlsplit(owner_url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{role}:{quote(password, safe='')}@{host}").geturl()


def connect(url: str, variable: str) -> psycopg.Connection:
    """A connection in autocommit. Raises LaunchError, without the address, when there is none."""
    try:
        return psycopg.connect(url, autocommit=True, connect_timeout=_SECONDS)
    except psycopg.Error as error:
        raise LaunchError(f"The database in {variable} does not let us in: {error}") from error


def _make_or_explain(connection: psycopg.Connection, app: str, password: str | None, variable: str) -> None:
    try:
        make_login(connection, app, password=password)
    except psycopg.errors.InsufficientPrivilege as error:
        raise LaunchError(
            f"The role {connection.info.user} of DATABASE_URL may not make the role {app}. "
            "Let an administrator run\n"
            f"    CREATE ROLE {app} LOGIN PASSWORD '...';\n"
            f"and set {variable} to the same address with that role and password."
        ) from error


def _refuse_powers(connection: psycopg.Connection, app: str, variable: str) -> None:
    """A role that passes by rights and policies would make both worthless."""
    row = connection.execute(
        "SELECT rolsuper OR rolbypassrls, pg_has_role(rolname, current_user, 'MEMBER') "
        "FROM pg_roles WHERE rolname = %s",
        [app],
    ).fetchone()
    if row and any(row):
        raise LaunchError(
            f"The role {app} of {variable} is a superuser, passes by row security, or is a member of "
            "the owner's role. Name one that may do no more than sign in."
        )


def _exists(connection: psycopg.Connection, role: str) -> bool:
    return connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone() is not None


def _user(url: str) -> str:
    user = urlsplit(url).username
    if not user:
        raise LaunchError("A database address must name its role: postgresql://ROLE:PASSWORD@HOST/DATABASE")
    return unquote(user)


def _password(url: str) -> str | None:
    password = urlsplit(url).password
    return unquote(password) if password else None
