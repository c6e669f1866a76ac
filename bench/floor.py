"""What the machine can do in the same minute: commits of the database, and the bare loop of `bench.bare`."""

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from subprocess import Popen
from typing import Any

import psycopg

from bench.bare import NAME, TABLE
from bench.numbers import Numbers, percentiles
from bench.site import Site
from common.ids import new_id
from launch.process import stop

CONNECTIONS = 4
_APPROVE = "UPDATE bench_bare SET state = 'ready', due_at = clock_timestamp() WHERE id = %s"
_APPROVE_ALL = "UPDATE bench_bare SET state = 'ready', due_at = clock_timestamp()"
_RECORDED = """
    SELECT count(*), extract(epoch FROM max(recorded_at))::float8 FROM bench_bare WHERE state = 'recorded'
"""
_IDLE = """
    SELECT count(*) FROM pg_stat_activity
    WHERE application_name = %s AND state = 'idle' AND query LIKE '%%SKIP LOCKED%%'
"""


def commit_rate(address: str, *, seconds: float = 2) -> float:
    """Transactions per second of four connections, each one durable INSERT and UPDATE of a row."""
    with psycopg.connect(address, autocommit=True) as first:
        first.execute(
            "CREATE TABLE IF NOT EXISTS bench_floor (id uuid PRIMARY KEY, n int); TRUNCATE bench_floor"
        )
    until = time.monotonic() + seconds

    def commits(_: int) -> int:
        done = 0
        with psycopg.connect(address, autocommit=True) as mine:
            while time.monotonic() < until:
                row = new_id()
                with mine.transaction():
                    mine.execute("INSERT INTO bench_floor VALUES (%s, 0)", [row])
                    mine.execute("UPDATE bench_floor SET n = 1 WHERE id = %s", [row])
                done += 1
        return done

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return sum(pool.map(commits, range(CONNECTIONS))) / seconds


class Bare:
    """Runs the bare loop on the site's server and sink, in a database of its own."""

    def __init__(self, site: Site) -> None:
        self.site, self.address = site, site.postgres.url()

    def backlog(self, *, processes: int, batch: int, seconds: float) -> float:
        """Everything approved beforehand: rows per second, from the first call to the last record."""
        self.fill(int(20_000 * seconds))
        with self._running(processes, batch), self._connection() as database:
            database.execute(_APPROVE_ALL)
            database.execute("NOTIFY bench_bare")
            time.sleep(seconds)
        return self.recorded(since=None)

    def pipeline(self, *, processes: int, batch: int, seconds: float, approvers: int) -> float:
        """Approved by as many connections as the product has clients, while the processes run; rows per second."""
        ids = self.fill(int(10_000 * seconds))
        with self._running(processes, batch), ThreadPoolExecutor(approvers) as pool:
            began, until = time.time(), time.monotonic() + seconds
            list(pool.map(lambda start: self._approve_some(ids[start::approvers], until), range(approvers)))
        return self.recorded(since=began)

    def latency(self, rows: int) -> Numbers:
        """From before the approval's commit to the arrival at the provider, one at a time."""
        ids = self.fill(rows)
        with self._running(1, 1), self._connection() as database:
            return percentiles([self._one(database, row) for row in ids])

    def _one(self, database: psycopg.Connection, row: uuid.UUID) -> float:
        began = time.time()
        self._approve(database, row)
        arrived = self.site.arrival(str(row))
        time.sleep(0.005)  # the process is to have recorded it, and to be waiting again
        return arrived - began

    def fill(self, rows: int) -> list[uuid.UUID]:
        self.site.forget_arrivals()
        with self._connection() as database:
            database.execute(TABLE)
            database.execute(
                "INSERT INTO bench_bare (id, state) SELECT gen_random_uuid(), 'waiting' FROM generate_series(1, %s)",
                [rows],
            )
            database.execute("VACUUM ANALYZE bench_bare")
            return [row for (row,) in database.execute("SELECT id FROM bench_bare")]

    def _approve_some(self, rows: list[uuid.UUID], until: float) -> None:
        with self._connection() as database:
            for row in rows:
                if time.monotonic() > until:
                    return
                self._approve(database, row)

    def _approve(self, database: psycopg.Connection, row: uuid.UUID) -> None:
        with database.transaction():
            database.execute(_APPROVE, [row])
            database.execute("NOTIFY bench_bare")

    def recorded_rows(self) -> int:
        with self._connection() as database:
            return int(_value(database, "SELECT count(*) FROM bench_bare WHERE state = 'recorded'"))

    def recorded(self, *, since: float | None) -> float:
        """Rows per second since then, or since the first call."""
        with self._connection() as database:
            row = database.execute(_RECORDED).fetchone()
        count, last = row if row and row[0] else (0, 0.0)
        first = since or min(times[0] for times in self.site.arrivals().values())
        return count / (last - first) if count else 0.0

    @contextmanager
    def _running(self, processes: int, batch: int) -> Iterator[None]:
        arguments = ("-m", "bench.bare", self.address, str(self.site.sink_port), str(batch))
        running = [self.site.start(*arguments) for _ in range(processes)]
        try:
            self._wait_until_idle(running)
            yield
        finally:
            for process in running:
                stop(process, 15, grace=5)

    def _wait_until_idle(self, running: list[Popen[bytes]]) -> None:
        with self._connection() as database:
            while _value(database, _IDLE, NAME) < len(running):
                if any(process.poll() is not None for process in running):
                    raise SystemExit(f"the bare loop ended: {self.site.logs()}")
                time.sleep(0.02)

    def _connection(self) -> psycopg.Connection:
        return psycopg.connect(self.address, autocommit=True)


def _value(database: psycopg.Connection, query: str, *parameters: object) -> Any:
    row = database.execute(query, parameters or None).fetchone()
    return row[0] if row else None
