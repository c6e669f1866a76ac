"""``POST /proposals/{id}/answers``: the automation that proposed something answers what a reviewer asks it."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel, ConfigDict, Field

from access.enums import Scope
from approvals.actions_questions import answer
from approvals.api_schemas import NextAction, next_action_of
from approvals.late import add_what_stands
from approvals.models.questions import LONGEST_WORDS
from approvals.refusals import DecisionRefused
from approvals.selectors import get_proposal, shown_status
from approvals.selectors_questions import answer_to, questions_of
from audit.principals import require_scope
from common.clock import db_clock
from common.problems import Problem
from common.strictbody import Body, StrictBody

router = Router(tags=["proposals"])
_ID = "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"


class AnswerIn(Body):
    """The answer to one question, in words for the person who asked."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question_id": _ID, "answer": "The second parcel, by its photo."}]}
    )

    question_id: Annotated[UUID, Field(strict=False)]
    answer: str = Field(max_length=LONGEST_WORDS)


class AnswerOut(BaseModel):
    """``replayed``: this answer was given before. What was asked goes on waiting for a decision until *decide by*."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "question_id": _ID, "proposal_id": _ID, "answered_at": "2026-09-19T14:02:08Z", "replayed": False,
                    "proposal_status": "pending", "decide_by": "2026-09-19T17:52:08Z", "state_version": 3,
                    "next_action": "wait", "retry_after": 5,
                }
            ]
        }
    )  # fmt: skip

    question_id: UUID
    proposal_id: UUID
    answered_at: datetime
    replayed: bool
    proposal_status: str
    decide_by: datetime
    state_version: int
    next_action: NextAction
    retry_after: int | None


@router.post(
    "/proposals/{proposal_id}/answers",
    response={200: AnswerOut, frozenset({400, 401, 403, 404, 409, 413, 415, 422}): Problem},
    summary="Answer a reviewer's question",
)
def answer_question(
    request: HttpRequest, proposal_id: UUID, body: Annotated[AnswerIn, StrictBody()]
) -> dict[str, Any]:
    """By the proposer, once for each question; the same answer again gets the same result.

    Answering decides nothing and stops no clock. Needs the scope ``proposals:answer``.
    """
    principal = require_scope(request, Scope.PROPOSALS_ANSWER)
    tenant_id = principal.tenant.pk
    try:
        told = answer(
            tenant_id=tenant_id, proposal_id=proposal_id, question_id=body.question_id, text=body.answer,
            by=principal.actor, clock=db_clock,
        )  # fmt: skip
    except DecisionRefused as refused:
        if refused.http_status == DecisionRefused.http_status:
            add_what_stands(refused, get_proposal(tenant_id, proposal_id), db_clock())
        raise
    proposal = get_proposal(tenant_id, proposal_id)
    given = next(
        filter(None, (answer_to(row) for row in questions_of(proposal) if row.pk == body.question_id))
    )
    status = shown_status(proposal, db_clock())
    action, retry_after = next_action_of(status, proposal.mode)
    return {
        "question_id": told.question.pk, "proposal_id": proposal.pk, "answered_at": given.at,
        "replayed": told.repeated, "proposal_status": status, "decide_by": proposal.decide_by,
        "state_version": proposal.state_version, "next_action": action, "retry_after": retry_after,
    }  # fmt: skip
