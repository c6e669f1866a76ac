"""Named places at which a test may kill, stop or break a process. Nothing happens unless the environment says so.

``PLACET_CRASHPOINT=CP5:kill`` (or ``stop``, ``raise``) acts at the first visit of that place in this process.

CP0 in the deciding transaction, before its commit · CP1 committed, before the ring · CP3 claim committed · CP4 checked,
before *sent* commits · CP5 *sent* committed, before the call · CP8 answer read, before it is stored · CP10 stored ·
CP12 look-up answered, before it is stored · CP13 lease recovered, before the commit.
"""

import os
import signal

_ASKED = os.environ.get("PLACET_CRASHPOINT", "")


class CrashpointReached(Exception):
    """Raised at a crash point by a test that asked for it."""


def crashpoint(name: str) -> None:
    """Die, pause or raise here if a test asked for this place; otherwise return at once."""
    if not _ASKED or not _ASKED.startswith(f"{name}:"):
        return
    how = _ASKED.partition(":")[2]
    if how == "raise":
        raise CrashpointReached(name)
    os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)
