"""What is said where the content of a run cannot be read, or may not be erased."""

from typing import Final

from common.errors import Refused

ERASED_TEXT: Final = "⟦erased⟧"
"""What a text column reads as once its run's content was erased."""
DAMAGED_TEXT: Final = "⟦damaged⟧"
"""What one reads as that does not open any more."""
LOCKED_TEXT: Final = "⟦key missing⟧"
"""What one reads as whose key this process was not given."""
UNREAD_TEXTS: Final = frozenset({ERASED_TEXT, DAMAGED_TEXT, LOCKED_TEXT})


class ContentErased(Refused):
    """Its content was erased. What is left is the proof: digests, times, names of states."""

    code = "content_erased"
    http_status = 410


class ContentInUse(Refused):
    """The run is not over: something of it waits, is under way, in doubt, or is being repaired."""

    code = "content_in_use"


class ContentOnHold(Refused):
    """A legal hold keeps the content of this run."""

    code = "content_on_hold"


class AlreadyErased(Refused):
    """Its content was erased before: there is nothing left to hold."""

    code = "already_erased"
