"""Who came first: what somebody who is too late is told, by name and time, of what stands now."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from approvals.enums import ProposalStatus
from approvals.models import Proposal
from approvals.selectors import last_decision, shown_status
from audit.actors import clock_actor
from audit.models import Event
from common.errors import Refused

S = ProposalStatus


@dataclass(frozen=True, slots=True)
class Came:
    """The move that ended a proposal's wait: to which state, by whom, when; and the version that took its place."""

    how: str
    by: str
    at: datetime
    successor: UUID | None = None


_KINDS: Final = [
    f"proposal.{status}" for status in S.values if status not in (S.PENDING, S.CONSUMED, S.LAPSED)
]  # fmt: skip
"""What came of an approval afterwards is not what somebody was too late for."""


def who_came_first(proposal: Proposal, now: datetime) -> Came | None:
    """The last move as the history has it; None while it waits. Out of time, it was the clock, swept or not."""
    status = shown_status(proposal, now)
    if status == S.PENDING:
        return None
    if status != proposal.status:
        return Came(status, clock_actor().performed_by, proposal.decide_by)
    events = Event.objects.filter(tenant_id=proposal.tenant_id, subject_id=proposal.pk, kind__in=_KINDS)
    last = events.order_by("-at", "-id").values_list("to_state", "performed_by", "at").first()
    if last is None:
        return None
    successor = proposal.successors.values_list("pk", flat=True).first()
    return Came(*last, successor=successor)


def add_what_stands(refused: Refused, proposal: Proposal, now: datetime) -> None:
    """Whoever came too late is told what stands now, and by whose act."""
    last, came = last_decision(proposal), who_came_first(proposal, now)
    refused.details |= {
        "proposal_status": shown_status(proposal, now), "state_version": proposal.state_version,
        "decision": {"decision": last.kind, "by": last.performed_by, "at": last.at.isoformat()} if last else None,
    }  # fmt: skip
    if came is not None:
        refused.details |= {"moved": {"to": came.how, "by": came.by, "at": came.at.isoformat()}}
        if came.successor is not None:
            refused.details |= {"superseded_by": str(came.successor)}
