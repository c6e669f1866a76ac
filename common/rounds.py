"""Rounds of work: many things are due, each in a transaction of its own, and one that breaks stops no other."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import structlog
from django.db import connection

from common.away import is_away
from common.content_keys import KeyUnknown
from common.stopping import stopping

log = structlog.get_logger(__name__)
T = TypeVar("T")


def each(things: Iterable[T], do: Callable[[T], object], *, what: str) -> int:
    """Call ``do`` for each thing; returns for how many it answered with something true.

    What raises is logged under ``what`` and left as it was stored: the next round meets it again. Without this, one
    row that nobody foresaw would end the round, and with it the work on every row behind it, round after round. A
    process that was told to stop leaves the rest to others.
    """
    done = 0
    for thing in things:
        if stopping():
            break
        try:
            done += bool(do(thing))
        except KeyUnknown:
            log.warning("left_to_who_has_the_key", what=what, thing=str(thing))
        except Exception as error:
            log.exception("left_to_the_next_round", what=what, thing=str(thing))
            if is_away(error):
                connection.close()
    return done
