"""The walls of questions, answers and remembered rejections: what `test_walls` breaks of them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db.models import Model

from approvals.models import Answer, Question, Rejection
from tests import factories as f
from tests import rows

NOW = rows.now()


def question_row(**fields: Any) -> Question:
    """To the proposer; not saved."""
    proposal = fields.pop("proposal", None) or f.make_proposal()
    return rows.made(Question, {
        "tenant_id": proposal.tenant_id, "proposal": proposal, "of": "proposer", "wording": "Which parcel?",
        "asked_by": f.make_user(proposal.tenant), "asked_at": NOW,
    }, fields)  # fmt: skip


def make_question(**fields: Any) -> Question:
    row = question_row(**fields)
    row.save()
    return row


def answer_row(**fields: Any) -> Answer:
    question = fields.pop("question", None) or make_question()
    return rows.made(Answer, {
        "tenant_id": question.tenant_id, "question": question, "wording": "The second.", "performed_by": "api:intake",
        "via": "token", "at": NOW,
    }, fields)  # fmt: skip


def make_answer() -> Answer:
    row = answer_row()
    row.save()
    return row


def rejection_row(**fields: Any) -> Rejection:
    """Remembered for a day; not saved."""
    proposal = fields.pop("proposal", None) or f.make_proposal(status="rejected")
    return rows.made(Rejection, {
        "tenant_id": proposal.tenant_id, "proposal": proposal, "operation": proposal.operation,
        "target": proposal.target, "material_digest": proposal.material_digest, "reason_code": "wrong_amount",
        "rejected_by": f.make_user(proposal.tenant), "rejected_at": NOW, "until": NOW + timedelta(days=1),
    }, fields)  # fmt: skip


def make_rejection(**fields: Any) -> Rejection:
    row = rejection_row(**fields)
    row.save()
    return row


INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("approvals_question_proposal_tenant", lambda: question_row(tenant_id=f.make_tenant().pk)),
    ("approvals_question_of_somebody", lambda: question_row(of="colleague")),
    ("approvals_answer_question_tenant", lambda: answer_row(tenant_id=f.make_tenant().pk)),
    ("approvals_rejection_proposal_tenant", lambda: rejection_row(tenant_id=f.make_tenant().pk)),
    ("approvals_rejection_for_a_time", lambda: rejection_row(until=NOW)),
    ("approvals_rejection_lifted_by_somebody", lambda: rejection_row(lifted_at=NOW)),
]  # fmt: skip
UPDATES: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("approvals_question_append_only", make_question, {"of": "colleague"}),
    ("approvals_answer_append_only", make_answer, {"via": "session"}),
    ("approvals_rejection_bound", make_rejection, {"until": NOW + timedelta(days=2)}),
    ("approvals_rejection_bound", make_rejection, {"material_digest": "hmac:other"}),
]
ROWS: list[tuple[str, Callable[[], Model]]] = [
    ("approvals_question_append_only", make_question),
    ("approvals_answer_append_only", make_answer),
    ("approvals_rejection_bound", make_rejection),
]
