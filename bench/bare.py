"""The bare loop: claim a row, make that durable, POST, record. The least that any executor of this kind must do.

One process is ``python -m bench.bare ADDRESS PORT BATCH``: psycopg and http.client, no framework, no check, no audit,
no lease. The claim itself makes *dispatching* durable, so a batch costs two commits. It is told by NOTIFY.
"""

import http.client
import sys
import uuid

import psycopg

TABLE = """
    CREATE TABLE IF NOT EXISTS bench_bare (
        id uuid PRIMARY KEY, state text NOT NULL, due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        recorded_at timestamptz);
    CREATE INDEX IF NOT EXISTS bench_bare_ready ON bench_bare (due_at, id) WHERE state = 'ready';
    TRUNCATE bench_bare
"""
CLAIM = """
    UPDATE bench_bare SET state = 'dispatching' WHERE id IN (
        SELECT id FROM bench_bare WHERE state = 'ready' ORDER BY due_at, id LIMIT %s FOR UPDATE SKIP LOCKED)
    RETURNING id
"""
RECORD = "UPDATE bench_bare SET state = 'recorded', recorded_at = clock_timestamp() WHERE id = ANY(%s)"
NAME = "bench-bare"


def loop(address: str, port: int, batch: int) -> None:
    """One process, until it is stopped."""
    provider = provider_at(port)
    with psycopg.connect(address, autocommit=True, application_name=NAME) as database:
        database.execute("LISTEN bench_bare")
        while True:
            rows = [row for (row,) in database.execute(CLAIM, [batch])]
            for row in rows:
                call(provider, row)
            if rows:
                database.execute(RECORD, [rows])
            else:
                for _ in database.notifies(timeout=1, stop_after=1):
                    pass


def provider_at(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port)


def call(provider: http.client.HTTPConnection, row: uuid.UUID) -> None:
    headers = {"Idempotency-Key": str(row), "Content-Type": "application/json"}
    provider.request("POST", "/things", b"{}", headers)
    provider.getresponse().read()


if __name__ == "__main__":
    loop(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
