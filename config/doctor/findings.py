"""What a check found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """A *warning* can wait until tomorrow; of a *problem* something is lost, unsafe or stands still."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """``says`` is what was seen, ``do`` what to do about it; the latter is empty where all is well."""

    level: Level
    says: str
    do: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding under the name of its check."""

    check: str
    finding: Finding


Check = Callable[[], Iterable[Finding]]


def ok(says: str) -> Finding:
    return Finding(Level.OK, says)


def warning(says: str, do: str) -> Finding:
    return Finding(Level.WARNING, says, do)


def problem(says: str, do: str) -> Finding:
    return Finding(Level.PROBLEM, says, do)


def ago(seconds: float) -> str:
    """Seconds as people say them: *40 s*, *5 min*, *3 h*, *2 days*."""
    for size, word, most in ((1, "s", 120), (60, "min", 7200), (3600, "h", 172_800)):
        if seconds < most:
            return f"{seconds / size:.0f} {word}"
    return f"{seconds / 86_400:.0f} days"
