"""What this app asks of those who know what a message is about; they register here when the apps are loaded.

This app knows people, channels, messages and deliveries. Whether a subject still waits, and how it ended, it asks.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from audit.models import Event
from common.clock import Clock


@dataclass(frozen=True, slots=True)
class Standing:
    """How a subject stands at this moment. ``says``: how it ended, in words for its page; ``at``: when."""

    waits: bool
    says: str = ""
    at: datetime | None = None
    done: frozenset[UUID] = frozenset()
    """Accounts that have done their part: they are asked no more."""


WAITS = Standing(waits=True)
GONE = Standing(waits=False, says="It is no longer there.")


@dataclass(frozen=True, slots=True)
class Teller:
    """One app that tells people something.

    ``tell`` gets new events of the history, in their order, inside the transaction in which they count as told, and
    writes messages by `notify.actions.telling`. ``standings`` answers for subjects of a tenant, in few queries; who is
    missing from its answer is gone.
    """

    name: str
    subject_type: str
    events: frozenset[str]
    tell: Callable[[UUID, Sequence[Event]], None]
    standings: Callable[[UUID, Collection[UUID]], Mapping[UUID, Standing]]
    due: Callable[[Clock], int] | None = None
    """What it has to tell because some time is over, and not because of an event: it looks by itself, and acts."""


_tellers: list[Teller] = []


def register(teller: Teller) -> None:
    if teller not in _tellers:
        _tellers.append(teller)


def tellers() -> list[Teller]:
    return list(_tellers)


def standings_of(tenant_id: UUID, subject_type: str, ids: Collection[UUID]) -> Mapping[UUID, Standing]:
    """Of subjects that nobody has registered for: they wait, as far as anybody knows."""
    teller = next((one for one in _tellers if one.subject_type == subject_type), None)
    if teller is None:
        return dict.fromkeys(ids, WAITS)
    return dict.fromkeys(ids, GONE) | dict(teller.standings(tenant_id, ids))
