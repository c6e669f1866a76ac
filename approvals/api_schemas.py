"""What the API says and takes about proposals and decisions."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from approvals.beside import beside
from approvals.enums import DecisionKind, Mode, ProposalStatus, ReasonCode, Remember
from approvals.models import Decision, Evidence, Proposal, Question
from approvals.selectors import ended_because, shown_status
from approvals.selectors_questions import answer_to
from audit.actors import Actor
from common.sealed import is_erased, readable
from common.strictbody import Body

RETRY_AFTER_S = 5
NextAction = Literal["wait", "provide_data", "fetch_result", "submit_new", "stop"]
S = ProposalStatus

_ID = "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"
_DIGEST = "5f0c5a4d1f4b7a4a0c9b5d1c54fbe1c4a0b7de9f3c5d7a2b1e0f9c8d7a6b5c4d"
VIEW_EXAMPLE: dict[str, Any] = {
    "proposal_id": _ID, "digest": _DIGEST, "view_digest": _DIGEST[::-1], "status": "pending",
    "decide_by": "2026-09-19T17:52:08Z", "state_version": 1, "view": {"headline": "Refund EUR 25.00"},
    "view_bytes": "eyJ2IjoxfQ==", "receipts": {"main": "WyJ1c2Vy…"}, "to_acknowledge": [],
}  # fmt: skip


class DecisionIn(Body):
    """One person's decision on exactly the digests that they were shown.

    ``view_receipts`` are the receipts of the view's parts, as a list, or as the view gives them: by part. A decision
    to approve needs all of them, and every warning of ``to_acknowledge`` in ``acknowledged``.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "digest": _DIGEST, "view_digest": _DIGEST[::-1], "view_receipts": ["WyJ1c2Vy…"],
                    "decision": "approve", "reason": "", "acknowledged": [],
                },
                {
                    "digest": _DIGEST, "view_digest": _DIGEST[::-1], "view_receipts": [], "decision": "reject",
                    "reason_code": "wrong_amount", "reason": "The parcel was insured for less.",
                },
            ]
        }
    )  # fmt: skip

    digest: str = Field(max_length=128)
    view_digest: str = Field(max_length=128)
    view_receipts: list[str] | dict[str, str] = Field(default_factory=list, max_length=500)
    decision: str = Field(max_length=40, json_schema_extra={"enum": [*DecisionKind.values]})
    reason_code: str | None = Field(
        default=None, max_length=30, json_schema_extra={"enum": [*ReasonCode.values, None]}
    )
    reason: str | None = Field(default=None, max_length=2_000)
    acknowledged: list[str] | None = Field(default=None, max_length=500)
    remember: str | None = Field(
        default=None, max_length=10, json_schema_extra={"enum": [*Remember.values, None]}
    )
    """For how long a rejection answers whoever proposes the same again; left out, the policy says."""

    @property
    def receipts(self) -> tuple[str, ...]:
        given = self.view_receipts
        return tuple(given.values() if isinstance(given, dict) else given)


class WithdrawIn(Body):
    """Why the proposal is taken back."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"reason": "The customer changed their mind."}]}
    )

    reason: str = Field(max_length=500)


class DecisionOut(BaseModel):
    """What the decision led to: ``votes`` of ``needed`` approvals are given. ``replayed``: it was recorded before.

    ``event_id`` names the event of the history that says so; `GET /audit/receipts/{event_id}` gives a receipt of it.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "result": "approved", "votes": 1, "needed": 1, "proposal_status": "approved", "command_id": _ID,
                    "state_version": 2, "decision_id": _ID, "event_id": _ID, "replayed": False,
                    "next_action": "wait", "retry_after": 5,
                }
            ]
        }
    )  # fmt: skip

    result: Literal["recorded", "approved", "rejected", "changes_requested"]
    votes: int
    needed: int
    proposal_status: str
    command_id: UUID | None
    state_version: int
    decision_id: UUID
    event_id: UUID | None
    replayed: bool
    next_action: NextAction
    retry_after: int | None


