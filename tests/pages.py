"""Pages compared with one another: what may differ between two looks is taken out."""

import re

# "now", "4 s ago", "in 41 min", "3 h 40"; instants, also in addresses; the clock and the ring of a deadline.
_TIMES = re.compile(
    r"\b(?:in )?\d+ (?:h \d\d|min|s)\b(?: ago)?|\bnow\b"
    r"|\b\d{4}-\d\d-\d\dT\d\d(?::|%3A)\d\d(?:(?::|%3A)\d\d)?(?:\.\d+)?"
    r"|\b\d+:\d\d\b|stroke-dasharray=\"[\d.]+ 100\""
)


def timeless(html: str) -> str:
    """Without distances, ages, instants and countdowns: time goes on between two looks."""
    return _TIMES.sub("", html).strip()
