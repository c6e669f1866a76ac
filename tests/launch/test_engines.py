"""The engines: kept data, stale pid files, two starts on one folder, no orphans."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from launch import LaunchError
from launch.places import socket_dir
from launch.postgres import Postgres
from launch.valkey import Valkey
from tests.processes import ROOT


def kill(engine: Postgres | Valkey) -> None:
    assert engine.process is not None
    engine.process.kill()
    engine.process.wait(5)


def test_postgres_keeps_what_was_committed_before_a_kill(folder: Path) -> None:
    server = Postgres(folder)
    server.start()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    kill(server)
    assert not server.alive()
    server.start()
    with psycopg.connect(server.url()) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
    server.stop()


def test_second_postgres_on_one_folder_is_refused(postgres: Postgres) -> None:
    with pytest.raises(LaunchError, match="already runs on"):
        Postgres(postgres.base, durable=False).start()
    assert postgres.alive()


def test_postgres_listens_on_a_private_socket_only(postgres: Postgres) -> None:
    with psycopg.connect(postgres.url()) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    assert stat.S_IMODE(postgres.sockets.stat().st_mode) == 0o700


def test_root_leaves_closed_folders_closed(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root lends its server another account")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = Postgres(closed / "data", durable=False)
    server.start()
    server.stop()
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert server.base.parent == Path("/var/lib")
    shutil.rmtree(server.base)


def test_data_that_cannot_be_reached_any_more_is_not_replaced(folder: Path) -> None:
    if os.geteuid():
        pytest.skip("only root lends its server another account")
    server = Postgres(folder / "data", durable=False)
    server.start()
    server.stop()
    folder.chmod(0o700)
    with pytest.raises(LaunchError, match=r"cannot reach the data in .*/data any more"):
        server.start()
    folder.chmod(0o755)
    server.start()
    server.stop()


def test_valkey_comes_back_with_its_queue(valkey: Valkey) -> None:
    command(valkey, "LPUSH queue one")
    time.sleep(1.1)  # the append-only file is synced every second
    kill(valkey)
    valkey.start()
    assert command(valkey, "LLEN queue") == b":1\r\n"


def test_second_valkey_on_one_folder_is_refused(valkey: Valkey) -> None:
    with pytest.raises(LaunchError, match="already answers"):
        Valkey(valkey.base).start()


def test_engines_die_with_a_killed_parent(folder: Path) -> None:
    script = """
import sys, time
from pathlib import Path
from launch.postgres import Postgres
from launch.valkey import Valkey
for engine in (Postgres(Path(sys.argv[1]), durable=False), Valkey(Path(sys.argv[1]))):
    engine.start()
    print(engine.process.pid, end=" ", flush=True)
print(flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.send_signal(signal.SIGKILL)
    parent.wait(5)
    parent.stdout.close()
    end = time.monotonic() + 10
    while (left := [pid for pid in pids if runs(pid)]) and time.monotonic() < end:
        time.sleep(0.05)
    assert left == []


def test_long_paths_get_a_short_socket_folder(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    short = socket_dir(deep, "valkey.sock")
    assert short != deep
    assert len(str(short)) < 60
    assert stat.S_IMODE(short.stat().st_mode) == 0o700
    short.rmdir()


def runs(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def command(valkey: Valkey, text: str) -> bytes:
    import socket

    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(valkey.socket))
        connection.sendall(text.encode() + b"\r\n")
        return connection.recv(100)
