"""The only writers of proposals and decisions.

Each entry action is one transaction: lock the proposal, read the clock, check again, move, write the audit event, and
tell whoever made the proposal. Locks are taken in the order of the design's section 6: proposals, commands, run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from access.signing_keys import SigningRefused
from approvals import hooks
from approvals.enums import DecisionKind, DecisionResult, ProposalStatus, ReasonCode, Remember
from approvals.models import Decision, Proposal
from approvals.policies import (
    Capacity,
    check_can_decide,
    check_confirmed,
    check_is_open,
    standing_votes,
    standings_of_deciders,
    unconfirmed,
    valid_approvals,
)
from approvals.recorded import event_of, note, record_refused_attempt, said_of_vote
from approvals.refusals import (
    BY_STATUS,
    AlreadyDecided,
    DecisionRefused,
    DigestMismatch,
    ReasonRequired,
    ViewMismatch,
)
from approvals.remembering import remember
from approvals.shown import check_all_shown, parts_shown, view_of
from approvals.signing import Answer, check_signed, keep
from audit.actions import Entry, record_many
from audit.actors import Actor, clock_actor
from audit.bound import utc_text
from audit.receipts import events_of_decisions
from common import prepared
from common.clock import Clock
from common.digests import contract_digest, same, view_digest
from common.errors import InvalidInput, NotFound
from common.prepared import Reading
from common.rounds import each
from common.sealed import readable
from common.tx import action, require_transaction


class UnknownProposal(NotFound):
    """There is no such proposal."""

    code = "not_found"


class UnknownDecision(InvalidInput):
    """The decision is one of: approve, reject, request_changes. Nothing else counts as a yes or a no."""

    code = "unknown_decision"


class UnknownReason(InvalidInput):
    """The reason code is not one of the list. The reason in your own words goes beside it."""

    code = "unknown_reason"


class UnknownSpan(InvalidInput):
    """A rejection is remembered for one of: none, day, week, month; or as the policy says."""

    code = "unknown_span"


class NotYours(DecisionRefused):
    """Only the side that made a proposal withdraws it or puts a newer version in its place."""

    code = "not_yours"
    http_status = 403


@dataclass(frozen=True, slots=True)
class Submission:
    """What a person sends: the decision, on exactly which bytes, and the proof of what was in front of them."""

    kind: str
    digest: str
    view_digest: str
    view_receipts: tuple[str, ...] = ()
    acknowledged: tuple[str, ...] = ()
    reason_code: str = ""
    reason: str = ""
    remember: str = ""
    """For how long a rejection answers the same proposal, as a word of `Remember`; empty: as the policy says."""
    confirmed: Callable[[str], bool] = unconfirmed
    """Whether the person has proved lately who they are, for the action with this digest. High risk needs it."""
    signature: Answer | None = None
    """What the person's passkey signed, where an approval of this contract must be signed."""
    bulk_list: str = ""
    """The digest of the list from which several were decided at once; empty for a decision on its own page."""


@dataclass(frozen=True, slots=True)
class DecisionOutcome:
    """``votes`` of ``needed`` approvals are given. ``replayed``: it was recorded before. ``event_id``: its event."""

    result: DecisionResult
    votes: int
    needed: int
    proposal_status: str
    mode: str
    command_id: UUID | None
    state_version: int
    decision_id: UUID
    event_id: UUID | None = None
    replayed: bool = False


def decide(
    *, tenant_id: UUID, proposal_id: UUID, submission: Submission, by: Actor, clock: Clock
) -> DecisionOutcome:
    """Record one person's decision on exactly the digests that they were shown.

    1. lock the proposal; the clock is read after that, so waiting for the lock cannot approve late,
    2. the same decision again returns the original answer,
    3. check who (person, eligible, not their own), when (pending, in time), what (both digests, every part shown,
       every warning acknowledged),
    4. record the vote, replacing an earlier one of the same person,
    5. move the proposal when the quorum is met or one person says no, and tell the maker, who writes the command.

    Raises a `DecisionRefused` or `InvalidInput`; nothing is recorded then but a *refused attempt* event.
    """
    if submission.kind not in DecisionKind.values:
        raise UnknownDecision()
    if submission.reason_code and submission.reason_code not in ReasonCode.values:
        raise UnknownReason()
    if submission.remember and submission.remember not in Remember.values:
        raise UnknownSpan()
    try:
        return _decide(
            tenant_id=tenant_id, proposal_id=proposal_id, submission=submission, by=by, clock=clock
        )
    except (DecisionRefused, InvalidInput, SigningRefused) as refusal:
        record_refused_attempt(tenant_id=tenant_id, proposal_id=proposal_id, by=by, code=refusal.code)
        raise


