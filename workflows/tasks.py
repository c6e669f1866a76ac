"""Celery tasks: thin wrappers. A message is a hint, and carries nothing that decides anything."""

from typing import Any

from celery import shared_task, signals
from celery.states import SUCCESS

from audit.actors import clock_actor
from common.clock import db_clock
from common.crashpoints import crashpoint
from common.doorbell import doorbell
from common.heartbeat import beat
from workflows import registry, sweep
from workflows.actions.calling_back import call_back_due
from workflows.actions.hooks import TAKE_IN, take_in_due
from workflows.actions.outbox import BY, CALL_BACK
from workflows.doorbell import WORK

ROUNDS_PER_TASK = 10
TICK = "workflows.tasks.tick"


@shared_task(name=WORK, ignore_result=True)
def work(**_: Any) -> None:
    """Somebody rang: do what is due now."""
    crashpoint("CP2")
    if sweep.drain(rounds=ROUNDS_PER_TASK) >= ROUNDS_PER_TASK:
        doorbell.ring(WORK)  # more may be due; a short task lets a worker that must stop do so soon
    crashpoint("CP11")


@shared_task(name=TAKE_IN, ignore_result=True)
def take_in(**_: Any) -> None:
    """A webhook was stored: take in what is due."""
    take_in_due(by=clock_actor("hooks"), clock=db_clock)


@shared_task(name=CALL_BACK, ignore_result=True)
def call_back(**_: Any) -> None:
    """A run has come to a state that somebody is to hear of. One round: a slow receiver holds no worker long."""
    if call_back_due(by=BY, clock=db_clock, rounds=1):
        doorbell.ring(CALL_BACK)


@shared_task(name=TICK, ignore_result=True)
def tick(**_: Any) -> None:
    """Beat's regular look, beside the sweep process's own."""
    sweep.look_around()


@signals.task_postrun.connect
def show_life(task: Any = None, state: str = "", **_: Any) -> None:
    """A task that came to its end is a sign of life: of this worker, of the broker between, and of beat where beat
    alone asks for it.
    """
    if state == SUCCESS:
        beat("worker", registry.known_names())
        if getattr(task, "name", "") == TICK:
            beat("beat")
