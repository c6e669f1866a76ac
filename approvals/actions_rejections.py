"""Lifting a remembered rejection: a person's act, after which the same thing may be asked again."""

from uuid import UUID

from approvals.actions import lock_proposal
from approvals.models import Rejection
from approvals.policies import check_can_decide
from approvals.recorded import note
from approvals.refusals import AlreadyLifted, NothingRemembered, ReasonRequired
from audit.actors import Actor
from common.clock import Clock
from common.sealed import is_erased
from common.tx import action


@action
def lift(*, tenant_id: UUID, proposal_id: UUID, why: str, by: Actor, clock: Clock) -> Rejection:
    """Let the same thing be asked again. By whoever could decide on what was rejected, with a reason.

    Raises UnknownProposal, NotEligible, OwnProposal, ReasonRequired, AlreadyLifted, NothingRemembered.
    """
    proposal = lock_proposal(tenant_id, proposal_id)
    check_can_decide(proposal, by)
    rows = Rejection.objects.select_for_update(of=("self",), no_key=True).select_related("lifted_by")
    rejection, now = rows.filter(tenant_id=tenant_id, proposal=proposal).first(), clock()
    if rejection is None or (rejection.lifted_at is None and now >= rejection.until):
        raise NothingRemembered()
    if rejection.lifted_at is not None:
        raise AlreadyLifted(by=str(rejection.lifted_by), at=rejection.lifted_at.isoformat())
    if not why.strip():
        raise ReasonRequired()
    rejection.proposal = proposal
    words = "" if is_erased(rejection) else why.strip()  # of what was erased nobody's words are kept
    rejection.lifted_at, rejection.lifted_by_id, rejection.lifted_why = now, by.user_id, words
    rejection.save(update_fields=["lifted_at", "lifted_by", "lifted_why"])
    body = {"rejection_id": str(rejection.pk), "until": rejection.until.isoformat()}
    note(proposal, "proposal.rejection_lifted", by=by, body=body)
    return rejection
