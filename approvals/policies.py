"""Who may decide, and when. ``check_*`` raises the reason; ``can_*`` is the same rule as a bool, for buttons."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.urls import reverse

from access.enums import Posture, Role
from access.policies import check_role, membership_of
from access.selectors import Standing, Stead, standings
from access.web import confirm_address
from approvals.enums import DecisionKind, ProposalStatus
from approvals.models import Decision, Proposal
from approvals.refusals import (
    BY_STATUS,
    AlreadyDecided,
    AuthorOfVersion,
    DecisionRefused,
    Expired,
    NotEligible,
    OwnProposal,
    ReauthRequired,
    TokenCannotDecide,
)
from audit.actors import Actor, Via
from common.pipelined import Question, rows_of, then
from common.prepared import Reading

_STANDING_VOTES = Reading(Decision, "WHERE r.proposal_id = %s AND r.replaced_at IS NULL ORDER BY r.at, r.id")


@dataclass(frozen=True, slots=True)
class Capacity:
    """In which capacity a person decides; recorded, because losing it before the send counts as revocation."""

    role: str
    group_id: UUID | None
    accounts: frozenset[UUID]
    """All accounts of this person, who has one vote."""
    own: bool
    """On their own proposal, which only the break-glass posture allows."""
    posture: Posture
    stead: Stead | None = None
    """In whose stead, where this person is asked for no other reason."""

    @property
    def facts(self) -> dict[str, Any]:
        """What of it stands in the event of a vote: only what is not the ordinary case."""
        posture = {"posture": str(self.posture), "own": self.own} if self.posture else {}
        if self.stead is None:
            return posture
        return posture | {
            "in_stead_of": str(self.stead.user_id),
            "absence": str(self.stead.absence_id),
        }

    def acting(self, by: Actor) -> Actor:
        """The actor as the history names them: with whose place it was."""
        return replace(by, on_behalf_of=f"user:{self.stead.user_id}") if self.stead else by


Known = Mapping[UUID, Standing]
"""What was read of people before, in the same transaction and under the proposal's lock; who is missing is nobody."""


def check_can_decide(
    proposal: Proposal, by: Actor, *, known: Known | None = None, votes: Sequence[Decision] | None = None
) -> Capacity:
    """The *who*: a person in a session, not the proposer's side, reviewer of a group that is asked, or their deputy.

    ``votes``: those that stand, where they were read; a deputy has no place whose owner, or another deputy, has spoken.
    """
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotDecide()
    if known is None:
        known = standings(proposal.tenant_id, [by.user_id], lock=False)
    standing = known.get(by.user_id)
    place = _place(proposal, standing, votes) if standing is not None else None
    if standing is None or place is None:
        raise NotEligible()
    own = is_own(proposal, standing)
    if own and not standing.break_glass:
        raise AuthorOfVersion() if proposal.edited_by_id in standing.accounts else OwnProposal()
    posture = Posture.BREAK_GLASS if standing.break_glass else Posture.ORDINARY
    return Capacity(place.role, place.group_id, standing.accounts, own, posture, place.stead)


def can_decide(proposal: Proposal, by: Actor) -> bool:
    try:
        check_can_decide(proposal, by)
    except DecisionRefused:
        return False
    return True


def is_own(proposal: Proposal, standing: Standing) -> bool:
    """Whether any account of this person is on the proposer's side."""
    return not standing.accounts.isdisjoint(proposal.excluded_users)


@dataclass(frozen=True, slots=True)
class _Place:
    """Why somebody is asked: a role, the group it is for, and whose place it is where it is not their own."""

    role: str
    group_id: UUID | None
    stead: Stead | None = None


def _place(proposal: Proposal, standing: Standing, votes: Sequence[Decision] | None) -> _Place | None:
    """Their own place first; else, for a reviewer, that of somebody in whose stead they decide now."""
    own = _asked(proposal, standing.roles, standing.group_ids)
    if own is not None or Role.REVIEWER not in standing.roles or not standing.steads:
        return own
    said = standing_votes(proposal) if votes is None else votes
    spoken = {vote.in_stead_of_id or vote.user_id for vote in said if vote.user_id not in standing.accounts}
    for stead in standing.steads:
        held = _asked(proposal, frozenset({Role.REVIEWER}), stead.group_ids)
        free = stead.accounts.isdisjoint(spoken)
        if held is not None and free and _may_stand_in(proposal, stead, standing):
            return _Place(held.role, held.group_id, stead)
    return None


def _asked(proposal: Proposal, roles: frozenset[str], groups: frozenset[UUID]) -> _Place | None:
    """By the group that the proposal is asked of, and by those that it was widened to."""
    if Role.REVIEWER in roles:
        if proposal.group_id is None or proposal.group_id in groups:
            return _Place(Role.REVIEWER, proposal.group_id)
        also = next((group for group in proposal.also_groups if group in groups), None)
        if also is not None:
            return _Place(Role.REVIEWER, also)
    role = next((role for role in proposal.also_roles if role in roles), None)
    return _Place(role, None) if role is not None else None


def _may_stand_in(proposal: Proposal, stead: Stead | Standing, deputy: Standing) -> bool:
    """Nobody decides in the stead of the proposer's side, nor in their own."""
    return stead.accounts.isdisjoint(proposal.excluded_users) and stead.accounts.isdisjoint(deputy.accounts)


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


