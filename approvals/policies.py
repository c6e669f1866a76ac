"""Who may decide, and when. ``check_*`` raises the reason; ``can_*`` is the same rule as a bool, for buttons."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from access.enums import Role
from access.policies import check_role, membership_of
from access.selectors import Standing, standings
from approvals.enums import DecisionKind, ProposalStatus
from approvals.models import Decision, Proposal
from approvals.refusals import (
    BY_STATUS,
    AlreadyDecided,
    DecisionRefused,
    Expired,
    NotEligible,
    OwnProposal,
    TokenCannotDecide,
)
from audit.actors import Actor, Via


@dataclass(frozen=True, slots=True)
class Capacity:
    """In which capacity a person decides; recorded, because losing it before the send counts as revocation."""

    role: str
    group_id: UUID | None


def check_can_decide(proposal: Proposal, by: Actor) -> Capacity:
    """The *who*: a person in a session, not the proposer's side, reviewer of the group that is asked."""
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotDecide()
    standing = standings(proposal.tenant_id, [by.user_id], lock=False).get(by.user_id)
    if standing is None or not _is_asked(proposal, standing):
        raise NotEligible()
    if by.user_id in proposal.excluded_users:
        raise OwnProposal()
    return Capacity(Role.REVIEWER, proposal.group_id)


def can_decide(proposal: Proposal, by: Actor) -> bool:
    try:
        check_can_decide(proposal, by)
    except DecisionRefused:
        return False
    return True


def _is_asked(proposal: Proposal, standing: Standing) -> bool:
    in_group = proposal.group_id is None or proposal.group_id in standing.group_ids
    return Role.REVIEWER in standing.roles and in_group


SEES_PERSONAL = (Role.REVIEWER, Role.AUDITOR, Role.OWNER)
"""Whose role is shown the personal fields of an action, and so the whole of it."""


def check_can_see_all(by: Actor, tenant_id: UUID) -> None:
    """Raises RoleMissing for people whose role is not shown personal fields."""
    check_role(membership_of(by.user_id, tenant_id), *SEES_PERSONAL)


def check_is_open(proposal: Proposal, now: datetime) -> None:
    """The *when*: pending, and before decide-by on the clock that was read after the row lock."""
    if proposal.status != ProposalStatus.PENDING:
        raise BY_STATUS.get(proposal.status, AlreadyDecided)(status=proposal.status)
    if now >= proposal.decide_by:
        raise Expired(decide_by=proposal.decide_by.isoformat())


def standing_votes(proposal: Proposal) -> list[Decision]:
    """The votes that have not been replaced, oldest first."""
    return list(proposal.decisions.filter(replaced_at__isnull=True))


def valid_approvals(proposal: Proposal, votes: Sequence[Decision], *, lock: bool = False) -> int:
    """How many distinct eligible people approve exactly these two digests, as of now.

    An account that was deactivated, or that lost the role or group it decided under, does not count. With ``lock``
    no revocation takes place until the transaction ends, so that what is counted here still holds at its commit.
    """
    approving = {
        vote.user_id for vote in votes
        if vote.kind == DecisionKind.APPROVE and vote.user_id is not None
        and vote.user_id not in proposal.excluded_users
        and (vote.digest, vote.view_digest) == (proposal.digest, proposal.view_digest)
    }  # fmt: skip
    found = standings(proposal.tenant_id, approving, lock=lock) if approving else {}
    return sum(_is_asked(proposal, standing) for standing in found.values())


def approved_by_rule(proposal: Proposal, votes: Sequence[Decision]) -> bool:
    """Whether the policy's own rule approved exactly these digests (allowed on stage *execute* only)."""
    return any(
        vote.rule and (vote.digest, vote.view_digest) == (proposal.digest, proposal.view_digest)
        for vote in votes
    )
