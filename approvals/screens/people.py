"""Who is asked, who has answered, and what they said."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.urls import reverse

from access.models import User
from approvals.enums import DecisionKind, ProposalStatus, ReasonCode
from approvals.models import Decision, Proposal
from approvals.signing import must_be_signed, signed_votes
from common import spans
from common.display import visible
from common.states_ui import Tone

WORDS: dict[str, tuple[Tone, str, str]] = {
    DecisionKind.APPROVE: ("ok", "check", "approved"),
    DecisionKind.REJECT: ("bad", "x", "rejected"),
    DecisionKind.REQUEST_CHANGES: ("wait", "pencil", "asked for changes"),
}


@dataclass(frozen=True, slots=True)
class Person:
    """One line of the list of people: a vote that was given, or a place that is still open."""

    tone: Tone
    icon: str
    name: str
    note: str
    at: datetime | None = None
    said: str = ""
    code: str = ""
    open: bool = False
    receipt: str = ""
    """Where a signed receipt of it is to be had."""


def people_rows(
    proposal: Proposal, votes: Sequence[Decision], user_id: UUID, *, words: bool
) -> tuple[Person, ...]:
    """The votes that stand, oldest first, and the open places. ``words``: with what people wrote themselves."""
    signed = signed_votes(proposal) if must_be_signed(proposal) else frozenset()
    rows = [vote_row(vote, user_id, words=words, signed=vote.pk in signed) for vote in votes]
    approvals = sum(vote.kind == DecisionKind.APPROVE for vote in votes)
    missing = proposal.needed - approvals
    if proposal.status == ProposalStatus.PENDING and missing > 0:
        who = str(proposal.group) if proposal.group else "any reviewer"
        note = f"{missing} more {'approval is' if missing == 1 else 'approvals are'} needed"
        rows.append(
            Person("wait", "pending", f"Of {who}" if proposal.group else "Any reviewer", note, open=True)
        )
    return tuple(rows)


def vote_row(vote: Decision, user_id: UUID, *, words: bool, signed: bool = False) -> Person:
    tone, icon, word = WORDS[vote.kind]
    word += ", signed by passkey," if signed else ""
    name = name_of(vote)
    mine = f"You, {name}" if vote.user_id == user_id else name
    said = visible(vote.reason) if words else ""
    receipt = reverse("audit:decision_receipt", args=[vote.proposal_id, vote.pk])
    return Person(
        tone, icon, mine, word, at=vote.at, said=said, code=code_word(vote.reason_code), receipt=receipt
    )


def name_of(vote: Decision) -> str:
    """Who said it: a person, and in whose stead, or a rule."""
    if not vote.user:
        return f"Rule {vote.rule}"
    return f"{vote.user} for {vote.in_stead_of}" if vote.in_stead_of else str(vote.user)


def code_word(code: str) -> str:
    """A chosen reason in words; a code of another release stands as it was stored."""
    return dict(ReasonCode.choices).get(code, code)


def people_title(proposal: Proposal) -> str:
    """How many are asked, and of whom."""
    of = f" of {proposal.group}" if proposal.group else ""
    if proposal.needed == 0:
        return "Approved by rule"
    return f"{'One person' if proposal.needed == 1 else 'Two people'}{of}"


def votes_given(proposal: Proposal, votes: Sequence[Decision]) -> str:
    """How many approvals are given where more than one is needed."""
    if proposal.needed < 2:
        return ""
    given = sum(vote.kind == DecisionKind.APPROVE for vote in votes)
    return f"{given} of {proposal.needed} given"


def stamp_of(proposal: Proposal, votes: Sequence[Decision]) -> str:
    """Who approved, and when, for the stamp on the slip; empty where it was not approved."""
    approved = proposal.execute_by is not None and proposal.decided_at is not None
    if not approved or not votes or proposal.decided_at is None:
        return ""
    names = ", ".join(name_of(vote) if vote.user else f"rule {vote.rule}" for vote in votes)
    return f"{names} · {spans.utc_text(proposal.decided_at)}"


def names_of(proposal: Proposal) -> dict[str, str]:
    """The display name of the proposer, where it is a person."""
    kind, _, ident = proposal.proposed_by.partition(":")
    if kind != "user":
        return {}
    try:
        person = User.objects.filter(pk=UUID(ident)).first()
    except ValueError:
        return {}
    return {proposal.proposed_by: str(person)} if person else {}