def check_confirmed(proposal: Proposal, confirmed: Callable[[str], bool]) -> None:
    """An approval of high risk needs a person who has just proved who they are; ``confirm`` is where they do."""
    if proposal.risk >= settings.PLACET_HIGH_RISK and not confirmed(proposal.digest):
        back = reverse("approvals:proposal", args=[proposal.pk])
        raise ReauthRequired(confirm=confirm_address(back=back, digest=proposal.digest))


def unconfirmed(digest: str) -> bool:
    """Nobody has proved anything: what is not said otherwise."""
    return False


def standing_votes(proposal: Proposal) -> list[Decision]:
    """The votes that have not been replaced, oldest first."""
    return _with(proposal, _STANDING_VOTES.rows(proposal.pk))


def votes_question(proposal: Proposal) -> Question[list[Decision]]:
    """The same, for who asks more on the same way."""
    return then(rows_of(_STANDING_VOTES, proposal.pk), lambda votes: _with(proposal, votes))


def _with(proposal: Proposal, votes: list[Decision]) -> list[Decision]:
    for vote in votes:
        vote.proposal = proposal
    return votes


def standings_of_deciders(proposal: Proposal, votes: Sequence[Decision], by: Actor) -> dict[UUID, Standing]:
    """Of who decides now, of those in whose stead they may, and of all who approve already, read at once."""
    people = approving(proposal, votes) | ({by.user_id} if by.user_id else set())
    known = standings(proposal.tenant_id, people)
    mine = known.get(by.user_id) if by.user_id else None
    away = {stead.user_id: stead.standing for stead in (mine.steads if mine else ())}
    return away | known


def valid_approvals(
    proposal: Proposal, votes: Sequence[Decision], *, lock: bool = False, known: Known | None = None
) -> int:
    """How many distinct eligible people approve exactly these two digests, as of now.

    An account that was deactivated, or that lost the role or group it decided under, does not count. With ``lock``
    no revocation takes place until the transaction ends, so that what is counted here still holds at its commit.
    """
    people = approving(proposal, votes)
    if known is None:
        known = standings(proposal.tenant_id, people, lock=lock) if people else {}
    return eligible(proposal, [known[person] for person in people if person in known], votes)


def approving(proposal: Proposal, votes: Sequence[Decision]) -> set[UUID]:
    """On which accounts the approvals of exactly these two digests rest: who said yes, and in whose stead they did."""
    found = _approvals(proposal, votes)
    return {
        account for vote in found for account in (vote.user_id, vote.in_stead_of_id) if account is not None
    }


def _approvals(proposal: Proposal, votes: Sequence[Decision]) -> list[Decision]:
    """Who says yes to exactly these two digests and is not on the proposer's side.

    Their own counts where the tenant was under break-glass when they said it, also once that is over.
    """
    return [
        vote for vote in votes
        if vote.kind == DecisionKind.APPROVE and vote.user_id is not None
        and (vote.posture == Posture.BREAK_GLASS or vote.user_id not in proposal.excluded_users)
        and (vote.digest, vote.view_digest) == (proposal.digest, proposal.view_digest)
    ]  # fmt: skip


def eligible(proposal: Proposal, people: Iterable[Standing], votes: Sequence[Decision]) -> int:
    """How many of these approvals count, by the roles and groups that people have now.

    People, not accounts; and places, not people: what somebody says and what is said in their stead is one approval. So
    it is the smaller number of the two; for a quorum of at most two that is exact.
    """
    known = {standing.user_id: standing for standing in people}
    found = [pair for vote in _approvals(proposal, votes) if (pair := _pair(proposal, vote, known))]
    return min(len({head for head, _ in found}), len({place for _, place in found}))


def _pair(proposal: Proposal, vote: Decision, known: Known) -> tuple[UUID, UUID] | None:
    """Whose vote it is and whose place, by person; None where it does not count any more.

    That an absence is over revokes nothing. That whoever was away has lost the place, or the deputy theirs, does.
    """
    standing = known.get(vote.user_id) if vote.user_id is not None else None
    if standing is None or (is_own(proposal, standing) and vote.posture != Posture.BREAK_GLASS):
        return None
    if vote.in_stead_of_id is None:
        return (standing.person, standing.person) if _holds_place(proposal, standing) else None
    away = known.get(vote.in_stead_of_id)
    if away is None or not (Role.REVIEWER in standing.roles and Role.REVIEWER in away.roles):
        return None
    held = vote.group_id in away.group_ids and vote.group_id in {proposal.group_id, *proposal.also_groups}
    return (standing.person, away.person) if held and _may_stand_in(proposal, away, standing) else None


def _holds_place(proposal: Proposal, standing: Standing) -> bool:
    return _asked(proposal, standing.roles, standing.group_ids) is not None


def approved_by_rule(proposal: Proposal, votes: Sequence[Decision]) -> bool:
    """Whether the policy's own rule approved exactly these digests (allowed on stage *execute* only)."""
    return any(
        vote.rule and (vote.digest, vote.view_digest) == (proposal.digest, proposal.view_digest)
        for vote in votes
    )
