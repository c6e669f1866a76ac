"""A run's status: a pure function of its steps and commands, stored in the transaction that changed one."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from workflows.enums import CommandStatus, OnExpiry, RunStatus, StepStatus, WaitingFor

C, R, T = CommandStatus, RunStatus, StepStatus
LOOK_AGAIN = timedelta(hours=1)
"""How long a run may be executing, held, unknown or waiting to retry before a person is shown it."""


class StepLike(Protocol):
    """What the function reads of a step; steps come in the order of their position."""

    status: str
    started_at: datetime | None
    waiting_for: str
    wait_id: UUID | None
    waiting_until: datetime | None
    on_expiry: str


class CommandLike(Protocol):
    status: str


@dataclass(frozen=True, slots=True)
class Wait:
    """What a waiting run carries: what for, until when, and what happens then."""

    for_: str
    until: datetime
    on_expiry: OnExpiry
    wait_id: UUID | None


# After *unknown* and a step that waits for a person.
_BY_COMMAND = (
    ({C.HELD}, R.DEGRADED),
    ({C.READY, C.CLAIMED, C.SENT}, R.EXECUTING),
    ({C.RETRY_WAIT}, R.WAITING_FOR_RETRY),
)
_STATUS_OF_WAIT = {
    WaitingFor.DATA: R.WAITING_FOR_DATA,
    WaitingFor.APPROVAL: R.WAITING_FOR_APPROVAL,
    WaitingFor.PROVIDER: R.WAITING_FOR_PROVIDER,
    WaitingFor.RETRY: R.WAITING_FOR_RETRY,
    WaitingFor.CHILDREN: R.WAITING_FOR_CHILDREN,
    WaitingFor.PERSON: R.MANUAL_REPAIR,
}


def run_status(steps: Iterable[StepLike], commands: Iterable[CommandLike]) -> RunStatus:
    """The first rule of the design's section 4 that applies."""
    ordered, moving = list(steps), {command.status for command in commands}
    if C.UNKNOWN in moving:
        return R.UNKNOWN
    if any(_waits_for_person(step) for step in ordered):
        return R.MANUAL_REPAIR
    for states, status in _BY_COMMAND:
        if moving & states:
            return status
    waiting = next((step for step in ordered if step.status == T.WAITING), None)
    if waiting is not None:
        return _STATUS_OF_WAIT[WaitingFor(waiting.waiting_for)]
    return _unblocked_status(ordered)


def _waits_for_person(step: StepLike) -> bool:
    return step.status == T.WAITING and step.waiting_for == WaitingFor.PERSON


def _unblocked_status(steps: list[StepLike]) -> RunStatus:
    states = {step.status for step in steps}
    # A first step whose worker was lost, or that was given its data, is pending again; the run has begun
    # all the same.
    if states <= {T.PENDING} and not any(step.started_at for step in steps):
        return R.QUEUED
    if states & {T.PENDING, T.RUNNING}:
        return R.RUNNING
    if T.CANCELLED in states:
        return R.CANCELLED
    return R.FAILED if T.FAILED in states else R.COMPLETED


def run_wait(status: RunStatus, steps: Iterable[StepLike], now: datetime) -> Wait | None:
    """The clock of a waiting run: of the step that gave it the status; for a command a look within the
    hour.
    """
    if status in R.unclocked_states:
        return None
    for step in steps:
        if step.status == T.WAITING and _STATUS_OF_WAIT[WaitingFor(step.waiting_for)] == status:
            assert step.waiting_until is not None
            return Wait(step.waiting_for, step.waiting_until, OnExpiry(step.on_expiry), step.wait_id)
    return Wait(for_=status, until=now + LOOK_AGAIN, on_expiry=OnExpiry.MANUAL_QUEUE, wait_id=None)
