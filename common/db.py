"""Small things about the database that every app needs."""

from typing import Final

from django.db import Error, connection

from common.tx import require_transaction


def violates(error: Error, constraint: str) -> bool:
    """Whether the error is about exactly this constraint (or trigger of ours)."""
    diagnostics = getattr(error.__cause__, "diag", None)
    return getattr(diagnostics, "constraint_name", None) == constraint


def is_deadlock(error: Error) -> bool:
    """Whether the database ended this transaction because it and another waited for each other."""
    return getattr(error.__cause__, "sqlstate", None) == "40P01"


def is_lock_timeout(error: BaseException) -> bool:
    """Whether a lock was not to be had in time: somebody else is slow, and nothing is wrong with what waited for it."""
    return getattr(error.__cause__, "sqlstate", None) == "55P03"


def lock_name(name: str) -> None:
    """Hold a lock on a name until the transaction ends, for rules about rows that may not exist yet."""
    require_transaction()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 7))", [name])


HELD_SHARED: Final = "pg_advisory_xact_lock_shared(hashtextextended(%s, 7))"
"""For hand-written SQL: takes the lock of `lock_name_shared`."""


def lock_name_shared(name: str) -> None:
    """Hold a lock on a name together with others, until the transaction ends; `lock_name` waits for all of them."""
    require_transaction()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {HELD_SHARED}", [name])
