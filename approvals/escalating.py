"""Asking more people when time runs short. What an approval binds to stays as it is: only who may give it grows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from approvals.actions import lock_proposal
from approvals.enums import EscalationOutcome, ProposalStatus
from approvals.models import Escalation, Proposal
from audit.actions import record
from audit.actors import Actor
from common import prepared
from common.clock import Clock
from common.rounds import each
from common.tx import action, require_transaction


@dataclass(frozen=True, slots=True)
class Step:
    """To whom else, from when on, and why in the workflow's words. One of group and role."""

    due_at: datetime
    group_id: UUID | None
    role: str
    because: str


def plan(proposal: Proposal, steps: Sequence[Step]) -> None:
    """Write down with a new proposal what will happen when nobody decides. Steps that ask nobody new are left out."""
    require_transaction()
    new = [step for step in steps if step.role or step.group_id != proposal.group_id]
    Escalation.objects.bulk_create(
        Escalation(
            tenant_id=proposal.tenant_id, proposal=proposal, position=position, due_at=step.due_at,
            group_id=step.group_id, role=step.role, because=step.because[:200],
        )
        for position, step in enumerate(sorted(new, key=lambda step: step.due_at))
    )  # fmt: skip


def escalate_due(*, by: Actor, clock: Clock, limit: int = 200) -> int:
    """Take every step whose time has come, each proposal in a transaction of its own; returns how many."""
    due = Escalation.objects.filter(handled_at=None, due_at__lte=clock()).order_by("due_at", "proposal_id")
    rows = list(dict.fromkeys(due.values_list("tenant_id", "proposal_id")[:limit]))
    return each(rows, lambda row: _escalate(*row, by=by, clock=clock), what="escalate")


@action
def _escalate(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> bool:
    proposal = lock_proposal(tenant_id, proposal_id)
    now = clock()
    rows = Escalation.objects.filter(
        tenant_id=tenant_id, proposal_id=proposal_id, handled_at=None, due_at__lte=now
    )
    waits = proposal.status == ProposalStatus.PENDING and now < proposal.decide_by
    steps = list(rows.order_by("position"))
    for step in steps:
        step.handled_at = now
        step.outcome = EscalationOutcome.WIDENED if waits else EscalationOutcome.NOT_NEEDED
        step.save(update_fields=["handled_at", "outcome"])
        if waits:
            _widen(proposal, step, by=by)
    return waits and bool(steps)


def _widen(proposal: Proposal, step: Escalation, *, by: Actor) -> None:
    if step.group_id is not None and step.group_id not in proposal.also_groups:
        proposal.also_groups = [*proposal.also_groups, step.group_id]
    if step.role and step.role not in proposal.also_roles:
        proposal.also_roles = [*proposal.also_roles, step.role]
    # Whoever is asked now may be there: it is counted again.
    proposal.roster = ""
    proposal.state_version += 1
    prepared.update(proposal, ["also_groups", "also_roles", "roster", "state_version"])
    record(
        by=by, kind="proposal.escalated", tenant_id=proposal.tenant_id, subject_type="proposal",
        subject_id=proposal.pk, run_id=proposal.run_id, digest=proposal.digest, reason=step.because,
        body={
            "group": str(step.group_id) if step.group_id else None, "role": step.role or None,
            "position": step.position,
            "due_at": step.due_at.isoformat(), "decide_by": proposal.decide_by.isoformat(),
        },
    )  # fmt: skip