@action
def _decide(
    *, tenant_id: UUID, proposal_id: UUID, submission: Submission, by: Actor, clock: Clock
) -> DecisionOutcome:
    proposal = lock_proposal(tenant_id, proposal_id)
    now = clock()
    votes = standing_votes(proposal)
    known = standings_of_deciders(proposal, votes, by)
    capacity = check_can_decide(proposal, by, known=known, votes=votes)
    earlier = _earlier(votes, capacity, by)
    if earlier is not None and earlier.user_id in capacity.accounts and _is_same(earlier, submission):
        approvals = valid_approvals(proposal, votes, known=known)
        event_id = events_of_decisions(tenant_id, proposal_id).get(str(earlier.pk))
        return replace(_outcome(proposal, earlier, approvals, event_id=event_id), replayed=True)
    check_is_open(proposal, now)
    _check_content(proposal, submission, by, now)
    signed = None
    if submission.kind == DecisionKind.APPROVE:
        signed = check_signed(proposal, submission.signature, by=by, now=now)
        if signed is None:
            check_confirmed(proposal, submission.confirmed)
    vote, event_id = _record_vote(proposal, submission, capacity, earlier, by=by, now=now)
    if signed is not None:
        keep(proposal, vote, signed, by=capacity.acting(by))
    standing = [vote, *(other for other in votes if other is not earlier)]
    approvals = valid_approvals(proposal, standing, known=known)
    command_id = _apply_vote(proposal, vote, approvals, by=by, now=now)
    if vote.kind == DecisionKind.REJECT:
        remember(proposal, vote, submission.remember, by=by, now=now)
    return _outcome(proposal, vote, approvals, command_id=command_id, event_id=event_id)


def _earlier(votes: Sequence[Decision], capacity: Capacity, by: Actor) -> Decision | None:
    """What this person said before: under this account, else another one of theirs, or a deputy in their stead."""
    theirs = [vote for vote in votes if vote.user_id in capacity.accounts]
    theirs += [vote for vote in votes if vote.in_stead_of_id in capacity.accounts]
    return next((vote for vote in theirs if vote.user_id == by.user_id), theirs[0] if theirs else None)


def _check_content(proposal: Proposal, submission: Submission, by: Actor, now: datetime) -> None:
    """The *what*: the digests are recomputed from the stored bytes, never taken from the row alone."""
    stored = contract_digest(readable(proposal, "contract") or b"")
    if not (same(stored, proposal.digest) and same(stored, submission.digest)):
        raise DigestMismatch(digest=proposal.digest)
    shown = view_digest(readable(proposal, "view") or b"")
    if not (same(shown, proposal.view_digest) and same(shown, submission.view_digest)):
        raise ViewMismatch(view_digest=proposal.view_digest)
    if submission.kind == DecisionKind.APPROVE:
        check_all_shown(proposal, submission.view_receipts, submission.acknowledged, by=by, now=now)
    elif not (submission.reason.strip() or submission.reason_code):
        raise ReasonRequired()


def _is_same(vote: Decision, submission: Submission) -> bool:
    said = (submission.kind, submission.digest, submission.view_digest)
    return (vote.kind, vote.digest, vote.view_digest) == said


