"""What can happen to a database while the product runs: no connections, a crash, read-only, a full disk."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connections
from django.db.models import TextField
from django.db.models.functions import Cast, Length
from psycopg import sql

from audit.models import Event
from tests.workflows.later import as_superuser

_ENDED = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"


def _name() -> str:
    return str(connections["default"].settings_dict["NAME"])


@contextmanager
def beside() -> Iterator[psycopg.Connection]:
    """A superuser's connection to another database of the same server; this process gives up its own."""
    connections.close_all()
    settings = connections["owner"].settings_dict
    with psycopg.connect(
        # The tests' server forgets its last commits when it crashes, unless a session insists.
        host=settings["HOST"], user=settings["USER"], dbname="postgres", autocommit=True,
        options="-c synchronous_commit=on",
    ) as admin:  # fmt: skip
        yield admin


def _alter(change: str, *values: Any) -> None:
    """ALTER DATABASE, and new connections for everybody, which then see it."""
    with beside() as admin:
        statement = sql.SQL("ALTER DATABASE {} " + change)  # type: ignore[operator]
        admin.execute(statement.format(sql.Identifier(_name()), *values))
        admin.execute(_ENDED, [_name()])


@contextmanager
def read_only() -> Iterator[None]:
    """Every session may read and nobody may write."""
    _alter("SET default_transaction_read_only = on")
    try:
        yield
    finally:
        _alter("RESET default_transaction_read_only")


@contextmanager
def no_connections() -> Iterator[None]:
    """As when the server is gone: what is connected is cut, and nobody gets in."""
    _alter("ALLOW_CONNECTIONS false")
    try:
        yield
    finally:
        with beside() as admin:
            admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(sql.Identifier(_name())))


def crash() -> None:
    """SIGKILL to one server process: the server cuts all connections and recovers from its log, like after a crash."""
    connections.close_all()
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = int(cursor.fetchone()[0])
    os.kill(pid, signal.SIGKILL)
    connections.close_all()


class SmallDisk:
    """The database on a disk of 64 MB that can be filled and emptied."""

    def __init__(self, folder: Path) -> None:
        self.filler = folder / "filler"

    def fill(self) -> None:
        """No byte is left, and no event fits into a page that is there."""
        connections.close_all()
        with open(self.filler, "wb", buffering=0) as filler:
            for size in (1 << 20, 1 << 12, 1):
                while _written(filler, size):
                    pass
        _use_up_the_pages()

    def free(self) -> None:
        self.filler.unlink()


def _written(filler: Any, size: int) -> bool:
    try:
        return bool(filler.write(b"\0" * size) == size)
    except OSError:
        return False


_COPY = """
    INSERT INTO audit_event SELECT (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid()))).*
    FROM audit_event e WHERE id = %s
"""


def _use_up_the_pages() -> None:
    """Until the table of events, or an index of it, has no room for one more."""
    shortest = Event.objects.order_by(Length(Cast("body", TextField()))).values_list("pk", flat=True)[0]
    refused = 0
    while refused < 5:
        try:
            as_superuser(_COPY, shortest)
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") != "53100":
                raise
            refused += 1


@contextmanager
def small_disk() -> Iterator[SmallDisk]:
    """Moves the test's database onto a small disk and back. Only root may mount one."""
    folder = Path(tempfile.mkdtemp(prefix="placet-disk-", dir="/var/lib"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if os.geteuid() or mounted.returncode:
        folder.rmdir()
        pytest.skip("a disk of 64 MB cannot be mounted here: this needs root")
    disk = SmallDisk(folder)
    _autovacuum("off")  # it may remove a file that every new connection would then have to write anew
    try:
        _move_to(folder)
        yield disk
    finally:
        disk.filler.unlink(missing_ok=True)
        _move_back()
        _autovacuum("on")
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def _autovacuum(word: str) -> None:
    with beside() as admin:
        admin.execute(sql.SQL("ALTER SYSTEM SET autovacuum = {}").format(sql.SQL(word)))  # type: ignore[arg-type]
        admin.execute("SELECT pg_reload_conf()")


def _move_to(folder: Path) -> None:
    with beside() as admin:
        place = folder / "space"
        place.mkdir()
        row = admin.execute("SHOW data_directory").fetchone()
        assert row is not None
        owner = os.stat(row[0])
        shutil.chown(place, owner.st_uid, owner.st_gid)
        folder.chmod(0o755)
        place.chmod(0o700)
        admin.execute(sql.SQL("CREATE TABLESPACE small LOCATION {}").format(str(place)))
        admin.execute(_ENDED, [_name()])
        admin.execute(sql.SQL("ALTER DATABASE {} SET TABLESPACE small").format(sql.Identifier(_name())))


def _move_back() -> None:
    _alter("ALLOW_CONNECTIONS false")
    with beside() as admin:
        admin.execute(sql.SQL("ALTER DATABASE {} SET TABLESPACE pg_default").format(sql.Identifier(_name())))
        admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(sql.Identifier(_name())))
        admin.execute("DROP TABLESPACE small")
