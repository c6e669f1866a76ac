"""Celery tasks: thin wrappers. A message is a hint, and carries nothing that decides anything."""

from typing import Any

from celery import shared_task

from common.doorbell import doorbell
from workflows import sweep
from workflows.doorbell import WORK

ROUNDS_PER_TASK = 10


@shared_task(name=WORK, ignore_result=True)
def work(**_: Any) -> None:
    """Somebody rang: do what is due now."""
    if sweep.drain(rounds=ROUNDS_PER_TASK) >= ROUNDS_PER_TASK:
        doorbell.ring(WORK)  # more may be due; a short task lets a worker that must stop do so soon


@shared_task(name="workflows.tasks.tick", ignore_result=True)
def tick(**_: Any) -> None:
    """Beat's regular look, beside the sweep process's own."""
    sweep.look_around()
