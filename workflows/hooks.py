"""The named upward calls of this app: something stopped, and something that had stopped is settled.

The repair desk registers here when the apps are loaded; both run inside the caller's transaction.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from audit.actors import Actor
from common.tx import require_transaction
from workflows.models import Run


@dataclass(frozen=True, slots=True)
class Stop:
    """What stopped and why. ``cause`` is a stable code; ``summary`` a sentence without personal data."""

    run: Run
    step: str
    cause: str
    summary: str
    owner: str
    command_id: UUID | None = None
    proposal_id: UUID | None = None


OnStopped = Callable[[Stop, Actor, datetime], None]
OnSettled = Callable[[Run, str, str, Actor, datetime], None]

_on_stopped: list[OnStopped] = []
_on_settled: list[OnSettled] = []


def register(*, on_stopped: OnStopped, on_settled: OnSettled) -> None:
    if on_stopped not in _on_stopped:
        _on_stopped.append(on_stopped)
        _on_settled.append(on_settled)


def stopped(stop: Stop, *, by: Actor, at: datetime) -> None:
    """Open a repair packet for it (one per run, step and cause)."""
    require_transaction()
    for hook in _on_stopped:
        hook(stop, by, at)


def settled(run: Run, step: str, how: str, *, by: Actor, at: datetime) -> None:
    """What had stopped at this step goes on or has ended: close its packets, saying how. No step: the run's, all."""
    require_transaction()
    for hook in _on_settled:
        hook(run, step, how, by, at)
