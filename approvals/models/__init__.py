"""Rows of asking people: the proposal with its bound bytes, its evidence, decisions, questions, rejections."""

from approvals.models.afterwards import Sample
from approvals.models.claims import Claim
from approvals.models.decisions import Decision
from approvals.models.escalations import Escalation
from approvals.models.evidence import Evidence
from approvals.models.proposals import AMOUNT, BOUND, PENDING, URGENT_HOUR, Proposal
from approvals.models.questions import Answer, Question
from approvals.models.rejections import Rejection
from approvals.models.signatures import Signature
from approvals.models.traits import Trait

__all__ = [
    "AMOUNT",
    "BOUND",
    "PENDING",
    "URGENT_HOUR",
    "Answer",
    "Claim",
    "Decision",
    "Escalation",
    "Evidence",
    "Proposal",
    "Question",
    "Rejection",
    "Sample",
    "Signature",
    "Trait",
]
