"""The two commands as a newcomer types them."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.launch.conftest import temporary_folder
from tests.launch.test_engines import runs
from tests.processes import ROOT, free_port

pytestmark = pytest.mark.e2e

# What the harness sets for the tests must not reach the launcher.
_ENV = {
    key: value
    for key, value in os.environ.items()
    if not key.startswith(("DATABASE_", "REDIS_", "PLACET_", "DJANGO_"))
}


class Up:
    """A running `./placet up`, started from another folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.data, self.port = folder, folder / "data", free_port()
        self.out = folder / "out"
        with open(self.out, "wb") as out:
            self.process = subprocess.Popen(
                [str(ROOT / "placet"), "up", "--data-dir", "data", "--port", str(self.port), *options],
                cwd=folder,
                env=_ENV,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, text: str, *, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while text not in self.out.read_text():
            assert self.process.poll() is None, self.out.read_text()
            assert time.monotonic() < end, self.out.read_text()
            time.sleep(0.1)

    def descendants(self) -> set[int]:
        """All processes below the launcher."""
        parents = {}
        for stat_file in Path("/proc").glob("[0-9]*/stat"):
            try:
                pid, rest = stat_file.read_text().split(" ", 1)
            except OSError:
                continue
            parents[int(pid)] = int(rest.rpartition(")")[2].split()[1])
        found, size = {self.process.pid}, 0
        while len(found) != size:
            size = len(found)
            found |= {pid for pid, parent in parents.items() if parent in found}
        return found - {self.process.pid}

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = _ENV | {"PLACET_DATA_DIR": str(self.data)}
        return subprocess.run(
            [str(ROOT / "placet"), *arguments],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def up() -> Generator[Up]:
    with temporary_folder() as folder:
        started = Up(folder)
        try:
            started.wait_for("Placet runs at")
            yield started
        finally:
            below = started.descendants()
            started.process.kill()
            started.process.wait(5)
            wait_until_gone(below)


def wait_until_gone(pids: set[int], *, seconds: float = 15) -> set[int]:
    end = time.monotonic() + seconds
    while (left := {pid for pid in pids if runs(pid)}) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def get(port: int, path: str) -> dict[str, str]:
    with urllib.request.urlopen(f"http://localhost:{port}{path}", timeout=10) as response:
        return json.load(response)


def test_says_where_it_runs(up: Up) -> None:
    said = up.out.read_text()
    assert f"Placet runs at http://localhost:{up.port} " in said
    for name, password in demo(up)["users"]["reviewer"].items():
        assert re.search(rf"reviewer +{name} +{password}\n", said)
    assert get(up.port, "/healthz") == {"status": "ok"}
    wait_until_ready(up)


def test_provider_knows_our_key(up: Up) -> None:
    keys = json.loads((up.data / "refunds-keys.json").read_text())
    request = urllib.request.Request(
        f"{demo(up)['provider_url']}/orders/9001", headers={"Authorization": f"Bearer {keys['demo']}"}
    )
    with urllib.request.urlopen(request, timeout=5) as response:
        assert json.load(response)["id"] == "9001"


def test_cases_of_the_demo_become_proposals(up: Up) -> None:
    """Worker and sweep work, and reach the provider: a program can ask for what waits."""
    request = urllib.request.Request(
        f"http://localhost:{up.port}/api/v1/proposals?status=pending",
        headers={"Authorization": f"Bearer {demo(up)['tokens']['proposer']}"},
    )
    end = time.monotonic() + 60
    while True:
        with urllib.request.urlopen(request, timeout=10) as response:
            answer = json.load(response)
        if len(json.dumps(answer)) > 1000:
            return
        assert time.monotonic() < end, (
            answer,
            up.out.read_text(),
            (up.data / "postgres.log").read_text()[-3000:],
        )
        time.sleep(0.5)


def demo(up: Up) -> dict[str, Any]:
    return json.loads((up.data / "demo.json").read_text())


def test_private_files(up: Up) -> None:
    for name in (
        "run.env",
        "secrets.json",
        "demo.json",
        "refunds-keys.json",
        "provider-keys.json",
        "logs/web.log",
        "signer/key.pem",
    ):
        assert stat.S_IMODE((up.data / name).stat().st_mode) == 0o600


def test_other_commands_use_its_engines(up: Up) -> None:
    done = up.command(
        "shell",
        "--no-imports",
        "-c",
        "from django.db import connection as c; print(c.settings_dict['USER'], c.cursor())",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("placet_system ")


def test_second_up_is_refused_with_the_address_of_the_first(up: Up) -> None:
    done = up.command("up", "--data-dir", "data")
    assert done.returncode == 1
    assert f"Placet already runs on {up.data} at http://localhost:{up.port}" in done.stderr


def test_taken_port_is_refused(up: Up, tmp_path: Path) -> None:
    done = up.command("up", "--data-dir", str(tmp_path / "other"), "--port", str(up.port))
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        f"Port {up.port} cannot be used: Address already in use. Choose another with --port." in done.stderr
    )


def test_the_signer_signs_and_is_told_nothing_else(up: Up) -> None:
    end = time.monotonic() + 60
    while not (said := up.command("signer", "status")).stdout:
        assert time.monotonic() < end, said.stderr
        time.sleep(1)
    assert "events signed at" in said.stdout
    key = up.command("signer", "key").stdout.strip()
    assert key == (up.data / "signer/signer.pub").read_text().strip()
    assert key.startswith("placet/signer+")
    (pid,) = (p for p in up.descendants() if "-m\0signer\0run" in Path(f"/proc/{p}/cmdline").read_text())
    told = dict(pair.split("=", 1) for pair in Path(f"/proc/{pid}/environ").read_text().split("\0") if pair)
    assert {name for name in told if name.startswith(("DATABASE_", "PLACET_", "REDIS_"))} == {
        "DATABASE_SIGNER_URL", "PLACET_SIGNER_DIR",
    }  # fmt: skip


def test_only_the_signer_is_told_its_address(up: Up) -> None:
    for words in ("gunicorn", "\0worker\0", "\0sweep\0", "\0beat\0"):
        for pid in up.descendants():
            if words in Path(f"/proc/{pid}/cmdline").read_text():
                assert "DATABASE_SIGNER_URL" not in Path(f"/proc/{pid}/environ").read_text()


@pytest.mark.parametrize("name", ["web", "worker", "beat", "sweep", "provider", "signer"])
def test_killed_process_is_started_again(up: Up, name: str) -> None:
    words = {"web": "gunicorn", "provider": "examples.refunds.provider"}.get(name, f"\0{name}\0")
    before = {pid for pid in up.descendants() if words in Path(f"/proc/{pid}/cmdline").read_text()}
    os.kill(min(before), signal.SIGKILL)
    up.wait_for(f"{name} ended with -9")
    assert wait_until_gone(before) == set()
    wait_until_ready(up)


@pytest.mark.parametrize("name", ["postgres", "valkey"])
def test_killed_engine_is_started_again(up: Up, name: str) -> None:
    program = {"postgres": "bin/postgres\0-D", "valkey": "valkey-server"}[name]
    pids = [pid for pid in up.descendants() if program in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(min(pids), signal.SIGKILL)
    up.wait_for(f"{name} has ended; starting it again")
    wait_until_ready(up)


def wait_until_ready(up: Up, *, seconds: float = 90) -> None:
    """A process that starts again needs its time on a busy machine; callers wait at the launcher's socket."""
    end = time.monotonic() + seconds
    names = ("database", "migrations", "broker", "workers", "sweep", "sealer")
    wanted = {"status": "ok", **dict.fromkeys(names, "ok")}
    while not (answer := ready(up.port)).items() >= wanted.items():
        assert time.monotonic() < end, (answer, up.out.read_text())
        time.sleep(0.2)


def ready(port: int) -> dict[str, str]:
    """The answer of /readyz, also when it says no; or why there is none."""
    try:
        return get(port, "/readyz")
    except urllib.error.HTTPError as error:
        return json.load(error)
    except OSError as error:
        return {"error": str(error)}


def test_killed_launcher_leaves_nothing_and_the_next_start_keeps_the_data(folder: Path) -> None:
    first = Up(folder, "--no-demo")
    first.wait_for("Placet runs at")
    below = first.descendants()
    assert len(below) >= 6
    secrets = (first.data / "secrets.json").read_text()
    first.process.kill()
    first.process.wait(5)
    assert wait_until_gone(below) == set()

    second = Up(folder, "--no-demo")
    second.wait_for("Placet runs at")
    assert (second.data / "secrets.json").read_text() == secrets
    below = second.descendants()
    begun = time.monotonic()
    os.kill(second.process.pid, signal.SIGINT)
    assert second.process.wait(20) == 0
    assert time.monotonic() - begun < 12
    assert wait_until_gone(below, seconds=1) == set()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", second.port)) != 0


def test_command_without_a_running_launcher_brings_its_own_engines(folder: Path) -> None:
    env = _ENV | {"PLACET_DATA_DIR": str(folder / "data")}
    command = [str(ROOT / "placet"), "migrate", "audit", "--plan"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "audit.0001_initial" in done.stdout
    assert not (folder / "data" / "run.env").exists()