def _record_vote(
    proposal: Proposal,
    sent: Submission,
    capacity: Capacity,
    earlier: Decision | None,
    *,
    by: Actor,
    now: datetime,
) -> tuple[Decision, UUID]:
    """The decision, and the event that says so."""
    if earlier is not None:
        earlier.replaced_at = now
        prepared.update(earlier, ["replaced_at"])
    vote = Decision(
        tenant_id=proposal.tenant_id, proposal=proposal, kind=sent.kind, user_id=by.user_id, role=capacity.role,
        group_id=capacity.group_id, in_stead_of_id=capacity.stead.user_id if capacity.stead else None,
        digest=sent.digest, view_digest=sent.view_digest,
        parts_seen=parts_shown(proposal, sent.view_receipts, by=by, now=now),
        acknowledged=sorted(set(sent.acknowledged) & set(view_of(proposal).to_acknowledge)),
        reason_code=sent.reason_code, reason=sent.reason.strip(), performed_by=by.performed_by, via=by.via,
        posture=capacity.posture, at=now,
    )  # fmt: skip
    prepared.insert(vote)
    event_id = note(proposal, "proposal.vote", by=capacity.acting(by), reason=sent.reason_code, body={
        "decision_id": str(vote.pk), "kind": vote.kind, "view_digest": vote.view_digest,
        "replaces": str(earlier.pk) if earlier else None, "parts_seen": vote.parts_seen,
        "acknowledged": vote.acknowledged, **capacity.facts, **said_of_vote(vote), **_from_list(sent),
    })  # fmt: skip
    return vote, event_id


def _from_list(sent: Submission) -> dict[str, Any]:
    """That it was decided together with others, and in which list."""
    return {"decided_in": "bulk list", "bulk_list": sent.bulk_list} if sent.bulk_list else {}


def _apply_vote(
    proposal: Proposal, vote: Decision, approvals: int, *, by: Actor, now: datetime
) -> UUID | None:
    match DecisionKind(vote.kind):
        case DecisionKind.APPROVE:
            if approvals < proposal.needed:
                return None
            return approve(proposal, by=by, now=now)
        case DecisionKind.REJECT:
            return _conclude(proposal, "reject", by=by, at=now, reason=vote.reason_code)
        case DecisionKind.REQUEST_CHANGES:
            return _conclude(proposal, "request_changes", by=by, at=now, reason=vote.reason_code)


def approve(proposal: Proposal, *, by: Actor, now: datetime) -> UUID | None:
    """The quorum is met: stamp *execute by* and tell the maker. For a locked, pending proposal inside an action."""
    require_transaction()
    before = proposal.status
    proposal.approve(at=now, execute_by=now + timedelta(seconds=proposal.execute_within_s))
    save_moved(
        proposal, before, by=by, body={"execute_by": str(proposal.execute_by), "decided_at": utc_text(now)}
    )
    return _tell_maker(proposal, by=by, at=now)


def _conclude(proposal: Proposal, move: str, *, by: Actor, at: datetime, reason: str) -> UUID | None:
    move_proposal(proposal, move, by=by, at=at, reason=reason)
    return _tell_maker(proposal, by=by, at=at)


def _tell_maker(proposal: Proposal, *, by: Actor, at: datetime) -> UUID | None:
    """At the instant that decided: it was read under the proposal's lock, and the maker waits for nothing before it."""
    return hooks.proposal_ended(proposal, proposal.status, by=by, clock=lambda: at)


def _outcome(
    proposal: Proposal,
    vote: Decision,
    votes: int,
    *,
    command_id: UUID | None = None,
    event_id: UUID | None = None,
) -> DecisionOutcome:
    return DecisionOutcome(
        result=_result_of(proposal, vote), votes=votes, needed=proposal.needed, proposal_status=proposal.status,
        mode=proposal.mode, command_id=command_id or _command_id(proposal), state_version=proposal.state_version,
        decision_id=vote.pk, event_id=event_id,
    )  # fmt: skip


def _result_of(proposal: Proposal, vote: Decision) -> DecisionResult:
    if vote.kind == DecisionKind.REJECT:
        return DecisionResult.REJECTED
    if vote.kind == DecisionKind.REQUEST_CHANGES:
        return DecisionResult.CHANGES_REQUESTED
    return DecisionResult.APPROVED if proposal.execute_by else DecisionResult.RECORDED


def _command_id(proposal: Proposal) -> UUID | None:
    """The command hangs on the proposal from the other side; this app only passes its id on."""
    command: Any = getattr(proposal, "command", None)
    return command.pk if command is not None else None


