"""What a row and its events have to do with each other: pure, for the product's check and for the harness of faults."""

from collections.abc import Collection, Mapping
from typing import Final

BEGINS: Final[Mapping[str, frozenset[str]]] = {
    "proposal": frozenset({"pending"}),
    "run": frozenset({"queued"}),
    # A step is made pending with its run, whose event tells of both.
    "step": frozenset({"pending"}),
    "command": frozenset(),
}
"""The states in which a row may be that no event has moved yet."""
OTHER_STATES: Final = ("run.outcome_corrected",)
"""Events whose states are not the row's: the outcome as it is counted."""


def fits(stored: str | None, told: str | None, begins: Collection[str]) -> bool:
    """Whether a row may be in this state after events that led to ``told`` (None: no event moved it)."""
    return stored in begins if told is None else stored == told
