"""Delivering over HTTP to receivers of which nothing is known: one try, what came of it, and when the next one is due.

A row is claimed, sent outside any transaction, and the answer is stored: at least once, never silently lost. What the
rows mean is the business of the apps that own them.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from common.deadline import Deadline
from common.outgoing import Answer, NotSent, Outcome, OutgoingRequest, send_where_told

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a try. ``problem`` is a code; empty when it was taken. ``final``: trying again cannot help."""

    problem: str
    http_status: int | None = None
    final: bool = False


def try_once(request: OutgoingRequest, within_s: float, *, what: str) -> Seen:
    """One try. Called in a thread that knows no database; whatever breaks is an answer too."""
    try:
        return seen_in(send_where_told(request, Deadline.after(within_s)))
    except Exception as error:
        log.exception("delivery_broke", what=what, error=type(error).__name__)
        return Seen("broke")


def seen_in(outcome: Outcome) -> Seen:
    """Only 2xx is delivered; a redirect is not followed."""
    if isinstance(outcome, Answer):
        fine = 200 <= outcome.status < 300
        redirect = 300 <= outcome.status < 400
        return Seen("" if fine else "redirect" if redirect else "refused", outcome.status)
    said = "not_sent" if isinstance(outcome, NotSent) else "no_answer"
    return Seen(f"{said}_{outcome.kind}")


def next_try(now: datetime, tries: int, *, first: timedelta, longest: timedelta) -> datetime:
    """After ``tries`` tries that failed: twice as long each time up to ``longest``, spread out by chance."""
    full: timedelta = min(first * 2 ** min(max(tries - 1, 0), 20), longest)
    share = random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, keeps no secret
    return now + share * full


def rest_after(failures: int, longest: timedelta) -> timedelta:
    """So long a receiver is left alone after so many failures in a row, this one not counted."""
    rest: timedelta = min(timedelta(seconds=2) * 2 ** min(failures, 10), longest)
    return rest
