"""Child processes that cannot outlive their parent."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable

_LIBC = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
_PR_SET_PDEATHSIG = 1


def die_with_parent(sig: int) -> Callable[[], None]:
    """A `preexec_fn` that makes the kernel send `sig` to the child when this process is gone.

    It runs after subprocess has changed the user, which would clear the setting. Only Linux has
    it; elsewhere a launcher that was killed with SIGKILL leaves its children to be stopped by hand.
    The signal follows the thread that starts the child, so start children from the main thread.
    """
    parent = os.getpid()

    def prepare() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, sig, 0, 0, 0)
            if os.getppid() != parent:  # the parent went in between
                os._exit(1)

    return prepare


def stop(process: subprocess.Popen[bytes] | None, sig: int, *, grace: float) -> None:
    """Asks the process to end with `sig`; after `grace` seconds kills it and its process group."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(sig)
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the whole group. The process must have been started in a session of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait(5)
