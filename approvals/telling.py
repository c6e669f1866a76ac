"""Telling people about proposals: what the history says becomes messages, apart from proposing and deciding.

A failure here changes no proposal: nothing is approved, extended or ended by it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final
from uuid import UUID

from access.audience import Audience, reached
from access.enums import Role
from access.models import Membership
from approvals.enums import DecisionKind, ProposalStatus
from approvals.messages import (
    ASKED,
    ASKING,
    DECIDED,
    ESCALATED,
    EXPIRED,
    EXPIRING,
    OF_QUESTION,
    QUESTION,
    SECOND,
    SUBJECT,
    UNMANNED,
    asked_of,
    message,
    question,
    reminder_due,
    side_of,
)
from approvals.models import Decision, Proposal, Question
from audit.models import Event
from common.clock import db_clock
from notify.actions.telling import Fact, close, tell
from notify.hooks import Standing, Teller

S = ProposalStatus
Step = Callable[[Proposal, Event, datetime], None]
OVER: Final = (
    "approved",
    "rejected",
    "changes_requested",
    "expired",
    "withdrawn",
    "superseded",
    "invalidated",
    "lapsed",
)
_LIGHT: Final = ("contract", "view", "volatile", "consequence", "reason", "affected")
"""Content that no message is made of, and that need not be read for one."""


def tell_of(tenant_id: UUID, events: Sequence[Event]) -> None:
    """Write what is to be told of these events, in their order."""
    ids = {event.subject_id for event in events}
    rows = Proposal.objects.filter(tenant_id=tenant_id, pk__in=ids).defer(*_LIGHT)
    known, now = {row.pk: row for row in rows}, db_clock()
    for event in events:
        proposal = known.get(event.subject_id)
        if proposal is not None:
            _STEPS[event.kind](proposal, event, now)
    over = [event.subject_id for event in events if event.kind.removeprefix("proposal.") in OVER]
    if over:
        _close(tenant_id, over, now)


def _close(tenant_id: UUID, over: Collection[UUID], now: datetime) -> None:
    """What asked for a decision, and questions that it ended with."""
    close(tenant_id=tenant_id, subject_type=SUBJECT, subject_ids=over, kinds=ASKING, now=now)
    asked = Question.objects.filter(tenant_id=tenant_id, proposal_id__in=over).values_list("pk", flat=True)
    close(tenant_id=tenant_id, subject_type=OF_QUESTION, subject_ids=list(asked), kinds=[QUESTION], now=now)


def _made(proposal: Proposal, event: Event, now: datetime) -> None:
    if proposal.status != S.PENDING:
        return
    tell(message(ASKED, proposal, asked_of(proposal)), now=now)
    due = reminder_due(proposal)
    if due > now:
        tell(message(EXPIRING, proposal, asked_of(proposal), due_at=due), now=now)
    if not reached(proposal.tenant_id, asked_of(proposal)):
        _unmanned(proposal, event, now)


def _unmanned(proposal: Proposal, event: Event, now: datetime) -> None:
    """To admins, who can change who is there."""
    if proposal.status == S.PENDING:
        why = [Fact("Why", proposal.unmanned)] if proposal.unmanned else []
        tell(message(UNMANNED, proposal, Audience(role=Role.ADMIN), more=why), now=now)


def _manned(proposal: Proposal, event: Event, now: datetime) -> None:
    close(
        tenant_id=proposal.tenant_id,
        subject_type=SUBJECT,
        subject_ids=[proposal.pk],
        kinds=[UNMANNED],
        now=now,
    )


def _voted(proposal: Proposal, event: Event, now: datetime) -> None:
    """Of a quorum of two, who is still needed."""
    if proposal.status == S.PENDING and event.body.get("kind") == DecisionKind.APPROVE:
        tell(message(SECOND, proposal, asked_of(proposal)), now=now)


def _escalated(proposal: Proposal, event: Event, now: datetime) -> None:
    """To the group, or the role, that the event names; each step of one version for itself."""
    group, role = event.body.get("group"), event.body.get("role") or Role.REVIEWER
    if proposal.status == S.PENDING:
        audience = Audience(UUID(group) if group else None, role, without=proposal.excluded_users)
        why = [Fact("Why", event.reason)] if event.reason else []
        step = 100 * int(event.body.get("position", 0)) + proposal.version
        tell(message(ESCALATED, proposal, audience, more=why, version=step), now=now)


def _decided(proposal: Proposal, event: Event, now: datetime) -> None:
    """By people. What a rule approves is not news to its side."""
    if proposal.needed == 0 or not proposal.excluded_users:
        return
    word = Fact("Decision", str(S(event.to_state).label))
    tell(message(DECIDED, proposal, side_of(proposal), more=[word]), now=now)


def _expired(proposal: Proposal, event: Event, now: datetime) -> None:
    if proposal.excluded_users:
        tell(message(EXPIRED, proposal, side_of(proposal)), now=now)


def _asked(proposal: Proposal, event: Event, now: datetime) -> None:
    """A question: to the colleague, or to all who stand behind what was proposed."""
    row = _question(proposal, event)
    if row is not None and proposal.status == S.PENDING:
        people = [row.colleague_id] if row.colleague_id else proposal.excluded_users
        tell(question(proposal=proposal, question_id=row.pk, people=people), now=now)


def _answered(proposal: Proposal, event: Event, now: datetime) -> None:
    row = _question(proposal, event)
    if row is not None:
        close(
            tenant_id=row.tenant_id, subject_type=OF_QUESTION, subject_ids=[row.pk], kinds=[QUESTION], now=now
        )
        told = question(proposal=proposal, question_id=row.pk, people=[row.asked_by_id], answer=True)
        tell(told, now=now)


def _question(proposal: Proposal, event: Event) -> Question | None:
    named = event.body.get("question_id")
    rows = Question.objects.filter(tenant_id=proposal.tenant_id, proposal=proposal, pk=named).defer("wording")
    return rows.first()


def _nothing(proposal: Proposal, event: Event, now: datetime) -> None:
    """What asked for it is closed, and that is all."""


_STEPS: Final[Mapping[str, Step]] = {f"proposal.{word}": _nothing for word in OVER} | {
    "proposal.made": _made,
    "proposal.vote": _voted,
    "proposal.escalated": _escalated,
    "proposal.unmanned": _unmanned,
    "proposal.manned": _manned,
    "proposal.question_asked": _asked,
    "proposal.question_answered": _answered,
    "proposal.approved": _decided,
    "proposal.rejected": _decided,
    "proposal.changes_requested": _decided,
    "proposal.expired": _expired,
}

# -- how they stand ------------------------------------------------------------------------------------------------


def standings(tenant_id: UUID, ids: Collection[UUID]) -> Mapping[UUID, Standing]:
    """Whether each still waits, and how it ended: four statements at most, however many there are."""
    rows = list(Proposal.objects.filter(tenant_id=tenant_id, pk__in=ids).defer(*_LIGHT))
    if not rows:
        return {}
    votes: dict[UUID, list[Decision]] = {row.pk: [] for row in rows}
    found = Decision.objects.filter(tenant_id=tenant_id, proposal_id__in=votes, replaced_at=None)
    for vote in found.defer("reason").select_related("user").order_by("at", "id"):
        votes[vote.proposal_id].append(vote)
    same, now = _same_people(tenant_id, [vote for some in votes.values() for vote in some]), db_clock()
    return {row.pk: _standing(row, votes[row.pk], same, now) for row in rows}


Same = Mapping[UUID, frozenset[UUID]]
"""All accounts of the person of an account, where there are several."""


def _same_people(tenant_id: UUID, votes: Sequence[Decision]) -> Same:
    users = {vote.user_id for vote in votes if vote.user_id is not None}
    if not users:
        return {}
    theirs = Membership.objects.filter(tenant_id=tenant_id, user_id__in=users, person_id__isnull=False)
    others = Membership.objects.filter(tenant_id=tenant_id, person_id__in=theirs.values("person_id"))
    people: dict[UUID | None, set[UUID]] = {}
    for person, user in others.values_list("person_id", "user_id"):
        people.setdefault(person, set()).add(user)
    return {user: frozenset(accounts) for accounts in people.values() for user in accounts}


def _standing(row: Proposal, votes: Sequence[Decision], same: Same, now: datetime) -> Standing:
    if row.status == S.PENDING and now < row.decide_by:
        given = {vote.user_id for vote in votes if vote.user_id is not None}
        return Standing(waits=True, done=frozenset(given).union(*(same.get(user, ()) for user in given)))
    if row.status == S.PENDING:
        return Standing(waits=False, says="Expired: nobody decided in time", at=row.decide_by)
    return Standing(waits=False, says=_how(row, votes), at=row.decided_at or row.ended_at)


_KIND_OF: Final = {S.REJECTED: DecisionKind.REJECT, S.CHANGES_REQUESTED: DecisionKind.REQUEST_CHANGES}
_AFTER_APPROVAL: Final = (S.APPROVED, S.CONSUMED, S.LAPSED, S.INVALIDATED)


def _how(row: Proposal, votes: Sequence[Decision]) -> str:
    """*Rejected by Ada Park*: who it was, for whoever may open the page."""
    kind = _KIND_OF.get(S(row.status), DecisionKind.APPROVE)
    people = [str(vote.user) for vote in votes if vote.kind == kind and vote.user is not None]
    word = str(S(row.status).label)
    if row.decided_at is None or not people:
        return word
    first = "Approved" if row.status in _AFTER_APPROVAL else word
    rest = "" if first == word else f" ({word.lower()} since)"
    return f"{first} by {' and '.join(people)}{rest}"


def standings_of_questions(tenant_id: UUID, ids: Collection[UUID]) -> Mapping[UUID, Standing]:
    """A question waits until it was answered, or its proposal has ended."""
    rows = Question.objects.filter(tenant_id=tenant_id, pk__in=ids).defer("wording")
    found = list(rows.values_list("pk", "proposal_id", "answer__at"))
    known = standings(tenant_id, {proposal_id for _, proposal_id, _ in found})
    over = frozenset[UUID]()  # whoever has voted may still be asked
    return {
        pk: Standing(waits=False, says="Answered", at=at) if at else replace(known[proposal_id], done=over)
        for pk, proposal_id, at in found
    }


TELLERS: Final = (
    Teller(SUBJECT, SUBJECT, frozenset(_STEPS), tell_of, standings),
    Teller(OF_QUESTION, OF_QUESTION, frozenset(), lambda tenant_id, events: None, standings_of_questions),
)
