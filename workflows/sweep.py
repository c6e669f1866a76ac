"""What is due, found by looking: the sweep process and beat run this, and it needs no broker."""

import structlog

from approvals.actions import expire_due
from audit.actors import clock_actor
from common.clock import db_clock
from workflows.actions.overdue import handle_overdue
from workflows.engine import run_due_steps
from workflows.engine.run import worker_name
from workflows.enums import Lane
from workflows.worker import work
from workflows.worker.reconcile import reconcile_due
from workflows.worker.recover import recover_lost

log = structlog.get_logger(__name__)

STEPS_PER_ROUND = 50


def drain(*, rounds: int = 100) -> int:
    """Run due steps and commands until nothing is due, or the rounds are used up; returns how much was done.

    Commands come first: an approved action is closer to somebody's money than a new case.
    """
    total = 0
    for _ in range(rounds):
        done = sum(work(lane=lane) for lane in (Lane.NEW, Lane.REPROCESS))
        done += sum(run_due_steps(limit=STEPS_PER_ROUND, lane=lane) for lane in (Lane.NEW, Lane.REPROCESS))
        total += done
        if not done:
            break
    return total


def look_around() -> None:
    """Recover what lost its worker, reconcile what is unknown, expire what is over, act on waits that are over."""
    by = clock_actor()
    recover_lost(by=by, clock=db_clock)
    reconcile_due(by=by, clock=db_clock, worker=worker_name())
    expire_due(clock=db_clock)
    handle_overdue(by=by, clock=db_clock)
