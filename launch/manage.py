"""`./placet COMMAND`: manage.py with the engines of a running `up`, or with engines of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from launch import LaunchError
from launch.datadir import ROOT, DataDir
from launch.environment import Backends, for_process, needs_no_engine, product_environment
from launch.process import die_with_parent

_FALLBACK_PORT = 8000
_PATIENCE = 60.0


def manage(arguments: list[str], data_dir: Path) -> int:
    """Runs the command in the caller's folder; its exit code."""
    data = DataDir(data_dir)
    backends = Backends(data, os.environ)
    try:
        return _run(arguments, addresses_of(data, backends))
    finally:
        backends.stop()
        data.release()


def addresses_of(data: DataDir, backends: Backends) -> dict[str, str]:
    """A running launcher's addresses, else those of engines that are started now.

    While another command has its engines up for itself, this one waits for its turn.
    """
    end = time.monotonic() + _PATIENCE
    while not needs_no_engine(os.environ) and not data.take():
        if published := data.published():
            return published
        if time.monotonic() > end:
            raise LaunchError(
                f"Another command has been using {data.path} for a minute. Try again when it has ended."
            )
        time.sleep(0.1)
    port = data.recall("ports.json", "web") or _FALLBACK_PORT
    return backends.start() | product_environment(data, os.environ, port=port)


def _run(arguments: list[str], environment: dict[str, str]) -> int:
    if arguments[:1] == ["migrate"] and "--database" not in arguments:
        arguments = [*arguments, "--database", "owner"]  # the application role may not
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return run_child(command, for_process(environment, owner=True))


def run_child(command: list[str], environment: dict[str, str], *, cwd: Path | None = None) -> int:
    """Runs it in front, in the caller's folder if no other is named; its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command gets it from the terminal as well, and decides
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=cwd,
        preexec_fn=_restore_interrupt(die_with_parent(signal.SIGTERM)),
    )
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    return process.wait()


def _restore_interrupt(prepare: Callable[[], None]) -> Callable[[], None]:
    """An ignored signal stays ignored in a child; the command shall hear Ctrl-C."""

    def both() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        prepare()

    return both
