"""Django's PostgreSQL backend for the application role, whose transactions say for which tenant they are.

The tenant is set with ``SET LOCAL``, in the round trip that begins the transaction, so it costs nothing and ends with
it: a connection that is used again knows no tenant. What is read outside of Django's transactions happens in one short,
read-only transaction of the request, which ends before an action begins, before a wait, and with the request.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import Error
from django.db.backends.postgresql import base
from django.db.backends.utils import debug_transaction

from common.dbroles import current_tenant
from common.web import is_read

SETTING = "placet.tenant"


class DatabaseWrapper(base.DatabaseWrapper):
    """One connection of the application role."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(self._for_the_tenant)
        self._reading: tuple[Any, UUID] | None = None
        """The connection and the tenant of the open reading transaction."""

    # --- Django's transactions ----------------------------------------------------------------
    def _start_transaction_under_autocommit(self) -> None:
        """Django's hook for backends that begin by themselves; it would send BEGIN alone."""
        tenant = current_tenant()
        end, self._reading = "COMMIT; " if self._is_reading() else "", None
        with debug_transaction(self, "BEGIN"):
            self._send(end + _begin(tenant))

    # --- reading outside of them --------------------------------------------------------------
    def begin_reading(self) -> None:
        """Begin the reading transaction, if there is a tenant to read for and no other transaction is open."""
        tenant = current_tenant()
        if tenant is None or self.in_atomic_block:
            return
        self.close_if_health_check_failed()
        self.ensure_connection()  # it is not in autocommit before
        if self.autocommit:
            self._begin_reading(tenant)

    def end_reading(self) -> None:
        """Commit the reading transaction, if there is one."""
        if self._is_reading():
            self._finish("COMMIT")
        self._reading = None

    def _is_reading(self) -> bool:
        """Of a connection that was lost, nothing is left."""
        return self._reading is not None and self._reading[0] is self.connection

    def _begin_reading(self, tenant: UUID) -> None:
        if self._is_reading() and self._reading != (self.connection, tenant):
            self.end_reading()
        if not self._is_reading():
            self._send(_begin(tenant, " READ ONLY"))
            self._reading = (self.connection, tenant)

    def _for_the_tenant(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        """Around every statement. Outside of Django's transactions a read joins the reading one; a change is alone."""
        if self.in_atomic_block or not self.autocommit:
            return execute(sql, params, many, context)
        tenant, reads = current_tenant(), is_read(str(sql))
        if tenant is None or not reads:
            self.end_reading()
        if tenant is None:
            return execute(sql, params, many, context)
        if reads:
            self._begin_reading(tenant)
        else:
            self._send(_begin(tenant))
        try:
            found = execute(sql, params, many, context)
        except BaseException:
            if not self._is_sending_several():
                self._reading = None
                self._finish("ROLLBACK")
            raise
        if not reads:
            self._send("COMMIT")
        return found

    def _is_sending_several(self) -> bool:
        """Then nothing is heard until all were sent; `common.pipelined.ask` sees to the rest."""
        return self.connection is not None and bool(self.connection.pgconn.pipeline_status)

    def close_if_health_check_failed(self) -> None:
        """The first BEGIN on a connection shows as well as ``SELECT 1`` whether its server is still there."""
        tenant = current_tenant()
        django: Any = self  # the stubs do not know these attributes
        due = django.health_check_enabled and not django.health_check_done and self.connection is not None
        if not due or tenant is None or self.in_atomic_block or not self.autocommit:
            super().close_if_health_check_failed()
            return
        try:
            self._begin_reading(tenant)
        except Error:
            self.close()
        django.health_check_done = True

    # --- statements of our own ----------------------------------------------------------------
    def _send(self, sql: str) -> None:
        """Several statements in one round trip: PostgreSQL's simple protocol, which psycopg uses without parameters."""
        with self.wrap_database_errors:
            self.connection.execute(sql)

    def _finish(self, sql: str) -> None:
        """End a transaction. What cannot even be ended goes with its connection."""
        try:
            self._send(sql)
        except Error:
            self.close()


def _begin(tenant: UUID | None, mode: str = "") -> str:
    """A UUID's own text has nothing that would need quoting; a tenant that is something else is an error here."""
    if tenant is None:
        return "BEGIN" + mode
    return f"BEGIN{mode}; SET LOCAL {SETTING} = '{UUID(str(tenant))}'"
