"""The database: what our role may do, what protects the data, and whether its clock is ours."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pgtrigger
from django.conf import settings
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from common.dbroles import APPLICATION, SYSTEM
from config import observed
from config.doctor.findings import Finding, ok, problem, warning

OLDEST_SERVER: Final = 15
APPEND_ONLY: Final = ("audit_event", "audit_seal")
CLOCKS_APART_S: Final = (2.0, 30.0)
LEAST_FREE: Final = (0.10, 0.03)
"""Parts of a disk, and below them a warning and a problem."""


def version() -> Iterator[Finding]:
    [(number, words)] = observed.rows(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version')"
    )
    if number // 10_000 < OLDEST_SERVER:
        yield problem(f"PostgreSQL {words} is too old.", f"Upgrade it to {OLDEST_SERVER} or newer.")
    else:
        yield ok(f"PostgreSQL {words} answers.")


def migrations() -> Iterator[Finding]:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in plan[:5])
        yield problem(
            f"{len(plan)} migrations are not applied: {names}.", "Run manage.py migrate --database owner."
        )
    else:
        yield ok("Every migration is applied.")


ROLES: Final = {APPLICATION: "DATABASE_URL", SYSTEM: "DATABASE_SYSTEM_URL"}
"""The connections that work, and the variable that names each role."""

_POWERS: Final = """
    SELECT current_user, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication,
        has_schema_privilege('public', 'CREATE') AND NOT rolsuper,
        EXISTS (SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relowner = r.oid),
        EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relowner <> r.oid
                AND NOT r.rolsuper AND pg_has_role(r.oid, c.relowner, 'MEMBER'))
    FROM pg_roles r WHERE rolname = current_user
"""
_POWER_WORDS: Final = (
    "is a superuser", "passes by row-level security", "may make roles", "may make databases",
    "may replicate", "may make tables", "owns tables", "is a member of the role that owns the tables",
)  # fmt: skip


def role() -> Iterator[Finding]:
    """The walls hold only against a role that owns nothing."""
    for alias, variable in ROLES.items():
        [(name, *powers)] = observed.rows(_POWERS, alias=alias)
        words = [word for word, has in zip(_POWER_WORDS, powers, strict=True) if has]
        if words:
            yield problem(
                f"The role {name} of {variable} {', '.join(words)}: the database's rules do not hold against it.",
                f"Let {variable} name the role that `./placet up` or `python -m launch roles` makes.",
            )
        else:
            yield ok(f"The role {name} owns nothing and has no powers.")


_RIGHTS: Final = """
    SELECT name, privilege FROM unnest(%s::text[]) name, unnest(ARRAY['UPDATE', 'DELETE', 'TRUNCATE']) privilege
    WHERE to_regclass(name) IS NOT NULL AND (has_table_privilege(to_regclass(name), privilege)
        OR privilege = 'UPDATE' AND has_any_column_privilege(to_regclass(name), privilege))
"""


def history_rights() -> Iterator[Finding]:
    """Events are added and read. Nobody who serves requests can change or remove one."""
    found = [row for alias in ROLES for row in observed.rows(_RIGHTS, [list(APPEND_ONLY)], alias)]
    if found:
        words = ", ".join(f"{right} on {table}" for table, right in found)
        yield problem(
            f"Our role may change the history ({words}).",
            "As the owner: REVOKE UPDATE, DELETE, TRUNCATE ON audit_event, audit_seal FROM the role.",
        )
    else:
        yield ok("Our role can add to the history and read it, and nothing else.")


_TRIGGERS: Final = """
    SELECT t.tgname, p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
    WHERE NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND t.tgrelid = to_regclass(quote_ident(%s))
"""


def walls() -> Iterator[Finding]:
    """What keeps rows from moving as the product does not move them is there, switched on, and does what it was made
    for. An owner of the tables can take it away, and the application's role could then write what it likes.
    """
    stored: dict[str, dict[str, str]] = {}
    open_, registered = [], pgtrigger.registered()
    for model, trigger in registered:
        table = model._meta.db_table
        if table not in stored:
            stored[table] = dict(observed.rows(_TRIGGERS, [table]))
        source = stored[table].get(trigger.get_pgid(model))
        if source is None or source.strip() not in str(trigger.compile(model).install_sql):
            open_.append(f"{trigger.name} on {table}")
    if open_:
        yield problem(
            f"{len(open_)} rules of the database are missing, switched off or changed: {', '.join(open_[:5])}.",
            "Find out who did that. As the owner, with nobody at work: manage.py pgtrigger install --database owner.",
        )
    else:
        yield ok(f"{len(registered)} rules of the database are in force.")


_ROW_SECURITY: Final = """
    SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity,
        EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid)
    FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
      AND (c.relrowsecurity OR c.relforcerowsecurity OR EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid))
    ORDER BY c.relname
