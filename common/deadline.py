"""One wall-clock limit over a whole piece of work, on the clock that nobody can set."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """An instant of ``time.monotonic()``.

    A time limit per read, as HTTP libraries have it, ends no slow trickle; this does.
    """

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - time.monotonic())

    def over(self) -> bool:
        return time.monotonic() >= self.at
