"""How often somebody may ask: token buckets in memory that all processes of one web server share.

The table is mapped before the server forks, so that two processes do not allow twice as much; it needs neither Redis
nor a write to the database, and so a GET still changes nothing. Each host counts for itself, and a restart forgets.
Keys are ids that we gave out (a token's, a tenant's, a person's), never an address or anything else a client sends.
"""

import fcntl
import hashlib
import math
import mmap
import os
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.conf import settings

from common.errors import Refused

_SLOT: Final = struct.Struct("=16sdd")  # whose, how much is left, when that was so
SLOTS: Final = 8192
PROBES: Final = 8


class RateLimited(Refused):
    """Too many requests in a short time. Wait as long as `retry_after` says."""

    code = "rate_limited"
    http_status = 429


@dataclass(frozen=True, slots=True)
class Rate:
    """``per_minute`` on average, and ``burst`` at once after a quiet time. 0: no limit."""

    per_minute: float
    burst: float

    @classmethod
    def of(cls, per_minute: float, *, burst_minutes: float = 1) -> "Rate":
        return cls(per_minute, max(1.0, per_minute * burst_minutes))


class Buckets:
    """A table of fixed size. Where many are active at once, the one that was quiet for longest is forgotten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._memory = mmap.mmap(-1, SLOTS * _SLOT.size)
        self._file, name = tempfile.mkstemp()  # stays open, nameless, as long as the process
        os.unlink(name)
        self._threads = threading.Lock()
        self._clock = clock

    def take(self, key: str, rate: Rate, *, count: int = 1) -> float:
        """Take ``count`` from the bucket: 0, or the seconds after which it would be there. Then nothing is taken."""
        if rate.per_minute <= 0:
            return 0.0
        name = hashlib.blake2b(key.encode(), digest_size=16).digest()
        now, a_second = self._clock(), rate.per_minute / 60
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)  # the kernel frees it when its holder is killed
            try:
                slot, left, at = self._find(name, rate.burst, now)
                left = min(rate.burst, left + (now - at) * a_second)
                taken = left >= count
                _SLOT.pack_into(self._memory, slot * _SLOT.size, name, left - count if taken else left, now)
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)
        return 0.0 if taken else (count - left) / a_second

    def after_fork(self) -> None:
        """The lock among threads may have been held in the parent at that moment."""
        self._threads = threading.Lock()

    def _find(self, name: bytes, burst: float, now: float) -> tuple[int, float, float]:
        """The slot of this name with what was left when; a full one for a name that is not there."""
        first = int.from_bytes(name[:8], "big")
        oldest, its_time = first % SLOTS, math.inf
        for step in range(PROBES):
            slot = (first + step) % SLOTS
            whose, left, at = _SLOT.unpack_from(self._memory, slot * _SLOT.size)
            # What a killed process left half written is no number of ours.
            sound = 0 <= left <= burst and 0 <= at <= now
            if whose == name:
                return slot, left if sound else burst, at if sound else now
            if not sound or at < its_time:
                oldest, its_time = slot, at if 0 <= at <= now else -1.0
        return oldest, burst, now


buckets = Buckets()
os.register_at_fork(after_in_child=buckets.after_fork)


def check_rate(key: str, rate: Rate, *, count: int = 1) -> None:
    """Raises RateLimited, with the seconds to wait, when the bucket of ``key`` has not so much left.

    What is more than a full bucket takes a full one: it would otherwise never pass.
    """
    wait = buckets.take(key, rate, count=min(count, int(rate.burst)))
    if wait > 0:
        raise RateLimited(retry_after=max(1, math.ceil(wait)))


def check_caller(key: str, tenant_id: UUID, *, count: int = 1) -> None:
    """So many requests of a token or an endpoint, which count for its tenant too. Raises RateLimited."""
    check_rate(key, Rate.of(settings.PLACET_REQUESTS_PER_MINUTE), count=count)
    check_rate(f"tenant:{tenant_id}", Rate.of(settings.PLACET_TENANT_REQUESTS_PER_MINUTE), count=count)