"""


def row_security() -> Iterator[Finding]:
    """Where tables have policies, the policies must be switched on, and for the owner too."""
    tables = observed.rows(_ROW_SECURITY)
    open_ = [name for name, on, forced, policies in tables if not (on and forced and policies)]
    if open_:
        yield problem(
            f"Row-level security of {', '.join(open_)} is not in force.",
            "As the owner: ALTER TABLE ... ENABLE ROW LEVEL SECURITY, and FORCE ROW LEVEL SECURITY.",
        )
    elif tables:
        yield ok(f"Row-level security is in force on {len(tables)} tables.")
    else:
        yield warning("No table has row-level security.", "Run the migrations of a release that brings it.")


Rule = tuple[str, Callable[[str], bool], str]
_TIMES: Final = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
_RULES: Final[tuple[Rule, ...]] = (
    *((name, lambda value: int(value) > 0, "Take what sets it to 0 out of DATABASE_URL.") for name in _TIMES),
    ("synchronous_commit", lambda value: value in ("on", "remote_apply"),
     "Take what sets it out of DATABASE_URL: a lost *sent* would be sent again."),
    ("fsync", lambda value: value == "on", "Switch it on in postgresql.conf: a crash may destroy the database."),
    ("full_page_writes", lambda value: value == "on", "Switch it on in postgresql.conf: a crash may tear pages."),
)  # fmt: skip


def guard_rails() -> Iterator[Finding]:
    """What keeps a commit, and what ends a statement that never would."""
    names = [name for name, _, _ in _RULES]
    # Not `setting`: these reads have a limit of their own.
    known = dict(
        observed.rows("SELECT name, reset_val FROM pg_settings WHERE name = ANY(%s)", [names], APPLICATION)
    )
    bad = [(name, known[name], do) for name, fits, do in _RULES if not fits(known[name])]
    for name, value, do in bad:
        yield problem(f"{name} is {value}.", do)
    if not bad:
        yield ok("Commits survive a crash, and no statement, lock or transaction lasts for ever.")


def clocks(now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Iterator[Finding]:
    """Deadlines follow the database's clock; sessions and receipts are checked by this machine's."""
    before = now()
    [(there,)] = observed.rows("SELECT clock_timestamp()")
    apart = abs((there - (before + (now() - before) / 2)).total_seconds())
    says = f"The clocks of this machine and of the database are {apart:.1f} s apart."
    do = "Let both follow the same time servers (chrony, systemd-timesyncd)."
    some, many = CLOCKS_APART_S
    yield problem(says, do) if apart > many else warning(says, do) if apart > some else ok(says)


def connections_left() -> Iterator[Finding]:
    states, most = observed.database_connections()
    used = sum(states.values())
    says = f"{used} of the {most} connections that the server takes are ours."
    if used > most * 0.8:
        yield warning(says, "Raise max_connections, or start fewer web processes and workers.")
    else:
        yield ok(says)


def disk() -> Iterator[Finding]:
    """The folder for files; with `./placet up` the database lies on the same disk."""
    usage = shutil.disk_usage(settings.PLACET_DATA_DIR)
    free = usage.free / usage.total
    says = f"{usage.free / 2**30:.1f} GB are free in PLACET_DATA_DIR ({free:.0%} of the disk)."
    do = "Make room: when the database's disk is full, nothing is sent and nothing can be decided."
    some, few = LEAST_FREE
    yield problem(says, do) if free < few else warning(says, do) if free < some else ok(says)


def reachable() -> str:
    """Why the database cannot be asked; empty when it can."""
    for alias in ROLES:
        try:
            with connections[alias].cursor() as cursor:
                cursor.execute("SELECT 1")
        except Exception as error:  # noqa: BLE001  (whatever it is, the rest cannot be asked)
            connections[alias].close()
            return _without_address(error)
    return ""


def _without_address(error: Any) -> str:
    """The first line, which names the server and never a password."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


CHECKS: Final = (
    version, migrations, role, history_rights, walls, row_security, guard_rails, clocks, connections_left,
)  # fmt: skip
