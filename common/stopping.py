"""Whether this process was told to stop: it then finishes what it does, and begins nothing more.

Whoever loops over work asks `stopping` between two things. The answer to a signal must reach the process that
executes: a Celery worker's parent gets it, and its forked children do the work. So one flag lies in memory that a
process shares with the children it forks; another belongs to the process alone. Reading them costs nothing.
"""

import mmap
from typing import Final

_family: Final = mmap.mmap(-1, 1)  # anonymous and shared: what the parent writes, its forked children read
_alone: Final = bytearray(1)


def stop() -> None:
    """Tell this process, and the children that it forked, to begin nothing more. Safe in a signal's handler."""
    _family[0] = 1


def stop_alone() -> None:
    """Tell this process only, until `go_on`."""
    _alone[0] = 1


def stopping() -> bool:
    """Whether somebody asked for the end."""
    return bool(_family[0] or _alone[0])


def go_on() -> None:
    """Forget what only this process was told: it begins another task after all."""
    _alone[0] = 0
