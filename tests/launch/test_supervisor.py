"""The supervisor, on small real processes."""

import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from launch.supervisor import Backoff, Program, Supervisor
from launch.valkey import Valkey


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(said: list[str]) -> Generator[Supervisor]:
    made = Supervisor(said.append)
    yield made
    made.stop(grace=1)


def program(tmp_path: Path, script: str) -> Program:
    return Program("thing", ["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, tmp_path / "thing.log", tmp_path)


def until(supervisor: Supervisor, condition: Callable[[], bool], *, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        supervisor.check()
        time.sleep(0.02)


def test_ended_program_is_started_again(tmp_path: Path, supervisor: Supervisor, said: list[str]) -> None:
    log = tmp_path / "thing.log"
    supervisor.run(
        program(tmp_path, "echo started; [ $(grep -c started thing.log) -lt 2 ] || sleep 60; exit 3")
    )
    until(supervisor, lambda: log.read_text().count("started") == 2)
    assert said == [f"thing ended with 3; again in 0.5 s, see {log}"]


def test_children_of_a_dead_program_are_killed(
    tmp_path: Path, supervisor: Supervisor, said: list[str]
) -> None:
    supervisor.run(program(tmp_path, "sleep 60 & echo $! >child; exit 1"))
    until(supervisor, lambda: bool(said))
    child = Path("/proc", (tmp_path / "child").read_text().strip())
    until(supervisor, lambda: not child.exists() or "\nState:\tZ" in (child / "status").read_text())


def test_stop_kills_who_does_not_listen(tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.run(program(tmp_path, "trap '' TERM; touch ready; while true; do sleep 0.1; done"))
    until(supervisor, (tmp_path / "ready").exists)
    begun = time.monotonic()
    supervisor.stop(grace=0.5)
    assert 0.4 < time.monotonic() - begun < 3
    assert not supervisor.programs[0].alive()


def test_engine_is_started_again(valkey: Valkey, supervisor: Supervisor, said: list[str]) -> None:
    supervisor.watch_engine(valkey)
    assert valkey.process is not None
    valkey.process.kill()
    valkey.process.wait(5)
    until(supervisor, valkey.alive)
    assert said == ["valkey has ended; starting it again"]


def test_waits_double_up_to_a_limit_and_start_over_after_a_steady_run() -> None:
    backoff, now, waits = Backoff(), 100.0, []
    for _ in range(8):
        backoff.start(now)
        now += 1
        waits.append(backoff.ended(now))
    assert waits == [0.5, 1, 2, 4, 8, 15, 15, 15]
    backoff.start(now)
    assert backoff.ended(now + 31) == 0.5
