"""What the history keeps of a proposal."""

from typing import Any
from uuid import UUID

from approvals.bound import of_decision
from approvals.models import Decision, Proposal
from audit.actions import Entry, record, record_many
from audit.actors import Actor
from audit.bound import ROW, row_digest, utc_text
from common.tx import action


def event_of(
    proposal: Proposal, kind: str, *, by: Actor, before: str = "", reason: str = "", body: dict[str, Any] | None = None
) -> Entry:  # fmt: skip
    """Of something that happened to it, and where it moved, from which state. No words of people: they are sealed."""
    return Entry(
        by=by, kind=kind, tenant_id=proposal.tenant_id, subject_type="proposal", subject_id=proposal.pk,
        run_id=proposal.run_id, from_state=before, to_state=proposal.status if before else "", reason=reason,
        digest=proposal.digest, body=body,
    )  # fmt: skip


def note(
    proposal: Proposal, kind: str, *, by: Actor, reason: str = "", body: dict[str, Any] | None = None
) -> UUID:
    """Record it in the running action; returns the event's id."""
    return record_many([event_of(proposal, kind, by=by, reason=reason, body=body)])[0]


def said_of_vote(vote: Decision) -> dict[str, Any]:
    """In which capacity it was said, and when; and a digest that holds its row fast."""
    group = {"group": str(vote.group_id)} if vote.group_id else {}
    return {"role": vote.role, **group, "at": utc_text(vote.at), ROW: row_digest(of_decision(vars(vote)))}


@action
def record_refused_attempt(*, tenant_id: UUID, proposal_id: UUID, by: Actor, code: str) -> None:
    """Part of its run's history; of a proposal that is not there, of none."""
    run = (
        Proposal.objects.filter(tenant_id=tenant_id, pk=proposal_id).values_list("run_id", flat=True).first()
    )
    record(
        by=by, kind="proposal.decision_refused", tenant_id=tenant_id, subject_type="proposal",
        subject_id=proposal_id, run_id=run, reason=code,
    )  # fmt: skip
