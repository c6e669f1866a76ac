"""When tokens were last used: collected by each process and written about once a minute, beside all requests.

No request waits for it, a read changes nothing, and a row may be locked by somebody else. So a use is noted in memory,
and a thread of the process writes what came together in one statement, without rows that are locked. What was not
written when a process was killed is lost: at most the last minute of the answer to *is this still used*.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

import structlog
from django.db import connections

from common.prepared import fetch
from common.tx import system_action

log = structlog.get_logger(__name__)

EVERY_S: Final = 60.0
Write = Callable[[Mapping[tuple[UUID, UUID], float]], None]


class Usage:
    """Collects (tenant, token) with the process's own clock, and gives them to ``write`` as ages in seconds."""

    def __init__(self, write: Write, every_s: float = EVERY_S) -> None:
        self._write, self._every_s = write, every_s
        self.forget_parent()

    def forget_parent(self) -> None:
        """After a fork: the thread stayed with the parent, which also writes what it had noted."""
        self._used: dict[tuple[UUID, UUID], float] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def note(self, tenant_id: UUID, token_id: UUID) -> None:
        """A token was used just now. Returns at once, never raises."""
        with self._lock:
            self._used[tenant_id, token_id] = time.monotonic()
            if self._every_s and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name="token-usage", daemon=True)
                self._thread.start()

    def flush(self) -> int:
        """Write what came together; how many tokens."""
        with self._lock:
            used, self._used = self._used, {}
        if used:
            now = time.monotonic()
            self._write({key: now - at for key, at in used.items()})
        return len(used)

    def _run(self) -> None:
        while True:
            time.sleep(self._every_s)
            try:
                self.flush()
            except Exception as error:  # noqa: BLE001 - whatever the database says: the next use is noted again
                log.warning("token_use_not_written", error=type(error).__name__)
            finally:
                connections.close_all()  # of this thread: a minute is long for an idle connection


_WRITE = """
    UPDATE access_apitoken t SET last_used_at = u.at
    FROM (
        SELECT r.id, clock_timestamp() - make_interval(secs => n.age) AS at
        FROM access_apitoken r
        JOIN unnest(%s::uuid[], %s::uuid[], %s::float8[]) AS n(tenant_id, id, age)
            ON n.tenant_id = r.tenant_id AND n.id = r.id
        ORDER BY r.id FOR NO KEY UPDATE OF r SKIP LOCKED
    ) u
    WHERE t.id = u.id AND (t.last_used_at IS NULL OR t.last_used_at < u.at)
    RETURNING t.id
"""


@system_action
def write_usage(ages: Mapping[tuple[UUID, UUID], float]) -> None:
    """Of all tenants at once. It is no event: nothing about the token's rights changes."""
    fetch(_WRITE, [[key[0] for key in ages], [key[1] for key in ages], list(ages.values())])


usage = Usage(write_usage)
os.register_at_fork(after_in_child=usage.forget_parent)
