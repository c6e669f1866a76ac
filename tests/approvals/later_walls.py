"""Walls around who holds a proposal, deputies, escalations, and what is looked at afterwards."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db.models import Model

from approvals.models import Claim, Decision, Escalation, Sample
from common.ids import new_id
from tests import factories, rows


def claim_row(**fields: Any) -> Claim:
    proposal = fields.pop("proposal", None) or factories.make_proposal()
    defaults = {
        "tenant_id": proposal.tenant_id, "proposal": proposal, "user": factories.make_user(proposal.tenant),
        "since": rows.now(), "until": rows.now() + timedelta(minutes=10),
    }  # fmt: skip
    return Claim(**(defaults | fields))


def escalation_row(**fields: Any) -> Escalation:
    proposal = fields.pop("proposal", None) or factories.make_proposal()
    defaults = {
        "tenant_id": proposal.tenant_id, "proposal": proposal, "position": 0, "role": "reviewer",
        "due_at": rows.now() + timedelta(hours=1), "because": "when a quarter of the time is left",
    }  # fmt: skip
    return Escalation(**(defaults | fields))


def sample_row(**fields: Any) -> Sample:
    proposal = fields.pop("proposal", None) or factories.make_proposal()
    defaults = {
        "tenant_id": proposal.tenant_id, "proposal": proposal, "command_id": new_id(), "workflow": proposal.workflow,
        "share": "0.1000", "wrong_limit": "0.0500", "picked_at": rows.now(),
    }  # fmt: skip
    return Sample(**(defaults | fields))


def said_sample() -> Sample:
    sample = sample_row()
    user = factories.make_user(sample.proposal.tenant)
    sample.verdict, sample.words, sample.user, sample.at = "fine", "As it should be.", user, rows.now()
    sample.save()
    return sample


def _saved(row: Any) -> Any:
    row.save()
    return row


def _stead_of_oneself() -> Decision:
    proposal = factories.make_proposal()
    user = factories.make_user(proposal.tenant)
    return rows.decision_row(proposal, user, in_stead_of=user, group=factories.make_group(proposal.tenant))


def _elsewhere() -> Any:
    return factories.make_tenant().pk


INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("approvals_claim_proposal_tenant", lambda: claim_row(tenant_id=_elsewhere())),
    ("approvals_claim_one_holder", lambda: claim_row(proposal=_saved(claim_row()).proposal)),
    ("approvals_claim_since_until", lambda: claim_row(until=rows.now() - timedelta(minutes=1))),
    ("approvals_decision_in_anothers_stead", _stead_of_oneself),
    ("approvals_escalation_proposal_tenant", lambda: escalation_row(tenant_id=_elsewhere())),
    ("approvals_escalation_group_tenant",
        lambda: escalation_row(role="", group=factories.make_group(factories.make_tenant()))),
    ("approvals_escalation_once", lambda: escalation_row(proposal=_saved(escalation_row()).proposal)),
    ("approvals_escalation_to_somebody", lambda: escalation_row(role="")),
    ("approvals_escalation_handled", lambda: escalation_row(outcome="widened")),
    ("approvals_sample_proposal_tenant", lambda: sample_row(tenant_id=_elsewhere())),
    ("approvals_sample_said_whole", lambda: sample_row(verdict="fine")),
]  # fmt: skip
UPDATES: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("approvals_escalation_planned", lambda: _saved(escalation_row()), {"position": 4}),
    ("approvals_sample_drawn", said_sample, {"verdict": "wrong"}),
]
ROWS: list[tuple[str, Callable[[], Model]]] = [
    ("approvals_escalation_planned", lambda: _saved(escalation_row())),
    ("approvals_sample_drawn", lambda: _saved(sample_row())),
]
