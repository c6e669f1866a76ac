"""Forks processes of the product in a few milliseconds: one that has loaded everything, and children of it.

``python -m tests.faults.nursery`` reads one wish a line, ``{"job": …, "with": {…}, "environment": {…}}``, forks, and
answers with the child's number. A child connects to the database by itself, under the conditions of its environment:
a crash point, a pause, a planted defect. It can be killed and stopped like any other process.
"""

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from launch.process import die_with_parent

# -- in the children ------------------------------------------------------------------------------------------


def work() -> None:
    """One round of work in each lane: what is due is claimed and executed, and the process ends."""
    from workflows.sweep import LANES
    from workflows.worker import work as do

    for lane in LANES:
        do(lane=lane)


def sweep() -> None:
    """Look around and work until somebody ends it."""
    from workflows import sweep as sweeping

    while True:
        sweeping.look_around()
        sweeping.drain(rounds=2)
        time.sleep(0.05)


def look() -> None:
    """Look around without working, until somebody ends it."""
    from workflows import sweep as sweeping

    while True:
        sweeping.look_around()
        time.sleep(0.05)


def vote(office: Mapping[str, str], proposal_id: str, user_id: str, kind: str) -> None:
    """One person's decision, in a process of its own."""
    from tests.faults.voting import vote_as

    vote_as(office, proposal_id, user_id, kind)


def attest(tenant: str, command: str, user: str, reference: str) -> None:
    """A person's word that it happened."""
    from uuid import UUID

    from tests.faults.testifying import say_so

    say_so(UUID(tenant), UUID(command), UUID(user), reference)


def cancel(tenant: str, run: str, user: str) -> None:
    """Somebody wants the run to stop."""
    from uuid import UUID

    from tests.faults.testifying import stop_it

    stop_it(UUID(tenant), UUID(run), UUID(user))


def withdraw(tenant: str, proposal: str) -> None:
    """The agent takes back what it proposed."""
    from uuid import UUID

    from approvals import actions
    from common.clock import db_clock
    from tests.faults.people import AGENT

    actions.withdraw(
        tenant_id=UUID(tenant), proposal_id=UUID(proposal), reason="changed my mind", by=AGENT, clock=db_clock
    )


def message(**payload: str) -> None:
    """What a worker does with a task message of this content."""
    from workflows.tasks import work as task

    task.run(**payload)


def seal() -> None:
    """Seal what can be sealed."""
    from audit import sealer
    from common.clock import db_clock

    sealer.seal(db_clock)


JOBS: Mapping[str, Callable[..., None]] = {
    "attest": attest,
    "cancel": cancel,
    "withdraw": withdraw,
    "work": work,
    "sweep": sweep,
    "look": look,
    "vote": vote,
    "message": message,
}


def _child(wish: Mapping[str, Any]) -> None:
    from common import crashpoints
    from tests.faults import conditions

    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(wish["environment"])
    crashpoints._ASKED = os.environ.get("PLACET_CRASHPOINT", "")
    conditions.apply()
    JOBS[wish["job"]](**wish["with"])


def main() -> None:
    import django

    django.setup()
    from workflows import sweep, tasks  # noqa: F401 - loaded once, for all children

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for them
    end_with_us = die_with_parent(signal.SIGKILL)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                end_with_us()
                _child(json.loads(line))
                code = 0
            except BaseException:  # noqa: BLE001 - a child must not go on as a second parent
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


# -- in the test ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Child:
    """A process that somebody else started."""

    pid: int

    @property
    def state(self) -> str:
        """``R``, ``S``, ``D``, ``T`` for stopped; empty when it is gone."""
        try:
            with open(f"/proc/{self.pid}/stat") as stat:
                state = stat.read().rpartition(")")[2].split()[0]
        except OSError:
            return ""
        return "" if state in "ZX" else state

    @property
    def stopped(self) -> bool:
        return self.state == "T"

    @property
    def gone(self) -> bool:
        return not self.state

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return


class Nursery:
    """The parent, as the test sees it."""

    def __init__(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        self.process = start("-m", "tests.faults.nursery")
        self.children: list[Child] = []

    def fork(self, job: str, environment: Mapping[str, str] | None = None, **arguments: Any) -> Child:
        assert self.process.stdin is not None and self.process.stdout is not None
        wish = {"job": job, "with": arguments, "environment": dict(environment or {})}
        self.process.stdin.write(json.dumps(wish).encode() + b"\n")
        self.process.stdin.flush()
        child = Child(int(self.process.stdout.readline()))
        self.children.append(child)
        return child

    def kill_all(self) -> None:
        for child in self.children:
            child.kill()
        self.children.clear()


if __name__ == "__main__":
    main()
