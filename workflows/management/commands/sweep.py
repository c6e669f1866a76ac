"""The sweep: a process of its own that finds and executes what is due, without the broker if need be."""

import signal
import threading
import time
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandParser
from django.db import Error, connection

from audit.sealer import seal
from common.clock import db_clock
from workflows import registry, sweep

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = "Look for work that is due, every moment: recover, reconcile, expire, execute, seal."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--every", type=float, default=1.0, help="Seconds between two looks.")
        parser.add_argument("--once", action="store_true", help="Look once and end.")

    def handle(self, *, every: float, once: bool, **options: Any) -> None:
        stop = threading.Event()
        if not once:
            # Finish the round that is under way, claim nothing more.
            signal.signal(signal.SIGTERM, lambda *_: stop.set())
            signal.signal(signal.SIGINT, lambda *_: stop.set())
        registry.register_definitions(clock=db_clock)
        while not stop.is_set():
            began = time.monotonic()
            _round()
            if once:
                return
            stop.wait(max(0.05, every - (time.monotonic() - began)))


def _round() -> None:
    """One look at everything. A database that is away now is there again in a later round."""
    try:
        sweep.look_around()
        sweep.drain(rounds=5)
        seal(db_clock)
    except Error:
        log.exception("sweep_round_failed")
        connection.close()
