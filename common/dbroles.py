"""As which database role the running code works, and for which tenant.

Requests work as the *application* role: row-level security shows it the rows of one tenant, which every one of its
transactions names, and none where no tenant is named. Workers, the sweep, the sealer and commands work as the *system*
role, which sees all rows. In a request, `as_system` marks the few functions that need rows before a tenant is known.

The alias ``default`` is whatever the running code works as, so that nothing else has to name a connection.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase

if TYPE_CHECKING:
    from common.tenantdb.base import DatabaseWrapper

APPLICATION: Final = "app"
SYSTEM: Final = "system"
_tenant: ContextVar[UUID | None] = ContextVar("placet_tenant", default=None)


class RolesMixed(RuntimeError):
    """What the system role would do here were not part of the transaction that is open. A programming error."""


def current_tenant() -> UUID | None:
    """The tenant whose rows the application role sees now."""
    return _tenant.get()


@contextmanager
def _working_as(alias: str) -> Generator[Any]:
    """``default`` is the connection of this alias, in this thread, until the block ends."""
    before, now = connections[DEFAULT_DB_ALIAS], connections[alias]
    connections[DEFAULT_DB_ALIAS] = now
    try:
        yield now
    finally:
        connections[DEFAULT_DB_ALIAS] = before


@contextmanager
def as_system() -> Generator[None]:
    """Work as the system role, which sees every tenant: a block, or as a decorator a function.

    Only for what has to be found before the tenant is known, or concerns several: keep it small. What runs inside is
    another connection with transactions of its own; inside a transaction of the application role it is refused.
    """
    if not _is_application():
        yield
    elif connections[DEFAULT_DB_ALIAS].in_atomic_block:
        raise RolesMixed
    else:
        with _working_as(SYSTEM):
            yield


@contextmanager
def as_application(tenant_id: UUID | None = None) -> Generator[None]:
    """Work as the application role, for one tenant or for none yet. What was read in between ends with the block."""
    token = _tenant.set(tenant_id)
    try:
        with _working_as(APPLICATION) as connection:
            try:
                yield
            finally:
                connection.end_reading()
    finally:
        _tenant.reset(token)


def bind_tenant(tenant_id: UUID) -> None:
    """From here to the end of the request, or of the `as_application` around it, the rows of this tenant are seen.

    Named once by whoever knows who asks: the session's membership or the token. A later name replaces the earlier.
    """
    _tenant.set(tenant_id)


def _is_application() -> bool:
    return hasattr(connections[DEFAULT_DB_ALIAS], "end_reading")


def begin_reading() -> None:
    """Begin it now, where it would begin with the next read: for several reads that go to the database together."""
    connection: DatabaseWrapper | Any = connections[DEFAULT_DB_ALIAS]
    if _is_application():
        connection.begin_reading()


def end_reading() -> None:
    """End the transaction in which this request reads: before it waits for something. The next read begins another."""
    connection: DatabaseWrapper | Any = connections[DEFAULT_DB_ALIAS]
    if _is_application():
        connection.end_reading()


class ApplicationRoleMiddleware:
    """Every request works as the application role, whatever its process works as, and for no tenant at first."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with as_application():
            return self.get_response(request)
