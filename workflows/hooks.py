"""The named upward calls of this app: something stopped, waits for a second person's word, or is settled.

The repair desk registers here when the apps are loaded; all run inside the caller's transaction, its run locked.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from audit.actors import Actor
from common.clock import Clock
from common.pipelined import Question, ask
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

WhichStopped = Callable[[Collection[UUID]], Question[set[UUID]]]
OnHalfSaid = Callable[[Run, UUID, Actor, datetime], None]

Look = Callable[[Actor, Clock], object]

_on_stopped: list[OnStopped] = []
_on_settled: list[OnSettled] = []
_which_stopped: list[WhichStopped] = []
_on_half_said: list[OnHalfSaid] = []
_looks: list[Look] = []


def register(
    *, on_stopped: OnStopped, on_settled: OnSettled, which_stopped: WhichStopped, on_half_said: OnHalfSaid
) -> None:
    """``which_stopped`` says of which of these runs something is still open: only they need `settled`."""
    if on_stopped not in _on_stopped:
        _on_stopped.append(on_stopped)
        _on_settled.append(on_settled)
        _which_stopped.append(which_stopped)
        _on_half_said.append(on_half_said)


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


def half_said(run: Run, command_id: UUID, *, by: Actor, at: datetime) -> None:
    """One person said what became of an unknown command, and it takes two: its packet waits for the second."""
    require_transaction()
    for hook in _on_half_said:
        hook(run, command_id, by, at)


def open_stops(runs: Collection[UUID]) -> list[Question[set[UUID]]]:
    """Those of these runs for which `settled` would have something to do, to be asked after they are locked."""
    require_transaction()
    return [hook(runs) for hook in _which_stopped]


def with_open_stops(runs: Collection[UUID]) -> set[UUID]:
    """Those of these locked runs for which `settled` would have something to do."""
    return set[UUID]().union(*ask(*open_stops(runs)))


def look_too(look: Look) -> None:
    """Let something of a higher app be looked for by the sweep once a minute, in transactions of its own."""
    if look not in _looks:
        _looks.append(look)


def looks() -> list[Look]:
    return list(_looks)
