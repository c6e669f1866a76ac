"""Rounds of work: many things are due, each in a transaction of its own, and one that breaks stops no other."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import structlog
from django.db import InterfaceError, OperationalError, connection

log = structlog.get_logger(__name__)
T = TypeVar("T")


def each(things: Iterable[T], do: Callable[[T], object], *, what: str) -> int:
    """Call ``do`` for each thing; returns for how many it answered with something true.

    What raises is logged under ``what`` and left as it was stored: the next round meets it again. Without this, one
    row that nobody foresaw would end the round, and with it the work on every row behind it, round after round.
    """
    done = 0
    for thing in things:
        try:
            done += bool(do(thing))
        except Exception as error:
            log.exception("left_to_the_next_round", what=what, thing=str(thing))
            if isinstance(error, (OperationalError, InterfaceError)):
                connection.close()
    return done
