"""Whether this process lives (`/healthz`), and whether it can do its work (`/readyz`)."""

import threading
import time
from typing import Final

from celery import current_app
from django.db import Error, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError

from common import away
from common.content_keys import names_or_none
from config import observed

_ASKED: Final = ("workers", "sweep", "sealer", "content_keys")
_seen_migrated: list[bool] = []


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers; looks at nothing else, so a restart would help when it fails."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers, is migrated and takes changes, and contents can be sealed, else 503: that is all
    that pages and API need.

    The rest is named and does not count. Without a broker the sweep executes what is due; and without workers, sweep or
    sealer people can still ask and decide, and what they approved waits. Taking the web server out of service for it
    would help nobody. Everybody may ask, so this tells words and ages, and neither hosts nor versions.
    """
    database = _database()
    # Without any key nothing can be stored, shown or decided. Without one of several, the rest can.
    ready = database == "ok" and bool(names_or_none())
    # What cannot be asked is not known; that it was all right a moment ago is of no use.
    known = _alive() if database == "ok" else dict.fromkeys(_ASKED, ("unknown", None))
    known = {
        "database": (database, 0),
        "migrations": _migrations(database),
        "broker": (_broker(), 0),
        **known,
    }
    body = {
        "status": "ok" if ready else "unavailable",
        **{name: word for name, (word, _) in known.items()},
        "seconds": {name: None if age is None else round(age) for name, (_, age) in known.items()},
    }
    return JsonResponse(body, status=200 if ready else 503)


Word = tuple[str, float | None]
"""A word, and for how many seconds it has been so, or since what it tells was seen."""


def _migrations(database: str) -> Word:
    missing = {"not migrated": "missing", "down": "unknown"}.get(database, "ok")
    return missing, None if missing == "unknown" else 0


def _alive() -> dict[str, Word]:
    """Workers, sweep and sealer: `ok`; `stale`, they were there and show no sign any more; `none`, never seen. And
    whether they have the keys of contents.
    """
    try:
        with observed.reading():
            signs, (count, age) = observed.signs(), observed.unsealed()
            keys = _keys(signs)
    except Error:
        away.drop_failed_connection()
        return dict.fromkeys(_ASKED, ("unknown", None))
    sealer = ("stale" if age > observed.STALE_S else "ok", age if count else 0)
    return {
        "workers": _seen(signs, "worker"),
        "sweep": _seen(signs, "sweep"),
        "sealer": sealer,
        "content_keys": keys,
    }


def _keys(signs: list[observed.Sign]) -> Word:
    """`ok`; `missing`: contents lie under a key that this process, a worker or a sweep was not given; `unreadable`: no
    key can be made of what this process was given.
    """
    if not names_or_none():
        return "unreadable", 0
    return "missing" if observed.lack_keys(signs, observed.wrapped_with()) else "ok", 0


def _seen(signs: list[observed.Sign], kind: str) -> Word:
    newest = next((sign for sign in signs if sign.kind == kind), None)
    if newest is None:
        return "none", None
    return "ok" if newest.alive else "stale", newest.age


def _database() -> str:
    """`ok`, `down`, `not migrated`, or why it takes no changes: `read only`, `disk full`, `out of memory`."""
    try:
        if _read_only():
            return "read only"
        return (away.refused_lately() or disk.refusal()) if _migrated() else "not migrated"
    except Error as error:
        return away.cannot_write(error) or "down"
    finally:
        # A session keeps what it began with; this one is asked again, and must then tell what is true then.
        away.drop_failed_connection()


def _read_only() -> bool:
    """A standby, or a database that was made read-only; also after it began so and is so no longer for others."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW transaction_read_only")
        found = bool(cursor.fetchone()[0] == "on")
    if found:
        connection.close()
    return found


class Disk:
    """Whether the server can still write to its disk, tried at most every few seconds in one process.

    A result too large for the memory it may take goes to a temporary file, which is removed at once: it tells a full
    disk and changes nothing. A row written and taken back would not tell: it may fit into a page that is there.
    """

    every_s: Final = 5.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found, self._at = "ok", float("-inf")

    def refusal(self) -> str:
        """`ok`, or why it cannot."""
        with self._lock:
            if time.monotonic() - self._at >= self.every_s:
                self._found, self._at = self._try(), time.monotonic()
            return self._found

    def _try(self) -> str:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL work_mem = '64kB'")
                cursor.execute("SELECT count(*) FROM generate_series(1, 100000)")  # about 1.5 MB
        except Error as error:
            reason = away.cannot_write(error)
            if not reason:
                raise
            return reason
        return "ok"


disk: Final = Disk()


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
