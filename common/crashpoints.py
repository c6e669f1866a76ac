"""Named places at which a test may kill, stop or break a process. Nothing happens unless the environment says so.

``PLACET_CRASHPOINT=CP5:kill`` (or ``stop``, ``raise``) acts once, at the first visit of that place in this process;
``CP5:kill:3`` at the third.

CP0 in the deciding transaction, before its commit · CP1 committed, before the ring · CP2 a wake-up has arrived, nothing
was looked at yet · CP3 claim committed · CP4 checked, before *sent* commits · CP5 *sent* committed, before the call ·
CP6 a part of the request written · CP7 all of it written, before the answer is read · CP8 answer read, before it is
stored · CP9 stored, before the commit · CP10 stored and committed · CP11 the wake-up's work is done · CP12 look-up
answered, before it is stored · CP13 lease recovered, before the commit · CP14 events sealed, before the commit ·
CP15 a person's resolution, before the commit · CP16 a mail was taken, before that is stored · CP17 a
checkpoint kept in the signer's folder, before the database has it.
"""

import os
import signal

_ASKED = os.environ.get("PLACET_CRASHPOINT", "")
_visits = 0


class CrashpointReached(Exception):
    """Raised at a crash point by a test that asked for it."""


def crashpoint(name: str) -> None:
    """Die, pause or raise here if a test asked for this place; otherwise return at once."""
    if not _ASKED or not _ASKED.startswith(f"{name}:"):
        return
    _act(name, *_ASKED.split(":")[1:])


def _act(name: str, how: str, at_visit: str = "1") -> None:
    global _ASKED, _visits  # noqa: PLW0603 - one process, one wish of a test
    _visits += 1
    if _visits < int(at_visit):
        return
    _ASKED, _visits = "", 0
    if how == "raise":
        raise CrashpointReached(name)
    os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)


def asked_for(name: str) -> bool:
    """Whether a test waits for this place; for code that would have to take a detour to visit it."""
    return _ASKED.startswith(f"{name}:")