class VoteOut(BaseModel):
    """One standing vote: of a person, or of the policy's rule. ``in_stead_of``: whose place it was, of a deputy's."""

    decision: str
    by: str
    in_stead_of: str | None
    via: str
    at: datetime
    reason_code: str
    rule: str
    rule_version: int | None


class EvidenceOut(BaseModel):
    """One piece of evidence by its digest. ``asserted``: the proposer says so, and nobody has fetched it."""

    kind: str
    title: str
    source: str
    ref: str
    digest: str
    captured_at: datetime
    fresh_until: datetime | None
    asserted: bool


class QuestionOut(BaseModel):
    """A reviewer's question. ``text`` and ``answer`` are words of people: null for all but the proposer."""

    id: UUID
    text: str | None
    asked_by: str
    asked_at: datetime
    answer: str | None
    answered_by: str | None
    answered_at: datetime | None


class ProposalLine(BaseModel):
    """A proposal in a list."""

    id: UUID
    run_id: UUID
    step: str
    workflow: str
    operation: str
    operation_version: int
    version: int
    mode: str
    target: str
    summary: str
    status: str
    digest: str
    material_digest: str
    proposed_by: str
    edited_by: str | None
    created_at: datetime
    decide_by: datetime
    votes: int
    needed: int
    state_version: int
    next_action: NextAction
    retry_after: int | None


class ProposalOut(ProposalLine):
    """A proposal in full. ``contract`` holds the canonical bytes in base64: what an approval binds to.

    ``contract`` is empty once the content was erased (``content_erased``).
    ``duplicate_of`` is another live proposal of the very same thing, where there is one.
    ``edited_by`` is the reviewer who changed arguments of the version that this one ``supersedes``.
    ``questions`` are those that reviewers ask the proposer; `POST /proposals/{id}/answers` answers them.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": _ID, "run_id": _ID, "step": "action", "workflow": "refund-requests",
                    "operation": "refunds.issue", "operation_version": 1, "version": 1, "mode": "live",
                    "target": "order:1042", "summary": "Refund EUR 25.00", "status": "pending", "digest": _DIGEST,
                    "material_digest": "hmac:…", "proposed_by": "api:intake", "edited_by": None,
                    "created_at": "2026-09-19T13:52:08Z",
                    "decide_by": "2026-09-19T17:52:08Z", "votes": 0, "needed": 1, "state_version": 1,
                    "next_action": "wait", "retry_after": 5, "contract": "eyJhY3Rvci…",
                    "content_erased": False, "view_digest": _DIGEST[::-1],
                    "workflow_version": 1, "consequence": "EUR 25.00 goes back to the customer of order 1042.",
                    "execute_within_s": 600, "execute_by": None, "decided_at": None, "ended_at": None,
                    "end_reason": "", "supersedes": None, "superseded_by": None, "duplicate_of": None,
                    "still_needed": 1, "command_id": None, "decisions": [], "evidence": [], "questions": [],
                    "policy_version": 7, "policy_rule": "refund.limit", "event_id": _ID,
                }
            ]
        }
    )  # fmt: skip

    contract: str
    content_erased: bool
    view_digest: str
    workflow_version: int
    policy_version: int
    policy_rule: str
    consequence: str
    execute_within_s: int
    execute_by: datetime | None
    decided_at: datetime | None
    ended_at: datetime | None
    end_reason: str
    supersedes: UUID | None
    superseded_by: UUID | None
    duplicate_of: UUID | None
    still_needed: int
    command_id: UUID | None
    decisions: list[VoteOut]
    evidence: list[EvidenceOut]
    questions: list[QuestionOut]
    event_id: UUID | None
    """That it was made, in the history; `GET /audit/receipts/{event_id}` gives a receipt of it."""


class ProposalsOut(BaseModel):
    """Newest first; ``next_cursor`` is empty on the last page."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"proposals": [], "next_cursor": ""}]})

    proposals: list[ProposalLine]
    next_cursor: str


class ViewOut(BaseModel):
    """The stored view document whole, and a receipt for each part that this answer carries."""

    model_config = ConfigDict(json_schema_extra={"examples": [VIEW_EXAMPLE]})

    proposal_id: UUID
    digest: str
    view_digest: str
    status: str
    decide_by: datetime
    state_version: int
    view: dict[str, Any]
    view_bytes: str
    receipts: dict[str, str]
    to_acknowledge: list[str]


