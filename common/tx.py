"""Transactions, said out loud: an action owns one, a step of an action requires one."""

import threading
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.db import connection, transaction

from common.dbroles import as_system

P = ParamSpec("P")
R = TypeVar("R")


class NoTransaction(RuntimeError):
    """This function changes state and must run inside the transaction of an action."""


def action(function: Callable[P, R]) -> Callable[P, R]:
    """Run ``function`` as one transaction of its own; calling it inside another is a programming error.

    A wrapped action that returned has committed. An exception out of it means "not known" when it came from the
    commit itself: read the row again by its id, never undo or create again.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with transaction.atomic(durable=True):
            _gathered.bags, _gathered.memo = {}, {}
            try:
                result = function(*args, **kwargs)
                flush()
            finally:
                _gathered.bags = _gathered.memo = None
            return result

    return run


def system_action(function: Callable[P, R]) -> Callable[P, R]:
    """An `action` of the system role: about a person of several tenants, or of one that is not known yet."""
    return as_system()(action(function))


class _Gathered(threading.local):
    """What the action of this thread has still to write before it commits; None outside an action."""

    bags: dict[Callable[[list[Any]], None], list[Any]] | None = None
    memo: dict[Any, Any] | None = None


_gathered = _Gathered()


def gather(write: Callable[[list[Any]], None], things: Sequence[Any]) -> None:
    """Let ``write`` write these together with all others of its kind, once, before the running action commits.

    At once outside an action, and inside a savepoint, with which they may be undone: `flush` before you open one.
    """
    if _gathered.bags is None or connection.savepoint_ids:
        write(list(things))
    else:
        _gathered.bags.setdefault(write, []).extend(things)


def flush() -> None:
    """Write what was gathered so far."""
    bags, _gathered.bags = _gathered.bags or {}, {} if _gathered.bags is not None else None
    for write, things in bags.items():
        write(things)


def require_transaction() -> None:
    """Refuse to go on outside a transaction: what follows would commit row by row."""
    if not connection.in_atomic_block:
        raise NoTransaction(NoTransaction.__doc__)


def memo() -> dict[Any, Any] | None:
    """What the running action has read and need not read again; gone when it ends. None outside an action, and inside
    a savepoint, with which what was written may be undone.
    """
    return None if connection.savepoint_ids else _gathered.memo
