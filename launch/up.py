"""`./placet up`: everything that the product needs on one machine, until Ctrl-C."""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from types import FrameType
from typing import NoReturn

from launch import LaunchError, signer
from launch.datadir import ROOT, DataDir
from launch.environment import Backends, for_process, for_signer, product_environment
from launch.greeting import greeting
from launch.process import die_with_parent
from launch.provider import Provider
from launch.supervisor import Program, Supervisor

_FIRST_PORT, _PORTS_TRIED = 8000, 1000
_READY_WITHIN = 60.0
_PYTHON = sys.executable
# Workers need not know of each other: what is due stands in the database.
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")


def say(text: str) -> None:
    print(text, flush=True)


def up(options: argparse.Namespace) -> int:
    """Runs until a signal comes. Raises LaunchError when something cannot start."""
    os.umask(0o077)  # what the product writes is for this user only
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _interrupt)
    data = DataDir(options.data_dir)
    if not data.take():
        raise LaunchError(_already_running(data))
    run = Run(data, options)
    try:
        run.start()
        while True:
            run.supervisor.check()
            time.sleep(0.2)
    except KeyboardInterrupt as interrupt:
        say(f"\nStopping ({interrupt})")
        return 0
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave half of it running
        run.stop()


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)


def _already_running(data: DataDir) -> str:
    address = (data.published() or {}).get("PLACET_BASE_URL", "")
    where = f" at {address}" if address else ""
    return f"Placet already runs on {data.path}{where}. Stop it, or take another folder: --data-dir FOLDER"


class Run:
    """One `up`, from taking the data directory to giving it back."""

    def __init__(self, data: DataDir, options: argparse.Namespace) -> None:
        self.data, self.options = data, options
        self.begun = time.monotonic()
        self.demo_file = data.path / "demo.json"
        self.backends = Backends(data, os.environ)
        self.supervisor = Supervisor(say)

    def start(self) -> None:
        self.listener = listen(self.options.port)
        port = int(self.listener.getsockname()[1])
        self.data.remember("ports.json", "web", port)
        say("Starting the engines")
        addresses = self._start_backends()
        self.env = addresses | product_environment(self.data, os.environ, port=port)
        say("Preparing the database")
        self._prepare()
        self._start_programs()
        self.data.publish(self.env)
        if self.options.demo:
            self._make_demo()
        self._wait_until_ready(port)
        seconds = time.monotonic() - self.begun
        say(
            greeting(
                self.env["PLACET_BASE_URL"],
                self.demo_file if self.options.demo else None,
                self.data.path,
                seconds,
            )
        )

    def stop(self) -> None:
        self.supervisor.stop()
        self.backends.stop()
        self.data.release()

    def _start_backends(self) -> dict[str, str]:
        addresses = self.backends.start()
        for engine in self.backends.engines:
            self.supervisor.watch_engine(engine)
        return addresses

    def _prepare(self) -> None:
        """Migrates as the owner and collects the static files, side by side."""
        collect = self._manage("collectstatic", "--no-input", extra={"PLACET_COLLECT_STATIC": "true"})
        migrate = self._manage("migrate", "--database", "owner", "--no-input", owner=True)
        self._finish("migrate", migrate)
        self._finish("register_definitions", self._manage("register_definitions"))
        self._finish("collectstatic", collect)

    def _make_demo(self) -> None:
        say("Making the demo")
        where = ("--provider-url", self.env["PLACET_REFUNDS_URL"], "--base-url", self.env["PLACET_BASE_URL"])
        self._finish("demo", self._manage("demo", *where, "--out", str(self.demo_file)))

    def _start_programs(self) -> None:
        if self.options.demo or self.demo_file.exists():
            provider = Provider(self.data)
            self.env |= provider.environment()
            self._run("provider", *provider.command(), last=True)
        descriptor = self.listener.fileno()
        self._run("web", *_gunicorn(descriptor), pass_fds=[descriptor], serves=True)
        self._run("worker", *_celery("worker", "-c", str(self.options.workers), *QUIET))
        self._run("sweep", "manage.py", "sweep")
        schedule = str(self.data.path / "beat-schedule")
        self._run("beat", *_celery("beat", "--pidfile", "", "--schedule", schedule))
        if self.options.signer:
            self._run_signer()

    def _run_signer(self) -> None:
        """It gets its own folder and its role's address, and nothing of what the others are told."""
        env = for_signer(self.env, signer.folder(self.data, os.environ))
        command = [_PYTHON, *signer.MODULE, "run"]
        self.supervisor.run(Program("signer", command, env, self.data.log("signer"), ROOT))

    def _run(
        self,
        name: str,
        *arguments: str,
        pass_fds: list[int] | None = None,
        last: bool = False,
        serves: bool = False,
    ) -> None:
        env = for_process(self.env) | ({"PLACET_DATABASE_ROLE": "app"} if serves else {})
        log = self.data.log(name)
        self.supervisor.run(Program(name, [_PYTHON, *arguments], env, log, ROOT, pass_fds or [], last))

    def _manage(
        self, *arguments: str, owner: bool = False, extra: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        log = self.data.log(arguments[0])
        with open(log, "wb") as out:
            return subprocess.Popen(
                [_PYTHON, "manage.py", *arguments],
                env=for_process(self.env, owner=owner) | (extra or {}),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )

    def _finish(self, name: str, process: subprocess.Popen[bytes]) -> None:
        if process.wait():
            tail = self.data.log(name).read_text(errors="replace")[-2000:]
            raise LaunchError(f"`manage.py {name}` failed:\n{tail}")

    def _wait_until_ready(self, port: int) -> None:
        end = time.monotonic() + _READY_WITHIN
        while not _answers(f"http://127.0.0.1:{port}/healthz"):
            if time.monotonic() > end:
                raise LaunchError(f"The web server does not answer, see {self.data.log('web')}")
            self.supervisor.check()
            time.sleep(0.1)


def listen(port: int | None) -> socket.socket:
    """The web server's socket: on `port`, or on the first free one from 8000.

    It stays open here and is handed to the web server, so nobody can take the port while the
    server is being started again, and callers wait instead of being refused.
    """
    for candidate in [port] if port is not None else range(_FIRST_PORT, _FIRST_PORT + _PORTS_TRIED):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", candidate))
            listener.listen(256)
        except OSError as error:
            listener.close()
            if port is not None:
                raise LaunchError(
                    f"Port {port} cannot be used: {error.strerror}. Choose another with --port."
                ) from error
        else:
            return listener
    raise LaunchError(f"No port from {_FIRST_PORT} on is free. Choose one with --port.")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _gunicorn(descriptor: int) -> list[str]:
    return [
        *(
            "-m",
            "gunicorn",
            "config.wsgi",
            "--bind",
            f"fd://{descriptor}",
            "--preload",
            "--no-control-socket",
        ),
        *(
            "--worker-class",
            "gthread",
            "--workers",
            "2",
            "--threads",
            "8",
            "--timeout",
            "60",
            "--graceful-timeout",
            "5",
        ),
    ]


def _celery(*arguments: str) -> list[str]:
    return ["-m", "celery", "-A", "config", *arguments, "--loglevel", "INFO"]
