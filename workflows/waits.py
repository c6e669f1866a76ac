"""The clock that a waiting step takes on: for what, until when, and what happens then."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from common.ids import new_id
from workflows.enums import OnExpiry, WaitingFor

PERSON_LOOKS_WITHIN = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class StepWait:
    """One wait. Its id is new each time, so that a late answer to an earlier wait is told apart."""

    for_: WaitingFor
    until: datetime
    on_expiry: OnExpiry = OnExpiry.MANUAL_QUEUE
    wait_id: UUID = field(default_factory=new_id)


def wait_for_person(now: datetime) -> StepWait:
    """A person is asked; if nobody looks, it is escalated, never dropped."""
    return StepWait(WaitingFor.PERSON, now + PERSON_LOOKS_WITHIN, OnExpiry.ESCALATE)


def wait_for_approval(decide_by: datetime, on_expiry: OnExpiry) -> StepWait:
    return StepWait(WaitingFor.APPROVAL, decide_by, on_expiry)
