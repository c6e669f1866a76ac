"""Small things that every part of the document is made with: instants, texts from outside, codes and their words."""

from datetime import UTC, datetime
from typing import Any, Final

from common.display import visible

LONGEST: Final = 2_000
Part = dict[str, Any]


def instant(at: datetime | None) -> str | None:
    """UTC with the six digits that PostgreSQL keeps."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if at is not None else None


def said(text: object) -> str:
    """A text from outside, in one line, with what hides or deceives as its code point. `unveil` gives it back."""
    return visible(str(text or "")).replace("↵\n", "↵")


def shortened(text: str) -> str:
    """So much of a long shown text as a packet carries; how long it is stands beside it."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
