"""What a process of the harness runs under: short clocks, perhaps a wrong clock, perhaps a planted defect.

The product knows none of it. Everything is read from the environment when the process starts:
``PLACET_PLANT`` names a defect, ``PLACET_CLOCK_WRONG_BY_S`` shifts the wall clock (never the monotonic one),
``PLACET_PAUSE=module.function:stop`` acts before the first call of a function, as a crash point does.
"""

import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from typing import Any

from django.conf import settings


def apply() -> None:
    hurry()
    wrong_by = float(os.environ.get("PLACET_CLOCK_WRONG_BY_S", "0"))
    if wrong_by:
        shift_wall_clock(wrong_by)
    if plant := os.environ.get("PLACET_PLANT"):
        from tests.faults import planting

        planting.plant(plant)
    _change_the_flows()
    if seconds := os.environ.get("PLACET_FAULTS_CLAIM_S"):
        replace("workflows.worker.claim", "LEASE", timedelta(seconds=float(seconds)))
    if seconds := os.environ.get("PLACET_FAULTS_BATCH_S"):
        # It would give back what it has not come to after half a lease, and on a busy machine that is all of it.
        replace("workflows.worker.loop", "LEASE", timedelta(seconds=float(seconds)))
    if few := os.environ.get("PLACET_FAULTS_CALLS_AT_ONCE"):
        settings.PLACET_CALLS_AT_ONCE = int(few)
    if pause := os.environ.get("PLACET_PAUSE"):
        pause_before(*pause.split(":"))


def _change_the_flows() -> None:
    from tests.faults import flows

    if seconds := os.environ.get("PLACET_FAULTS_CALL_S"):
        flows.Refund.call_deadline = timedelta(seconds=float(seconds))
    flows.DEADLY[:] = os.environ.get("PLACET_FAULTS_DEADLY", "").split()


def hurry() -> None:
    """The product's fixed times are made for providers that take minutes; the harness's takes a second."""
    for module, name, value in (
        ("workflows.worker.circuit", "FIRST_PAUSE_S", 2),
        ("workflows.worker.circuit", "LONGEST_PAUSE_S", 5),
        ("workflows.worker.checks", "FIRST_LOOK", timedelta(seconds=0.2)),
        ("workflows.worker.checks", "LONGEST_PAUSE", timedelta(seconds=3)),
        ("workflows.worker.checks", "SHORTEST_PAUSE", timedelta(seconds=0.2)),
        ("workflows.worker.store", "FIRST_RETRY", timedelta(seconds=0.3)),
        ("workflows.worker.store", "LONGEST_RETRY", timedelta(seconds=3)),
    ):
        replace(module, name, value)
    reconcile = import_module("workflows.worker.reconcile")
    reconcile._DUE = reconcile._DUE.replace("'60 seconds'", "'3 seconds'")


def replace(module: str, name: str, value: Any) -> None:
    found = import_module(module)
    assert hasattr(found, name), f"{module} has no {name} any more"
    setattr(found, name, value)


def shift_wall_clock(seconds: float) -> None:
    """This process believes another time of day. What it asks the database for stays right."""
    right = time.time
    time.time = lambda: right() + seconds


def pause_before(where: str, how: str = "stop") -> None:
    """Stop or kill this process right before a function of the product is called for the first time."""
    module_name, _, name = where.rpartition(".")
    module = import_module(module_name)
    wrapped: Callable[..., Any] = getattr(module, name)
    waiting = [signal.SIGKILL if how == "kill" else signal.SIGSTOP]

    def paused(*args: Any, **kwargs: Any) -> Any:
        if waiting:
            os.kill(os.getpid(), waiting.pop())
        return wrapped(*args, **kwargs)

    setattr(module, name, paused)
