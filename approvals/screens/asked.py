"""Of whom a proposal is asked by now, whom else it will be asked of, and that too few of them are there."""

from collections.abc import Sequence
from datetime import datetime

from access.enums import Role
from approvals.enums import EscalationOutcome, ProposalStatus
from approvals.models import Escalation, Proposal
from approvals.screens.standing import Notice
from common import spans
from common.display import visible


def asked_notices(proposal: Proposal, now: datetime) -> tuple[Notice, ...]:
    """Of one that waits: first that nobody can answer in time, then who else is asked."""
    if proposal.status != ProposalStatus.PENDING or now >= proposal.decide_by:
        return ()
    steps = list(proposal.escalations.select_related("group"))
    notices = []
    if proposal.unmanned:
        notices.append(Notice("bad", "users", "Too few are there in time.", proposal.unmanned))
    widened = [step for step in steps if step.outcome == EscalationOutcome.WIDENED]
    if widened:
        notices.append(Notice("wait", "users", "Asked of more people.", _told(widened, "Since")))
    planned = [step for step in steps if step.handled_at is None]
    if planned:
        notices.append(Notice("mute", "clock", "When nobody decides:", _told(planned, "From")))
    return tuple(notices)


def _told(steps: Sequence[Escalation], word: str) -> str:
    return " ".join(
        f"{word} {spans.utc_text(step.handled_at or step.due_at)} it is asked of {_whom(step)} too, {step.because}."
        for step in steps
    )


def _whom(step: Escalation) -> str:
    if step.group is not None:
        return visible(step.group.name)
    return "every reviewer" if step.role == Role.REVIEWER else f"every {Role(step.role).label.lower()}"