def next_action_of(status: str, mode: str) -> tuple[NextAction, int | None]:
    """What the proposer should do next, and after how many seconds to ask again where it is to wait.

    What comes after the end of a proposal (a person may ask again) is told by the run.
    """
    if status == S.PENDING or (status == S.APPROVED and mode == Mode.LIVE):
        return "wait", RETRY_AFTER_S
    if status == S.CONSUMED:
        return "fetch_result", None
    if status in (S.EXPIRED, S.CHANGES_REQUESTED):
        return "submit_new", None
    return "stop", None


def line_of(proposal: Proposal, now: datetime, votes: Sequence[Decision] | None = None) -> dict[str, Any]:
    """The members that a list shows. ``votes``: those that stand, where somebody has read them already."""
    status = shown_status(proposal, now)
    action, retry_after = next_action_of(status, proposal.mode)
    same = (
        "id", "run_id", "step", "workflow", "operation", "operation_version", "version", "mode", "target", "summary",
        "digest", "material_digest", "proposed_by", "created_at", "decide_by", "needed", "state_version",
    )  # fmt: skip
    standing = [v for v in proposal.decisions.all() if v.replaced_at is None] if votes is None else votes
    return {name: getattr(proposal, name) for name in same} | {
        "status": status, "next_action": action, "retry_after": retry_after,
        "edited_by": f"user:{proposal.edited_by_id}" if proposal.edited_by_id else None,
        "votes": sum(vote.kind == DecisionKind.APPROVE for vote in standing),
    }  # fmt: skip


def proposal_of(proposal: Proposal, now: datetime, reader: Actor) -> dict[str, Any]:
    """The members of one proposal in full, for who reads it."""
    stands = beside(proposal)
    line, contract = line_of(proposal, now, stands.votes), readable(proposal, "contract")
    same = (
        "view_digest", "workflow_version", "consequence", "execute_within_s", "execute_by", "decided_at", "ended_at",
    )  # fmt: skip
    return line | {name: getattr(proposal, name) for name in same} | {
        "contract": b64encode(contract or b"").decode(), "content_erased": is_erased(proposal),
        "end_reason": ended_because(proposal, stands.votes),
        "policy_version": proposal.policy["version"], "policy_rule": proposal.policy["rule"],
        "supersedes": proposal.supersedes_id, "superseded_by": stands.superseded_by,
        "duplicate_of": stands.duplicate_of, "command_id": stands.command_id, "event_id": stands.event_id,
        "still_needed": max(0, proposal.needed - line["votes"]) if line["status"] == S.PENDING else 0,
        "decisions": [_vote(vote) for vote in stands.votes],
        "evidence": [_evidence(piece) for piece in stands.evidence],
        "questions": [
            _question(row, words=reader.performed_by == proposal.proposed_by) for row in stands.questions
        ],
    }  # fmt: skip


def _question(question: Question, *, words: bool) -> dict[str, Any]:
    answer = answer_to(question)
    return {
        "id": question.pk, "text": question.wording if words else None, "asked_by": f"user:{question.asked_by_id}",
        "asked_at": question.asked_at, "answer": answer.wording if answer and words else None,
        "answered_by": answer.performed_by if answer else None, "answered_at": answer.at if answer else None,
    }  # fmt: skip


def _vote(vote: Decision) -> dict[str, Any]:
    return {
        "decision": vote.kind, "by": vote.performed_by, "via": vote.via, "at": vote.at,
        "in_stead_of": f"user:{vote.in_stead_of_id}" if vote.in_stead_of_id else None,
        "reason_code": vote.reason_code, "rule": vote.rule, "rule_version": vote.rule_version,
    }  # fmt: skip


def _evidence(piece: Evidence) -> dict[str, Any]:
    same = ("kind", "title", "source", "ref", "digest", "captured_at", "fresh_until", "asserted")
    return {name: getattr(piece, name) for name in same}
