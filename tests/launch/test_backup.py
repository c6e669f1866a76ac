"""A whole cluster, copied while it runs, is the same cluster somewhere else."""

import subprocess
from pathlib import Path

import psycopg

from launch.postgres import Postgres
from tests.launch.conftest import temporary_folder


def write(url: str, number: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (number int)")
        connection.execute("INSERT INTO kept VALUES (%s)", [number])


def base_backup(server: Postgres, to: Path) -> None:
    """As the account that the server runs as, which must own the copy."""
    server.account.own(to)
    command = [
        *(str(server.home / "bin/pg_basebackup"), "--host", str(server.sockets), "--username", "postgres"),
        *("--pgdata", str(to / server.data.name), "--checkpoint", "fast", "--wal-method", "stream"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd="/", **server.account.popen()
    )
    assert done.returncode == 0, done.stderr


def test_a_copy_of_a_running_server_starts_elsewhere(postgres: Postgres) -> None:
    write(postgres.url(), 1)
    with temporary_folder() as elsewhere:
        base_backup(postgres, elsewhere)
        write(postgres.url(), 2)  # after the backup
        copy = Postgres(elsewhere, durable=False)
        copy.start()
        try:
            with psycopg.connect(copy.url()) as connection:
                assert connection.execute("SELECT number FROM kept").fetchall() == [(1,)]
        finally:
            copy.stop()
