"""The list *Questions to you*: what this person, or an automation of theirs, is asked and nobody has answered."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse

from access.models import Membership
from access.selectors import accounts_of
from approvals.enums import Asked, ProposalStatus
from approvals.models import Question
from common.display import visible
from common.sealed import readable

MOST: Final = 100


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One question: about what, in whose words, and until when an answer is of use. Whoever is asked reads it.

    ``of_proposer``: it was asked of whoever proposes, who may be an automation that answers by itself.
    """

    href: str
    summary: str
    words: str
    by: str
    at: datetime
    until: datetime
    of_proposer: bool


@dataclass(frozen=True, slots=True)
class QuestionsScreen:
    """What has no answer yet, the most urgent first."""

    rows: tuple[QuestionRow, ...]
    more: bool


def asked_of(tenant_id: UUID, user_id: UUID, now: datetime) -> QuerySet[Question]:
    """Questions that a person may answer, under any of their accounts, that nobody has and that still matter."""
    accounts = sorted(accounts_of(tenant_id, [user_id]))
    theirs = Q(colleague_id__in=accounts) | Q(of=Asked.PROPOSER, proposal__excluded_users__overlap=accounts)
    return Question.objects.filter(
        theirs, tenant_id=tenant_id, answer__isnull=True,
        proposal__status=ProposalStatus.PENDING, proposal__decide_by__gt=now,
    )  # fmt: skip


def questions_screen(membership: Membership, now: datetime) -> QuestionsScreen:
    found = (
        asked_of(membership.tenant_id, membership.user_id, now)
        .select_related("proposal", "asked_by")
        .defer("proposal__contract", "proposal__view", "proposal__volatile")
        .order_by("proposal__decide_by", "asked_at", "id")
    )
    rows = list(found[: MOST + 1])
    return QuestionsScreen(tuple(_row(row) for row in rows[:MOST]), more=len(rows) > MOST)


def _row(question: Question) -> QuestionRow:
    proposal, words = question.proposal, readable(question, "wording")
    return QuestionRow(
        href=f"{reverse('approvals:proposal', args=[proposal.pk])}#q-{question.pk}", summary=proposal.summary,
        words=visible(str(words)) if words is not None else "", by=visible(str(question.asked_by)),
        at=question.asked_at, until=proposal.decide_by, of_proposer=question.of == Asked.PROPOSER,
    )  # fmt: skip
