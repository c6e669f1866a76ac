"""What is due, found by looking: the sweep process and beat run this, and it needs no broker."""

from collections.abc import Callable

from approvals.actions import expire_due
from audit.actors import clock_actor
from common.clock import db_clock
from common.deadline import Deadline
from common.rounds import each
from workflows.actions.overdue import handle_overdue
from workflows.doorbell import ring
from workflows.engine import run_due_steps
from workflows.engine.run import release_lost_steps, worker_name
from workflows.enums import Lane
from workflows.worker import work
from workflows.worker.loop import BATCH
from workflows.worker.reconcile import reconcile_due
from workflows.worker.recover import recover_lost, void_lapsed

STEPS_PER_ROUND = 50


BUDGET_S = 20.0
"""How long one drain goes on: well under a task's time limit, which would end it in the middle of a call."""

LANES = (Lane.NEW, Lane.REPROCESS)


def drain(*, rounds: int = 100, budget_s: float = BUDGET_S) -> int:
    """Run due steps and commands until nothing is due, or rounds or time are used up; returns how much was done.

    Commands come first: an approved action is closer to somebody's money than a new case. Who finds more than one
    batch rings for another worker, and so does who stops early.
    """
    total, until, rang = 0, Deadline.after(budget_s), False
    for _ in range(rounds):
        commands = sum(work(lane=lane) for lane in LANES)
        done = commands + sum(run_due_steps(limit=STEPS_PER_ROUND, lane=lane) for lane in LANES)
        total += done
        if not done:
            return total
        if commands >= BATCH and not rang:
            ring()
            rang = True
        if until.over():
            break
    ring()
    return total


def look_around() -> None:
    """Recover what lost its worker, reconcile what is unknown, expire what is over, act on waits that are over."""
    by = clock_actor()
    looks: list[Callable[[], object]] = [
        lambda: release_lost_steps(by=by),
        lambda: recover_lost(by=by, clock=db_clock),
        lambda: reconcile_due(by=by, clock=db_clock, worker=worker_name()),
        lambda: void_lapsed(by=by, clock=db_clock),
        lambda: expire_due(clock=db_clock),
        lambda: handle_overdue(by=by, clock=db_clock),
    ]
    each(looks, lambda look: look(), what="look_around")
