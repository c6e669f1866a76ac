"""Hold a proposal, give it back, take it over: so that two people do not read the same thing.

A claim is courtesy. Deciding does not look at it, and whoever else may decide still may.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from access.models import User
from approvals.actions import lock_proposal
from approvals.models import Claim, Proposal
from approvals.policies import check_can_decide, check_is_open
from approvals.refusals import DecisionRefused, TokenCannotDecide
from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.display import visible
from common.tx import action

LEASE: Final = timedelta(minutes=10)
"""From the last thing that the holder did."""


class HeldByAnother(DecisionRefused):
    """Somebody else is reading this. You may take it over, and you may decide without."""

    code = "held_by_another"


@action
def hold(*, tenant_id: UUID, proposal_id: UUID, take_over: bool, by: Actor, clock: Clock) -> Claim:
    """Hold a proposal that waits, for LEASE; what one holds already is held for longer, without an event.

    Raises HeldByAnother unless ``take_over`` is said, and a DecisionRefused for those who could not decide it or where
    it no longer waits.
    """
    proposal = lock_proposal(tenant_id, proposal_id)
    now = clock()
    check_can_decide(proposal, by)
    check_is_open(proposal, now)
    claim = Claim.objects.filter(tenant_id=tenant_id, proposal_id=proposal_id).select_related("user").first()
    before = claim.user if claim is not None and claim.is_held(now) else None
    if claim is not None and before is not None and before.pk == by.user_id:
        claim.until = now + LEASE
        claim.save(update_fields=["until"])
        return claim
    if before is not None and not take_over:
        raise HeldByAnother(holder=visible(str(before)))
    held = _given(proposal, claim, by, now)
    _record(proposal, "proposal.taken_over" if before is not None else "proposal.held", by=by, before=before)
    return held


@action
def release(*, tenant_id: UUID, proposal_id: UUID, by: Actor, clock: Clock) -> bool:
    """Give back what one holds. False where it is held by somebody else, or by nobody any more."""
    proposal = lock_proposal(tenant_id, proposal_id)
    now = clock()
    claim = Claim.objects.filter(tenant_id=tenant_id, proposal_id=proposal_id, user_id=_person(by)).first()
    if claim is None or not claim.is_held(now):
        return False
    claim.until = now
    claim.save(update_fields=["until"])
    _record(proposal, "proposal.released", by=by, before=None)
    return True


@action
def renew(*, tenant_id: UUID, proposal_id: UUID, by: Actor, clock: Clock) -> bool:
    """The holder is still at it: for LEASE from now on. False where they hold it no longer. It is no event."""
    lock_proposal(tenant_id, proposal_id)
    now = clock()
    theirs = Claim.objects.filter(
        tenant_id=tenant_id, proposal_id=proposal_id, user_id=_person(by), until__gt=now
    )
    return bool(theirs.update(until=now + LEASE))


def _person(by: Actor) -> UUID:
    """Whoever holds is a person in a session."""
    if by.user_id is None:
        raise TokenCannotDecide()
    return by.user_id


def _given(proposal: Proposal, claim: Claim | None, by: Actor, now: datetime) -> Claim:
    held = claim or Claim(tenant_id=proposal.tenant_id, proposal=proposal)
    held.user_id, held.since, held.until = _person(by), now, now + LEASE
    held.save()
    return held


def _record(proposal: Proposal, kind: str, *, by: Actor, before: User | None) -> None:
    record(
        by=by, kind=kind, tenant_id=proposal.tenant_id, subject_type="proposal", subject_id=proposal.pk,
        run_id=proposal.run_id, digest=proposal.digest, body={"from": f"user:{before.pk}"} if before else None,
    )  # fmt: skip
