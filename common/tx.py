"""Transactions, said out loud: an action owns one, a step of an action requires one."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import connection, transaction

P = ParamSpec("P")
R = TypeVar("R")


class NoTransaction(RuntimeError):
    """This function changes state and must run inside the transaction of an action."""


def action(function: Callable[P, R]) -> Callable[P, R]:
    """Run ``function`` as one transaction of its own; calling it inside another is a programming error.

    A wrapped action that returned has committed. An exception out of it means "not known" when it came from the
    commit itself: read the row again by its id, never undo or create again.
    """
    return transaction.atomic(durable=True)(function)


def require_transaction() -> None:
    """Refuse to go on outside a transaction: what follows would commit row by row."""
    if not connection.in_atomic_block:
        raise NoTransaction(NoTransaction.__doc__)
