"""Small things about the database that every app needs."""

from django.db import IntegrityError, connection

from common.tx import require_transaction


def violates(error: IntegrityError, constraint: str) -> bool:
    """Whether the error is about exactly this constraint (or trigger of ours)."""
    diagnostics = getattr(error.__cause__, "diag", None)
    return getattr(diagnostics, "constraint_name", None) == constraint


def lock_name(name: str) -> None:
    """Hold a lock on a name until the transaction ends, for rules about rows that may not exist yet."""
    require_transaction()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 7))", [name])
