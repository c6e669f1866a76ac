"""Words for lengths of time and distances between instants, as people say them.

Pure functions over seconds and aware datetimes; nothing here reads a clock. A screen passes the
server's time, so that two people looking at one page read the same words.
"""

from datetime import UTC, datetime

from common.states_ui import Tone

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR
# Below these many seconds a deadline is shown as urgent, and as near.
URGENT = 15 * MINUTE
NEAR = HOUR


def span(seconds: float) -> str:
    """The length ``seconds`` in two units at most: ``40 s``, ``12 min``, ``3 h 40``, ``2 days 14 h``."""
    whole = int(abs(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE:02d}"
    days = f"{whole // DAY} day{'' if whole // DAY == 1 else 's'}"
    hours = whole % DAY // HOUR
    return f"{days} {hours} h" if hours and whole < 7 * DAY else days


def distance(instant: datetime, now: datetime) -> str:
    """Return how far ``instant`` is from ``now``: ``in 41 min``, ``4 min ago`` or ``now``."""
    seconds = (instant - now).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"in {span(seconds)}" if seconds > 0 else f"{span(seconds)} ago"


def clock_left(seconds: float) -> str:
    """Return the time left on a countdown: ``1:58`` and ``41:12`` below an hour, else as :func:`span`."""
    whole = max(0, int(seconds))
    if whole < HOUR:
        return f"{whole // MINUTE}:{whole % MINUTE:02d}"
    return span(whole)


def left(seconds: float) -> str:
    """The time left in words for a row of a list, in whole days from a day on; ``over`` once it is."""
    if seconds <= 0:
        return "over"
    return span(seconds if seconds < DAY else seconds - seconds % DAY)


def urgency(seconds: float) -> Tone:
    """Return the tone of a deadline that is ``seconds`` away."""
    if seconds < URGENT:
        return "bad"
    return "wait" if seconds < NEAR else "mute"


def share(start: datetime, end: datetime, now: datetime) -> int:
    """Return how much of the time from ``start`` to ``end`` is left at ``now``, in percent from 0 to 100."""
    whole = (end - start).total_seconds()
    left = (end - now).total_seconds()
    if whole <= 0:
        return 0
    return max(0, min(100, round(100 * left / whole)))


def iso(instant: datetime) -> str:
    """Return ``instant`` as ISO 8601 in UTC with a Z, for ``datetime`` attributes and for machines."""
    return instant.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def utc_text(instant: datetime) -> str:
    """Return ``instant`` as people read it in UTC: ``2026-09-19 17:52:08 UTC``."""
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
