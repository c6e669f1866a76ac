"""Keeps processes running: starts them, starts them again when they end, stops them together."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from launch import LaunchError
from launch.process import die_with_parent, kill_group

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 15.0
_STEADY = 30.0  # seconds after which a process counts as having run well
GRACE_S = 20.0
"""How long a program may take to end. A worker finishes the call that is in flight, up to that call's deadline."""


class Engine(Protocol):
    name: str

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def alive(self) -> bool: ...


@dataclass
class Backoff:
    """How long to wait before the next start: doubled each time, short again after a steady run."""

    wait: float = 0.0
    not_before: float = 0.0
    started: float = 0.0

    def start(self, now: float) -> None:
        self.started = now

    def ended(self, now: float) -> float:
        """Notes an end; the seconds until the next start."""
        steady = now - self.started > _STEADY
        self.wait = _FIRST_WAIT if steady or not self.wait else min(self.wait * 2, _LONGEST_WAIT)
        self.not_before = now + self.wait
        return self.wait


@dataclass
class Program:
    """One child process."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    log: Path
    cwd: Path
    pass_fds: Sequence[int] = ()
    last: bool = False  # asked to end when the others have: they call it until then
    process: subprocess.Popen[bytes] | None = None
    backoff: Backoff = field(default_factory=Backoff)

    def start(self) -> None:
        with open(os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as out:
            self.process = subprocess.Popen(
                list(self.command),
                env=dict(self.env),
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                pass_fds=tuple(self.pass_fds),
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        self.backoff.start(time.monotonic())

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """Engines and programs. `say` prints one line for the person at the terminal."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.engines: list[tuple[Engine, Backoff]] = []
        self.programs: list[Program] = []

    def watch_engine(self, engine: Engine) -> None:
        """Takes over an engine that runs."""
        self.engines.append((engine, Backoff(started=time.monotonic())))

    def run(self, program: Program) -> None:
        self.programs.append(program)
        program.start()

    def check(self) -> None:
        """Starts again what has ended and has waited long enough."""
        for engine, backoff in self.engines:
            self._check_engine(engine, backoff)
        for program in self.programs:
            self._check_program(program)

    def stop(self, *, grace: float = GRACE_S) -> None:
        """Asks all programs to end, kills what is left after `grace` seconds, then stops the engines."""
        _end([program for program in self.programs if not program.last], grace)
        _end([program for program in self.programs if program.last], grace)
        for engine, _ in reversed(self.engines):
            engine.stop()

    def _check_engine(self, engine: Engine, backoff: Backoff) -> None:
        now = time.monotonic()
        if engine.alive() or now < backoff.not_before:
            return
        wait = backoff.ended(now)
        self.say(f"{engine.name} has ended; starting it again")
        try:
            engine.start()
            backoff.start(time.monotonic())
        except LaunchError as error:
            self.say(f"{engine.name} does not start, next try in {wait:.1f} s: {error}")

    def _check_program(self, program: Program) -> None:
        now = time.monotonic()
        if program.alive():
            return
        if program.process is not None:
            code = program.process.returncode
            kill_group(program.process)  # children that a killed process left behind
            program.process = None
            wait = program.backoff.ended(now)
            self.say(f"{program.name} ended with {code}; again in {wait:.1f} s, see {program.log}")
        elif now >= program.backoff.not_before:
            program.start()


def _end(programs: Sequence[Program], grace: float) -> None:
    running = [program.process for program in programs if program.process]
    for process in running:
        if process.poll() is None:
            process.terminate()
    end = time.monotonic() + grace
    for process in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.05, end - time.monotonic()))
        kill_group(process)
