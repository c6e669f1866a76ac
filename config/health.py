"""Whether this process lives (`/healthz`), and whether it can do its work (`/readyz`)."""

from celery import current_app
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError

_seen_migrated: list[bool] = []


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers; looks at nothing else, so a restart would help when it fails."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and is migrated, else 503.

    A broker that is down is reported and does not count: the sweep executes what is due without it.
    """
    database = _database()
    ready = database == "ok"
    body = {"status": "ok" if ready else "unavailable", "database": database, "broker": _broker()}
    return JsonResponse(body, status=200 if ready else 503)


def _database() -> str:
    """`ok`, `down` or `not migrated`."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return "ok" if _migrated() else "not migrated"
    except DatabaseError:
        return "down"


def _migrated() -> bool:
    """Whether every migration of this release is applied. Only a yes is remembered: it stays true."""
    if not _seen_migrated:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return False
        _seen_migrated.append(True)
    return True


def _broker() -> str:
    """`ok` or `down`; waits no longer than a second."""
    try:
        with current_app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, interval_start=0, timeout=1)
    except (OSError, OperationalError):
        return "down"
    return "ok"
