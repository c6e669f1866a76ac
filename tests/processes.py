"""Real worker, sweep and provider processes for tests, on the test's own database and broker."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import redis
from django.db import connections

from launch.process import die_with_parent, stop
from launch.up import QUIET

ROOT = Path(__file__).resolve().parent.parent


def test_environment() -> dict[str, str]:
    """The environment of a process that works on this test's database with the roles of production."""
    env = {key: value for key, value in os.environ.items() if key != "DATABASE_OWNER_URL"}
    name = connections["default"].settings_dict["NAME"]
    variables = ("DATABASE_URL", "DATABASE_SYSTEM_URL")
    # urlunsplit would drop the empty host of a socket's address
    addresses = {key: urlunsplit(urlsplit(env[key])._replace(path=f"/{name}")) for key in variables}
    return env | addresses | {"PLACET_LOG_LEVEL": "INFO"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Processes:
    """Starts processes and stops what it started. Their output is in `logs`, one file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []
        self.env = test_environment()

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """Starts a command in the checkout; give it with its interpreter."""
        log = self.folder / f"{name}-{len(self.running)}.log"
        with open(log, "ab") as out:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        self.running.append(process)
        return process

    def manage(self, *arguments: str) -> subprocess.Popen[bytes]:
        return self.start(arguments[0], sys.executable, "manage.py", *arguments)

    def sweep(self, *arguments: str) -> subprocess.Popen[bytes]:
        return self.manage("sweep", *arguments)

    def worker(self, *, concurrency: int = 1) -> subprocess.Popen[bytes]:
        """A Celery worker. Messages of earlier tests are thrown away first."""
        self.empty_broker()
        options = ("-c", str(concurrency), *QUIET, "-l", "INFO")
        return self.start("worker", sys.executable, "-m", "celery", "-A", "config", "worker", *options)

    def provider(self, *arguments: str) -> str:
        """The refund example's provider; its address, once it accepts connections."""
        port = free_port()
        data = self.folder / "provider"
        data.mkdir(exist_ok=True)
        module = ("-m", "examples.refunds.provider", "--data", str(data), "--port", str(port), *arguments)
        process = self.start("provider", sys.executable, *module)
        self._wait_for_port(process, port)
        return f"http://127.0.0.1:{port}"

    def empty_broker(self) -> None:
        address = self.env["REDIS_URL"].removeprefix("redis+socket")
        path, _, query = address.removeprefix("://").partition("?")
        with redis.Redis(unix_socket_path=path, db=int(query.removeprefix("virtual_host="))) as client:
            client.flushdb()

    def log(self, name: str) -> str:
        """What all processes of that name have written."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob(f"{name}-*.log")))

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """SIGKILL, also to the children."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(5)

    def stop_all(self) -> None:
        for process in reversed(self.running):
            stop(process, signal.SIGTERM, grace=10)

    def _wait_for_port(self, process: subprocess.Popen[bytes], port: int, *, timeout: float = 20) -> None:
        end = time.monotonic() + timeout
        while time.monotonic() < end and process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2).close()
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError(f"the provider did not start:\n{self.log('provider')}")