def approve_by_rule(
    proposal: Proposal, *, rule: str, version: int, by: Actor, now: datetime, why: str = ""
) -> UUID | None:
    """Auto-approval is a decision too, by a named rule and version, and says why. Inside an action; the caller checks
    the stage.
    """
    require_transaction()
    vote = Decision.objects.create(
        tenant_id=proposal.tenant_id, proposal=proposal, kind=DecisionKind.APPROVE, rule=rule, rule_version=version,
        digest=proposal.digest, view_digest=proposal.view_digest, performed_by=by.performed_by, via=by.via, at=now,
        reason=why,
    )  # fmt: skip
    body = {"decision_id": str(vote.pk), "kind": vote.kind, "rule": rule, "rule_version": version}
    note(proposal, "proposal.vote", by=by, reason=rule, body=body | said_of_vote(vote))
    return approve(proposal, by=by, now=now)


@action
def withdraw(*, tenant_id: UUID, proposal_id: UUID, reason: str, by: Actor, clock: Clock) -> Proposal:
    """The proposer takes it back. After the send it is too late: the maker's hook refuses then."""
    proposal = lock_proposal(tenant_id, proposal_id)
    if by.performed_by != proposal.proposed_by:
        raise NotYours()
    if proposal.status == ProposalStatus.WITHDRAWN:
        return proposal
    if not proposal.is_live:
        raise BY_STATUS.get(proposal.status, AlreadyDecided)(status=proposal.status)
    proposal.end_words = reason.strip()[:500]
    _conclude(proposal, "withdraw", by=by, at=clock(), reason="")
    return proposal


def expire_due(*, clock: Clock, limit: int = 200) -> int:
    """Expire what nobody decided in time, each in a transaction of its own; returns how many.

    Deciding checks the time by itself: this only makes the state say what the clock already said.
    """
    due = Proposal.objects.filter(
        status__in=(ProposalStatus.PENDING, ProposalStatus.CHANGES_REQUESTED), decide_by__lte=clock()
    ).order_by("decide_by")
    rows = due.values_list("tenant_id", "pk")[:limit]
    return each(rows, lambda row: _expire(*row, clock), what="expire")


@action
def _expire(tenant_id: UUID, proposal_id: UUID, clock: Clock) -> bool:
    proposal = lock_proposal(tenant_id, proposal_id)
    now = clock()
    waits = proposal.status in (ProposalStatus.PENDING, ProposalStatus.CHANGES_REQUESTED)
    if not waits or now < proposal.decide_by:
        return False  # somebody was faster
    _conclude(proposal, "expire", by=clock_actor(), at=now, reason="expired")
    return True


# -- parts that other actions use inside their own transaction ------------------------------------------------


_LOCKED = Reading(Proposal, "WHERE r.tenant_id = %s AND r.id = %s FOR NO KEY UPDATE")


def lock_proposal(tenant_id: UUID, proposal_id: UUID) -> Proposal:
    """The row, locked until the end of the transaction. Raises UnknownProposal, also for another tenant's."""
    require_transaction()
    for proposal in _LOCKED.rows(tenant_id, proposal_id):
        return proposal
    raise UnknownProposal()


def move_proposal(proposal: Proposal, move: str, *, by: Actor, at: datetime, reason: str) -> None:
    """Apply one of the ending transitions to a locked proposal, save it and write the event."""
    before = proposal.status
    getattr(proposal, move)(at=at, reason=reason)
    save_moved(proposal, before, by=by, reason=reason)


def save_moved(
    proposal: Proposal, before: str, *, by: Actor, reason: str = "", body: dict[str, Any] | None = None
) -> None:
    proposal.state_version += 1
    prepared.update(
        proposal,
        ["status", "execute_by", "decided_at", "ended_at", "end_reason", "end_words", "state_version"],
    )
    record_many([moved_event(proposal, before, by=by, reason=reason, body=body)])


def moved_event(
    proposal: Proposal, before: str, *, by: Actor, reason: str = "", body: dict[str, Any] | None = None
) -> Entry:
    """What is recorded of a proposal that has moved from ``before``."""
    return event_of(proposal, f"proposal.{proposal.status}", by=by, before=before, reason=reason, body=body)
