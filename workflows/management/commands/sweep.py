"""The sweep: a process of its own that finds and executes what is due, without the broker if need be."""

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandParser
from django.db import connections

from audit.sealer import seal
from common import stopping
from common.away import AWAY, drop_failed_connection
from common.clock import db_clock
from common.deadline import Deadline
from common.heartbeat import beat
from common.rounds import each
from workflows import registry, sweep

log = structlog.get_logger(__name__)

_LONGEST_CALL_S = 6.0
"""A round of callbacks that is under way may end; what does not is sent again when its lease is over."""
_FIRST_FURTHER_S = 600.0
_FURTHER_EVERY_S = 60.0
_GLANCE_S = 0.1
"""How soon a sweep that waits for its next look notices that it was told to stop."""


class Command(BaseCommand):
    help = "Look for work that is due, every moment: recover, reconcile, expire, execute, seal."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--every", type=float, default=1.0, help="Seconds between two looks.")
        parser.add_argument("--once", action="store_true", help="Look once and end.")

    def handle(self, *, every: float, once: bool, **options: Any) -> None:
        if once:
            registry.register_definitions(clock=db_clock)
            _round()
            each((sweep.call_back, sweep.tell), lambda part: part(), what="sweep_lanes")
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            # Finish what is in flight, begin nothing more.
            signal.signal(number, lambda *_: stopping.stop())
        _register(every)
        lanes = [
            threading.Thread(target=_lane, args=(part, every), name=name, daemon=True)
            for name, part in (("callbacks", sweep.call_back), ("notices", sweep.tell))
        ]
        for lane in lanes:
            lane.start()
        further = Deadline.after(_FIRST_FURTHER_S)
        while not stopping.stopping():
            began = time.monotonic()
            _round()
            if further.over():
                each((sweep.look_further,), lambda part: part(), what="sweep_further")
                further = Deadline.after(_FURTHER_EVERY_S)
            _wait(max(0.05, every - (time.monotonic() - began)))
        for lane in lanes:
            lane.join(_LONGEST_CALL_S)


def _register(every: float) -> None:
    """Write down what is installed. A database that is away when the sweep starts is there again later."""
    while not stopping.stopping():
        try:
            registry.register_definitions(clock=db_clock)
        except AWAY as error:
            log.warning("database_away", error=type(error).__name__)
            drop_failed_connection()
            _wait(every)
        else:
            return


def _round() -> None:
    """One look at everything. What broke, and a database that is away, is met again in a later round."""
    each((sweep.look_around, _drain, _seal), _do, what="sweep_round")
    drop_failed_connection()


def _do(part: Callable[[], object]) -> None:
    """One part of a round, and the sign that it came to its end."""
    part()
    beat("sweep", registry.known_names())


def _lane(part: Callable[[], object], every: float) -> None:
    """A lane beside the work, in a thread with a connection of its own: a receiver that hangs delays no work."""
    while not stopping.stopping():
        each((part,), lambda part: part(), what="sweep_lane")
        drop_failed_connection()
        _wait(every)
    connections.close_all()


def _drain() -> int:
    return sweep.drain(rounds=5)


def _seal() -> int:
    return seal(db_clock)


def _wait(seconds: float) -> None:
    """Sleep, but not past the signal: a plain sleep would go on after it."""
    end = time.monotonic() + seconds
    while not stopping.stopping() and (left := end - time.monotonic()) > 0:
        time.sleep(min(_GLANCE_S, left))
