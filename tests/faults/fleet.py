"""The processes that execute: Celery workers and a sweep, and what a fault may do to them."""

import os
import random
import signal
import subprocess
from dataclasses import dataclass, field
from time import monotonic

from launch.up import QUIET
from tests.faults.site import Site

WORKER_POINTS = ("CP2", "CP3", "CP4", "CP5", "CP8", "CP9", "CP10", "CP11")
SWEEP_POINTS = ("CP3", "CP4", "CP5", "CP6", "CP7", "CP8", "CP9", "CP10", "CP12", "CP13", "CP14")


@dataclass
class Member:
    """One process group, and when a stopped one is to go on."""

    role: str
    process: subprocess.Popen[bytes]
    born: float = field(default_factory=monotonic)
    wakes_at: float | None = None

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def pids(self) -> list[int]:
        """The leader and its children."""
        found = [self.process.pid]
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        try:
            with open(path) as children:
                found += [int(pid) for pid in children.read().split()]
        except OSError:
            pass
        return found

    def stopped_pids(self) -> list[int]:
        return [pid for pid in self.pids() if state_of(pid) == "T"]

    def signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait(10)


def state_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


class Fleet:
    """Starts what is missing; ``chance`` decides which of the new ones carry a crash point."""

    def __init__(self, site: Site, chance: random.Random, *, workers: int, plant: str = "") -> None:
        self.site, self.chance, self.workers, self.plant = site, chance, workers, plant
        self.members: list[Member] = []
        self.deaths = self.stops = 0
        self.points: dict[str, int] = {}
        self.directed: tuple[str, ...] = ()
        """How a crash point may act: ``kill``, ``stop``; nothing after the faults are over."""
        self.wrong_clocks = False

    def start(self) -> None:
        for _ in range(self.workers):
            self._start("worker")
        self._start("sweep")

    def tend(self) -> None:
        """Replace who died, wake who has slept long enough. Call it often."""
        for member in list(self.members):
            if not member.alive:
                self.members.remove(member)
                self.deaths += 1
                self._start(member.role)
            elif member.stopped_pids():
                self._let_sleep(member)

    def _let_sleep(self, member: Member) -> None:
        """A crash point, or we, stopped it: past lease and settle time, sometimes far past, and then it goes on."""
        if member.wakes_at is None:
            self.stops += 1
            member.wakes_at = monotonic() + self.chance.choice((3.0, 5.5, 9.0))
        if monotonic() >= member.wakes_at:
            member.wakes_at = None
            member.signal(signal.SIGCONT)

    def kill_one(self) -> None:
        victims = [member for member in self.members if monotonic() - member.born > 4]
        if victims:
            self.chance.choice(victims).kill()

    def stop_one(self) -> None:
        victims = [member for member in self.members if member.alive and not member.stopped_pids()]
        if len(victims) > 1:  # somebody has to be awake, or it is only a pause
            self.chance.choice(victims).signal(signal.SIGSTOP)

    def heal(self) -> None:
        """No faults any more: wake the sleepers, and replace whoever carries a crash point or a wrong clock."""
        self.directed, self.wrong_clocks = (), False
        for member in self.members:
            member.signal(signal.SIGCONT)
        self._wait_for_sleepers()
        self.close()
        self.start()

    def _wait_for_sleepers(self) -> None:
        """What a sleeper still had in hand, it does now: that is the dangerous moment, so it gets the time."""
        end = monotonic() + 3
        while monotonic() < end and any(member.alive for member in self.members):
            self.site.pause(0.2)
            for member in self.members:
                if member.stopped_pids():
                    member.signal(signal.SIGCONT)

    def close(self) -> None:
        for member in self.members:
            member.kill()
        self.members.clear()

    def _start(self, role: str) -> None:
        environment = self._conditions(role)
        if role == "worker":
            arguments = ("-m", "celery", "-A", "config", "worker", "-c", "1", *QUIET, "-l", "INFO")
        else:
            arguments = ("manage.py", "sweep", "--every", "0.25")
        self.members.append(Member(role, self.site.start(role, *arguments, **environment)))

    def _conditions(self, role: str) -> dict[str, str]:
        chosen = {"PLACET_PLANT": self.plant} if self.plant else {}
        if self.chance.random() < 0.3:
            chosen["PLACET_CALLS_AT_ONCE"] = "1"  # one by one, where the others send several together
        if self.directed and self.chance.random() < 0.8:
            point = self.chance.choice(WORKER_POINTS if role == "worker" else SWEEP_POINTS)
            how, visit = self.chance.choice(self.directed), self.chance.choice((1, 1, 2, 4, 8))
            chosen["PLACET_CRASHPOINT"] = f"{point}:{how}:{visit}"
            self.points[point] = self.points.get(point, 0) + 1
        if self.wrong_clocks and self.chance.random() < 0.5:
            chosen["PLACET_CLOCK_WRONG_BY_S"] = self.chance.choice(("3600", "-3600"))
        return chosen
