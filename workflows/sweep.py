"""What is due, found by looking: the sweep process and beat run this, and it needs no broker."""

from collections.abc import Callable

from access.actions_account import forget_ended_sessions
from access.actions_agents import warn_of_ends
from access.actions_posture import expire_postures
from approvals.actions import expire_due
from approvals.escalating import escalate_due
from audit.actors import clock_actor
from audit.reporting import write_down_reports
from common.clock import db_clock
from common.deadline import Deadline
from common.rounds import each
from common.stopping import stopping
from notify.actions.forgetting import forget_told
from notify.running import tell_due
from workflows import hooks
from workflows.actions.calling_back import call_back_due
from workflows.actions.erasing import erase_due
from workflows.actions.erasing_deliveries import erase_due_deliveries
from workflows.actions.hooks import take_in_due
from workflows.actions.manning import recheck_manning
from workflows.actions.outbox import BY as CALLBACKS
from workflows.actions.outbox import forget_old_calls
from workflows.actions.overdue import handle_overdue
from workflows.doorbell import ring
from workflows.engine import run_due_steps
from workflows.engine.run import release_lost_steps, worker_name
from workflows.enums import Lane
from workflows.worker import work
from workflows.worker.due import Due, what_is_due
from workflows.worker.holding import hold_back_due, release_due, tend_circuits
from workflows.worker.loop import BATCH
from workflows.worker.reconcile import reconcile_due
from workflows.worker.recover import recover_lost, void_lapsed

STEPS_PER_ROUND = 50


BUDGET_S = 20.0
"""How long one drain goes on: well under a task's time limit, which would end it in the middle of a call."""

LANES = (Lane.NEW, Lane.REPROCESS)
ALL_EVERY = 4
"""While batches of new commands are full, other work is looked for in one round of so many: it must not starve."""


def drain(*, rounds: int = 100, budget_s: float = BUDGET_S) -> int:
    """Run due steps and commands until nothing is due, or rounds or time are used up; returns how much was done.

    Commands come first: an approved action is closer to somebody's money than a new case. Who finds more than one
    batch rings for another worker, and so does who stops early, because of the time or because it was told to.
    """
    total, until, rang = 0, Deadline.after(budget_s), False
    for number in range(rounds):
        if stopping():
            break
        commands, done, more = _round(only_new=number % ALL_EVERY != 0)
        total += done
        if not (done and more):
            return total
        if commands >= BATCH and not rang:
            ring()
            rang = True
        if until.over():
            break
    ring()
    return total


def _round(*, only_new: bool) -> tuple[int, int, bool]:
    """How many commands, how many commands and steps, and whether more may be due by now. ``only_new``: while whole
    batches of new commands are due.

    Most rounds find a command or two and nothing else: one look says so, where each lane's own claim would take three
    ways to the database, for itself and once more at the end.
    """
    commands = work(lane=Lane.NEW)
    if only_new and commands >= BATCH:
        return commands, commands, True
    due = what_is_due()
    if Lane.REPROCESS in due.commands:
        commands += work(lane=Lane.REPROCESS)
    steps = sum(run_due_steps(limit=STEPS_PER_ROUND, lane=lane) for lane in LANES if lane in due.steps)
    return commands, commands + steps, due != Due.nothing()


def look_around() -> None:
    """Recover what lost its worker, reconcile what is unknown, expire what is over, act on waits that are over."""
    by = clock_actor()
    looks: list[Callable[[], object]] = [
        lambda: take_in_due(by=by, clock=db_clock),
        lambda: release_lost_steps(by=by),
        lambda: recover_lost(by=by, clock=db_clock),
        lambda: hold_back_due(by=by, clock=db_clock),
        lambda: tend_circuits(by=by, clock=db_clock),
        lambda: release_due(by=by, clock=db_clock),
        lambda: void_lapsed(by=by, clock=db_clock),
        lambda: expire_due(clock=db_clock),
        lambda: handle_overdue(by=by, clock=db_clock),
        lambda: escalate_due(by=by, clock=db_clock),
        lambda: recheck_manning(by=by, clock=db_clock),
        lambda: expire_postures(by=by, clock=db_clock),
        lambda: warn_of_ends(by=by, clock=db_clock),
        lambda: forget_ended_sessions(clock=db_clock),
        lambda: erase_due(by=by, clock=db_clock),
        lambda: erase_due_deliveries(by=by),
        lambda: write_down_reports(by=by),
        lambda: forget_old_calls(clock=db_clock),
        lambda: forget_told(clock=db_clock),
        # It waits for providers, so nothing else waits for it.
        lambda: reconcile_due(by=by, clock=db_clock, worker=worker_name()),
    ]
    each(looks, lambda look: look(), what="look_around")


def look_further() -> int:
    """What higher apps look for, such as work that no rule above has moved. For a sweep that has looked around for a
    while: what stood still because no sweep was there is given time to move.
    """
    by = clock_actor()
    return each(hooks.looks(), lambda look: look(by, db_clock), what="look_further")


def tell() -> int:
    """Tell people what is due: a lane of its own, because it waits for mail servers and chat systems."""
    return tell_due()


def call_back() -> int:
    """Make the callbacks that are due: a lane of its own, because it waits for receivers of which nothing is known."""
    return call_back_due(by=CALLBACKS, clock=db_clock)
