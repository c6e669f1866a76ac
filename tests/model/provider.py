"""An outside system in memory, with a journal of its own: the oracle that says what really happened."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from workflows.classify import Meaning

SETTLE_TIME = timedelta(minutes=2)
"""A request takes effect within this time of its send, or never."""
KEY_RETENTION = timedelta(hours=24)


@dataclass
class Request:
    """One request on its way. ``lawful``: everything that must hold at *sent* held, judged independently."""

    command: UUID
    key: str
    sent_at: datetime
    lawful: bool
    state: str = "on_its_way"  # or "applied", "dropped"


@dataclass
class Provider:
    """``remembers_keys``: the same key twice has one effect. The tests mostly use one that does not."""

    remembers_keys: bool = False
    requests: list[Request] = field(default_factory=list)
    effects: list[Request] = field(default_factory=list)

    def receive(self, request: Request) -> Request:
        self.requests.append(request)
        return request

    def apply(self, request: Request) -> None:
        """The request takes effect, perhaps long after the caller has given up waiting."""
        assert request.state == "on_its_way"
        request.state = "applied"
        if not (self.remembers_keys and self.effects_of(request.key)):
            self.effects.append(request)

    def drop(self, request: Request) -> None:
        assert request.state == "on_its_way"
        request.state = "dropped"

    def time_passes(self, now: datetime) -> None:
        """What has not been applied within the settle time never will be."""
        for request in self.requests:
            if request.state == "on_its_way" and now >= request.sent_at + SETTLE_TIME:
                self.drop(request)

    def on_its_way(self, command: UUID | None = None) -> list[Request]:
        return [r for r in self.requests if r.state == "on_its_way" and command in (None, r.command)]

    def effects_of(self, key: str) -> list[Request]:
        return [request for request in self.effects if request.key == key]

    def honest(self, request: Request, meaning: Meaning) -> bool:
        """Whether this answer may come: a definite answer tells the truth, *unknown* may always be all we
        get.
        """
        if meaning is Meaning.UNKNOWN:
            return True
        if meaning is Meaning.CONFIRMED:
            return request.state == "applied"
        return request.state == "dropped"
