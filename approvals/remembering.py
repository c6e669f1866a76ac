"""Remembered rejections: what a person said no to is answered at once when it is proposed again, until the clock or a
person says otherwise. For locked proposals, inside an action.
"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from approvals.enums import DecisionKind, Remember
from approvals.models import Decision, Proposal, Rejection
from approvals.recorded import note
from approvals.refusals import PreviouslyRejected
from audit.actors import Actor
from common import prepared
from common.pipelined import Question, first_of
from common.tx import require_transaction


def span_of(proposal: Proposal) -> timedelta:
    """For how long the policy, as it was when this was proposed, wants a rejection of it remembered."""
    return timedelta(seconds=proposal.policy.get("remember_s", 0))


def remember(proposal: Proposal, vote: Decision, word: str, *, by: Actor, now: datetime) -> None:
    """Write down until when this rejection answers whoever proposes the same again, if it does.

    ``word``: what the person chose; empty where they leave it to the policy.
    """
    require_transaction()
    span = Remember(word).span if word else span_of(proposal)
    if not span or vote.user_id is None:
        return
    rejection = Rejection(
        tenant_id=proposal.tenant_id, proposal=proposal, operation=proposal.operation, target=proposal.target,
        material_digest=proposal.material_digest, reason_code=vote.reason_code, rejected_by_id=vote.user_id,
        rejected_at=now, until=now + span,
    )  # fmt: skip
    prepared.insert(rejection)
    body = {"rejection_id": str(rejection.pk), "until": rejection.until.isoformat()}
    note(proposal, "proposal.rejection_remembered", by=by, reason=vote.reason_code, body=body)


def held_question(tenant_id: UUID, material_digest: str, now: datetime) -> Question[UUID | None]:
    """The newest remembered rejection of exactly this action, which is in force now."""
    return first_of(_HELD, [tenant_id, material_digest, now])


def check_not_rejected(held: UUID | None, *, proposed_by: str) -> None:
    """Raises PreviouslyRejected where a rejection is remembered, with what may be said of it.

    The words of whoever rejected it are for the side whose proposal it was, who had them before.
    """
    require_transaction()
    if held is None:
        return
    found = Rejection.objects.select_related("proposal").get(pk=held)
    theirs = found.proposal.proposed_by == proposed_by
    raise PreviouslyRejected(**told_of(found) | ({"reason": words_of(found)} if theirs else {}))


_HELD: Final = """
    SELECT r.id FROM approvals_rejection r
    WHERE r.tenant_id = %s AND r.material_digest = %s AND r.lifted_at IS NULL AND r.until > %s
    ORDER BY r.rejected_at DESC, r.id DESC LIMIT 1
"""


def told_of(rejection: Rejection) -> dict[str, Any]:
    """What of a rejection may be said to everybody who proposes the same: a code, times, and where it stands."""
    return {
        "proposal_id": str(rejection.proposal_id), "reason_code": rejection.reason_code,
        "rejected_at": rejection.rejected_at.isoformat(), "until": rejection.until.isoformat(),
    }  # fmt: skip


def words_of(rejection: Rejection) -> str:
    """What the person wrote who rejected it."""
    votes = Decision.objects.filter(
        proposal=rejection.proposal_id, kind=DecisionKind.REJECT, replaced_at__isnull=True
    )
    vote = votes.select_related("proposal").order_by("-at").first()
    return vote.reason if vote is not None else ""
