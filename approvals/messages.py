"""What people are told of proposals: the kinds, and the message made of one proposal. The words are made by code.

The lead is the summary that the operation's code made without personal values; no words of a customer, a model or a
colleague, and nobody's name, are in a message.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.urls import reverse

from access.audience import Audience
from access.enums import Role
from approvals.models import Proposal
from notify.actions.telling import Fact, Told
from notify.kinds import Kind, register

SUBJECT: Final = "proposal"
OF_QUESTION: Final = "question"
REMIND_AT: Final = 0.75
"""Of the time to decide: at this share of it those who are asked are reminded."""

ASKED: Final = register(
    Kind(
        "asked",
        "You are asked to decide",
        "something waits for your decision",
        asks=True,
        mail=True,
        chat=True,
    )
)
SECOND: Final = register(
    Kind(
        "second",
        "A second person is needed",
        "one person has approved, another one is needed",
        asks=True,
        mail=True,
    )
)
EXPIRING: Final = register(
    Kind("expiring", "It soon expires", "what waits for you soon expires", asks=True, mail=True, chat=True)
)
ESCALATED: Final = register(
    Kind(
        "escalated", "It was escalated to you", "something that others did not decide comes to you", asks=True,
        mail=True, chat=True,
    )
)  # fmt: skip
QUESTION: Final = register(
    Kind("question", "You are asked a question", "somebody asks you about a proposal", asks=True, mail=True)
)
ANSWERED: Final = register(
    Kind("answered", "Your question was answered", "what you asked was answered", mail=True)
)
DECIDED: Final = register(
    Kind(
        "decided",
        "It was decided",
        "what was decided on something that you, or an automation of yours, asked for",
    )
)
EXPIRED: Final = register(
    Kind(
        "expired",
        "It has expired",
        "something that you, or an automation of yours, asked for was not decided in time",
    )
)
UNMANNED: Final = register(
    Kind(
        "unmanned", "Too few people can decide it", "something waits that too few people can decide (to admins)",
        asks=True, mail=True, chat=True,
    )
)  # fmt: skip
ASKING: Final = (ASKED, SECOND, EXPIRING, ESCALATED, UNMANNED)
"""What asks for a decision, and so ends with it."""


def asked_of(proposal: Proposal) -> Audience:
    """Who may decide: reviewers of the group that is asked, without the side that asks."""
    return Audience(group_id=proposal.group_id, role=Role.REVIEWER, without=proposal.excluded_users)


def side_of(proposal: Proposal) -> Audience:
    """Who asked, whom an automation that asked acts for, and who answers for it."""
    return Audience(people=proposal.excluded_users)


def message(
    kind: Kind, proposal: Proposal, audience: Audience, *, due_at: datetime | None = None, more: Collection[Fact] = (),
    **changes: Any,
) -> Told:  # fmt: skip
    """A message of this kind about a proposal. Versions are proposals of their own, so each is told once."""
    values: dict[str, Any] = {
        "kind": kind, "tenant_id": proposal.tenant_id, "subject_type": SUBJECT, "subject_id": proposal.pk,
        "version": proposal.version, "lead": proposal.summary, "digest": proposal.digest,
        "href": reverse("approvals:proposal", args=[proposal.pk]), "audience": audience, "due_at": due_at,
        "until": proposal.decide_by if kind.asks else None, "facts": [*_facts(proposal), *more],
        "urgent": kind == EXPIRING or (kind.asks and proposal.risk >= settings.PLACET_HIGH_RISK),
    }  # fmt: skip
    return Told(**(values | changes))


def _facts(proposal: Proposal) -> list[Fact]:
    facts = [Fact("Workflow", proposal.workflow), Fact("Risk", f"{proposal.risk} of 3")]
    if proposal.version > 1:
        facts.append(Fact("Version", str(proposal.version)))
    if proposal.needed > 1:
        facts.append(Fact("Approvals needed", str(proposal.needed)))
    return facts


def reminder_due(proposal: Proposal) -> datetime:
    return proposal.created_at + (proposal.decide_by - proposal.created_at) * REMIND_AT


def question(
    *, proposal: Proposal, question_id: UUID, people: Collection[UUID], answer: bool = False
) -> Told:
    """That somebody asks, or has answered: never the words, which may be personal. Once for each question."""
    kind = ANSWERED if answer else QUESTION
    return message(
        kind, proposal, Audience(people=people), subject_type=OF_QUESTION, subject_id=question_id, version=1
    )
