"""A vote with all its receipts, as a person's browser would send it."""

from collections.abc import Mapping
from typing import Any

from approvals.actions import Submission, decide
from approvals.models import Proposal
from approvals.receipts import issue
from approvals.shown import view_of
from audit.actors import Actor, Owner, Via
from common.clock import db_clock


def person(user_id: Any) -> Actor:
    return Actor(f"user:{user_id}", Via.SESSION, Owner.PERSON, user_id=user_id)


def submission_of(proposal: Proposal, user_id: Any, kind: str) -> Submission:
    view = view_of(proposal)
    receipts = tuple(
        issue(
            user_id=user_id, proposal_id=proposal.pk, digest=proposal.digest, view_digest=proposal.view_digest,
            part=part, at=db_clock(),
        )
        for part in view.parts
    )  # fmt: skip
    return Submission(
        kind, proposal.digest, proposal.view_digest, receipts, tuple(view.to_acknowledge),
        reason_code="" if kind == "approve" else "other",
    )  # fmt: skip


def vote(tenant_id: Any, proposal_id: Any, user_id: Any, kind: str) -> str:
    """The proposal's status afterwards. Raises a `Refused`."""
    proposal = Proposal.objects.get(pk=proposal_id)
    return str(
        decide(
            tenant_id=tenant_id, proposal_id=proposal_id, submission=submission_of(proposal, user_id, kind),
            by=person(user_id), clock=db_clock,
        ).proposal_status
    )  # fmt: skip


def vote_as(office: Mapping[str, str], proposal_id: str, user_id: str, kind: str) -> None:
    """For a process of its own: everything comes as text."""
    from uuid import UUID

    vote(UUID(office["tenant"]), UUID(proposal_id), UUID(user_id), kind)
