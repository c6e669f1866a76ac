"""The two database roles: one owns and migrates, the other serves and owns nothing."""

import psycopg
from psycopg import sql

OWNER, APP, DATABASE = "placet_owner", "placet_app", "placet"

_TABLE_RIGHTS = "SELECT, INSERT, UPDATE, DELETE"


def default_rights(connection: psycopg.Connection, *, owner: str, app: str) -> None:
    """What `owner` makes from now on in this database, `app` may use. Migrations take single rights back."""
    for rights, kind in ((_TABLE_RIGHTS, "TABLES"), ("USAGE", "SEQUENCES")):
        connection.execute(
            sql.SQL("ALTER DEFAULT PRIVILEGES FOR ROLE {} GRANT {} ON {} TO {}").format(
                sql.Identifier(owner), sql.SQL(rights), sql.SQL(kind), sql.Identifier(app)
            )
        )


def role_exists(connection: psycopg.Connection, role: str) -> bool:
    return connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone() is not None


def make_login(connection: psycopg.Connection, role: str, *, password: str | None = None) -> None:
    """Makes the role, or sets the password of one that is there. It gets no right beyond signing in."""
    verb = "ALTER" if role_exists(connection, role) else "CREATE"
    secret = sql.SQL("PASSWORD {}").format(sql.Literal(password)) if password else sql.SQL("")
    connection.execute(sql.SQL("{} ROLE {} LOGIN {}").format(sql.SQL(verb), sql.Identifier(role), secret))
