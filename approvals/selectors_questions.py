"""Reads of questions: those of a page, those that a requester has still to answer, and who may be asked."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from access.models import Membership
from access.selectors import accounts_of
from approvals.enums import Asked, ProposalStatus
from approvals.models import Answer, Proposal, Question
from approvals.policies import SEES_PERSONAL


@dataclass(frozen=True, slots=True)
class Colleague:
    """Somebody who may be asked: they are shown the whole of a proposal."""

    user_id: UUID
    name: str


def colleagues(tenant_id: UUID, asker: UUID | None) -> list[Colleague]:
    """Active members whose role is shown personal fields, by name; without whoever asks, under any account."""
    rows = Membership.objects.filter(
        tenant_id=tenant_id, is_active=True, user__is_active=True, roles__overlap=list(SEES_PERSONAL)
    ).select_related("user")
    own = accounts_of(tenant_id, [asker]) if asker is not None else frozenset()
    found = [Colleague(row.user_id, str(row.user)) for row in rows if row.user_id not in own]
    return sorted(found, key=lambda one: (one.name.casefold(), str(one.user_id)))


def questions_of(proposal: Proposal) -> list[Question]:
    """What was asked about this version, oldest first, with the answers; one statement, and one key for all."""
    rows = list(
        Question.objects.filter(tenant_id=proposal.tenant_id, proposal=proposal)
        .select_related("asked_by", "colleague", "answer", "answer__user").order_by("asked_at", "id")
    )  # fmt: skip
    for row in rows:
        row.proposal = proposal
        if (answer := answer_to(row)) is not None:
            answer.question = row
    return rows


def answer_to(question: Question) -> Answer | None:
    answer: Answer | None = getattr(question, "answer", None)
    return answer


def open_questions(tenant_id: UUID, proposals: Collection[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    """By run: what waits for an answer of its requester. Ids and times alone: the words are read with the proposal."""
    rows = Question.objects.filter(
        tenant_id=tenant_id, proposal_id__in=proposals, of=Asked.PROPOSER, answer__isnull=True,
        proposal__status=ProposalStatus.PENDING, proposal__decide_by__gt=Now(),
    ).order_by("asked_at", "id")  # fmt: skip
    found: dict[UUID, list[dict[str, Any]]] = {}
    names = ("proposal__run_id", "pk", "proposal_id", "asked_at", "proposal__decide_by")
    for run_id, pk, proposal_id, at, until in rows.values_list(*names):
        found.setdefault(run_id, []).append({
            "id": str(pk), "proposal_id": str(proposal_id), "asked_at": _iso(at), "until": _iso(until),
        })  # fmt: skip
    return found


def _iso(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
