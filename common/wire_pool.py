"""Idle connections, kept for a few seconds so that a burst of calls does not pay for a handshake each.

A kept connection is used only after it was seen open and quiet. What cannot be seen, a close that is on
its way, ends the exchange as *no answer*, never as a second send.
"""

import atexit
import os
import threading
import time
import weakref

from common.wire import Wire

Key = tuple[str, str, int]
"""Scheme, host, port: connections are never shared between names, even when these share an address."""

IDLE_SECONDS = 3.0
"""Shorter than any server's usual idle limit, so that we are the side that closes."""

LIFE_SECONDS = 60.0
"""After this a connection is not kept, so that a changed address is seen and checked."""

KEPT_PER_KEY = 16


class WirePool:
    """Thread-safe; a forked child starts empty."""

    def __init__(self) -> None:
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self.lock = threading.Lock()
        self.idle: dict[Key, list[Wire]] = {}
        self.swept_at = time.monotonic()

    def take(self, key: Key) -> Wire | None:
        """The most recently used connection that is still open and quiet."""
        while True:
            with self.lock:
                kept = self.idle.get(key)
                wire = kept.pop() if kept else None
            if wire is None:
                return None
            if not _expired(wire, time.monotonic()) and wire.is_clean():
                return wire
            wire.close()

    def give_back(self, key: Key, wire: Wire) -> None:
        wire.idle_since = time.monotonic()
        self._sweep(wire.idle_since)
        with self.lock:
            kept = self.idle.setdefault(key, [])
            if len(kept) < KEPT_PER_KEY and wire.idle_since - wire.opened_at < LIFE_SECONDS:
                kept.append(wire)
                return
        wire.close()

    def close(self) -> None:
        with self.lock:
            wires = [wire for kept in self.idle.values() for wire in kept]
            self.idle.clear()
        for wire in wires:
            wire.close()

    def _sweep(self, now: float) -> None:
        """Now and then, close what expired, so that hosts called once do not hold sockets for ever."""
        with self.lock:
            if now - self.swept_at < IDLE_SECONDS:
                return
            self.swept_at = now
            expired = [wire for kept in self.idle.values() for wire in kept if _expired(wire, now)]
            self.idle = {key: fresh for key, kept in self.idle.items() if (fresh := _fresh(kept, now))}
        for wire in expired:
            wire.close()

    def forget(self) -> None:
        """In a forked child: the connections belong to the parent, and the lock may be held by its thread."""
        self._reset()


def _expired(wire: Wire, now: float) -> bool:
    return now - wire.idle_since >= IDLE_SECONDS


def _fresh(wires: list[Wire], now: float) -> list[Wire]:
    return [wire for wire in wires if not _expired(wire, now)]


_pools: "weakref.WeakSet[WirePool]" = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)
