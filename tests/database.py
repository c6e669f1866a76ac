"""Clearing the test database between tests, in a few milliseconds.

Django's flush truncates every table and makes permissions anew, which costs more than most tests,
and it loses the rows that migrations put in. Here the owner alias, whose triggers and foreign keys
are off, deletes what is there and puts back what the migrations had left.
"""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import connections
from django.test import TransactionTestCase
from django.test.utils import CaptureQueriesContext

# Only migrations write to these.
_KEPT = ("django_migrations", "django_content_type", "auth_permission")

_TABLES = """
    SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
      AND NOT c.relispartition AND c.relname <> ALL(%s)
    GROUP BY c.relname ORDER BY c.relname
"""


def remember_pristine_rows() -> None:
    """Makes `pristine.restore()` in the fresh test database. Call once, after the migrations."""
    with connections["owner"].cursor() as cursor:
        cursor.execute("CREATE SCHEMA pristine")
        cursor.execute(_TABLES, [list(_KEPT)])
        statements = [line for name, columns in cursor.fetchall() for line in _restore(cursor, name, columns)]
        body = "\n".join(statements) or "NULL;"
        function = "CREATE FUNCTION pristine.restore() RETURNS void LANGUAGE plpgsql AS"
        cursor.execute(f"{function} $do$ BEGIN\n{body}\nEND $do$")


def _restore(cursor: Any, name: str, columns: str) -> list[str]:
    """The statements that bring one table back; keeps a copy of it when it has rows."""
    lines = [f'DELETE FROM public."{name}";']
    cursor.execute(f'SELECT EXISTS (SELECT FROM public."{name}")')
    if cursor.fetchone()[0]:
        cursor.execute(f'CREATE TABLE pristine."{name}" AS SELECT {columns} FROM public."{name}"')
        copy = f'SELECT {columns} FROM pristine."{name}"'
        lines.append(f'INSERT INTO public."{name}" ({columns}) OVERRIDING SYSTEM VALUE {copy};')
    return lines


def restore_pristine_rows() -> None:
    """Undoes what a test wrote."""
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT pristine.restore()")


def use_instead_of_flush() -> None:
    """Every transactional test of Django's and pytest-django's ends with it from now on."""

    def teardown(_test: TransactionTestCase) -> None:
        restore_pristine_rows()

    TransactionTestCase._fixture_teardown = teardown  # type: ignore[method-assign]


@contextmanager
def captured_queries(*aliases: str) -> Generator[list[CaptureQueriesContext]]:
    """The queries of this thread, one list for each connection: whatever the running code works as."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(CaptureQueriesContext(connections[alias]))
            for alias in aliases or ("default", "app", "system")
        ]


def statements(captured: list[CaptureQueriesContext]) -> list[str]:
    """Their texts; of transactions only what is inside."""
    found = [str(query["sql"]) for one in captured for query in one.captured_queries]
    return [sql for sql in found if not sql.startswith(("BEGIN", "COMMIT", "ROLLBACK"))]


@contextmanager
def assert_num_queries(count: int) -> Generator[list[CaptureQueriesContext]]:
    """Fails unless so many were made inside."""
    with captured_queries() as captured:
        yield captured
    found = [str(query["sql"]) for one in captured for query in one.captured_queries]
    assert len(found) == count, "\n".join([f"{len(found)} queries, not {count}", *found])
