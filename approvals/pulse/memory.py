"""What this process knows of the last minutes: changes of proposals, how many wait, and whose sessions were checked.

A place in the history is a transaction number: everything below it is known. Numbers begin in one order and commit in
another, so what a page was told may come once more, never less: pages put up with that.
"""

import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from approvals.pulse.places import opened, sealed

KEPT_S: Final = 900.0
"""For how long changes are kept, and so how long a page may have slept and still be told of each."""
MOST_TOLD: Final = 300
"""More changes than this are told as one: the list is another."""
LEAD_S: Final = 5.0
"""A page begins to listen where the memory was before its rows were read, not after."""
FRESH_S: Final = 5.0
"""What was not read for longer is not told: the page does what it does without a pulse."""
MOST_SESSIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened to a proposal, as a page is told."""

    event: UUID
    place: int
    tenant_id: UUID
    told: dict[str, Any]
    read_at: float


@dataclass(frozen=True, slots=True)
class Present:
    """A session that was checked like that of any request, and what must not have changed since."""

    key: str
    user_id: UUID
    membership_id: UUID
    tenant_id: UUID
    password: str
    """Its SHA-256: a new password ends other sessions."""
    rights: str
    """Roles and groups in one word."""
    ends: float
    """On the monotonic clock: when the session has to be looked at as a whole again."""
    seen: float = 0.0


@dataclass(frozen=True, slots=True)
class Told:
    """An answer to a page."""

    cursor: str
    waiting: int | None
    changes: tuple[dict[str, Any], ...] = ()
    stale: bool = False

    @property
    def is_news(self) -> bool:
        return self.stale or bool(self.changes)


@dataclass
class Memory:
    """Everything above, for the threads of one process."""

    clock: Callable[[], float] = time.monotonic
    floor: int = 0
    """Changes from this place on are known."""
    place: int = 0
    """Everything below it has been read."""
    read_at: float = float("-inf")
    changes: dict[UUID, list[Change]] = field(default_factory=dict)
    waiting: dict[UUID, int] = field(default_factory=dict)
    known: set[UUID] = field(default_factory=set)
    sessions: dict[str, Present] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)
    """By session: how many notices its person has not read, as of the last look."""
    _lead: list[tuple[float, int]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # -- changes ------------------------------------------------------------------------------------------------

    def learn(self, place: int, changes: Iterable[Change], waiting: dict[UUID, int]) -> None:
        """Take over what was read: everything below ``place``, and perhaps more."""
        with self._lock:
            now = self.clock()
            if not self.floor:
                self.floor = place
            for change in changes:
                if change.event not in self.known:
                    self.known.add(change.event)
                    self.changes.setdefault(change.tenant_id, []).append(change)
            self.waiting.update(waiting)
            self.place, self.read_at = max(place, self.place), now
            self._lead.append((now, self.place))
            self._forget(now)

    def reach_back(self, floor: int, changes: Iterable[Change]) -> None:
        """Take over what was read from an earlier place on, after a start or a long silence."""
        with self._lock:
            for change in changes:
                if change.event not in self.known:
                    self.known.add(change.event)
                    self.changes.setdefault(change.tenant_id, []).append(change)
            self.floor = min(self.floor, floor)

    def _forget(self, now: float) -> None:
        while len(self._lead) > 1 and self._lead[1][0] <= now - LEAD_S:
            self._lead.pop(0)
        for tenant_id, changes in list(self.changes.items()):
            old = [change for change in changes if change.read_at < now - KEPT_S]
            if old:
                self.known -= {change.event for change in old}
                self.floor = max(self.floor, *(change.place + 1 for change in old))
                self.changes[tenant_id] = [change for change in changes if change.read_at >= now - KEPT_S]

    @property
    def is_fresh(self) -> bool:
        return self.clock() - self.read_at < FRESH_S

    def tenants_known(self) -> set[UUID]:
        return set(self.waiting)

    def beginning(self) -> str:
        """Where a page that is made now begins to listen."""
        with self._lock:
            return sealed(self._lead[0][1] if self._lead else self.place)

    def told(self, tenant_id: UUID, cursor: str) -> Told:
        """What has happened in a tenant since a place that a page was given before."""
        place, _, mark = cursor.partition(".")
        since = opened(place)
        with self._lock:
            found = [change for change in self.changes.get(tenant_id, ()) if change.place >= since]
            known = self.floor <= since <= self.place
            waiting, here = self.waiting.get(tenant_id), self.place
        if not known or len(found) > MOST_TOLD:
            return Told(sealed(here), waiting, stale=True)
        # What is told again, because its number may still be followed by a lower one, is no news to this page.
        again = [change for change in found if change.place >= here]
        following = f"{sealed(here)}.{_mark(again)}" if again else sealed(here)
        if _mark(found) == mark:
            return Told(following, waiting)
        return Told(following, waiting, tuple(change.told for change in found))

    # -- sessions -----------------------------------------------------------------------------------------------

    def enter(self, present: Present) -> None:
        with self._lock:
            if len(self.sessions) >= MOST_SESSIONS:
                oldest = min(self.sessions.values(), key=lambda known: known.seen)
                del self.sessions[oldest.key]
            self.sessions[present.key] = replace(present, seen=self.clock())

    def present(self, key: str) -> Present | None:
        """A checked session that is still good as of the last look, or None."""
        with self._lock:
            known, now = self.sessions.get(key), self.clock()
            if known is None or now >= known.ends:
                self.sessions.pop(key, None)
                return None
            self.sessions[key] = known = replace(known, seen=now)
            return known

    def here(self, within_s: float) -> list[Present]:
        """The sessions that asked lately; the others are forgotten."""
        with self._lock:
            since = self.clock() - within_s
            self.sessions = {key: known for key, known in self.sessions.items() if known.seen >= since}
            self.unread = {key: count for key, count in self.unread.items() if key in self.sessions}
            return list(self.sessions.values())

    def leave(self, keys: Collection[str]) -> None:
        """These are checked anew when they ask again."""
        with self._lock:
            for key in keys:
                self.sessions.pop(key, None)


def _mark(changes: Iterable[Change]) -> str:
    events = b"".join(sorted(change.event.bytes for change in changes))
    return f"{zlib.crc32(events):x}" if events else ""


memory: Final = Memory()
