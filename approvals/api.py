"""``/proposals``: what is asked, for programs; and for signed-in people the view and the decision.

Two routers, because django-ninja stops at the first authenticator that raises: ``tokens`` takes bearer tokens and
looks at no cookie, ``sessions`` takes a signed-in person with the CSRF check and refuses any Authorization header.
"""

from base64 import b64encode
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router

from access.auth import wait_as
from access.enums import Scope
from access.sessions import confirmed_for, spend_proof
from approvals import actions, receipts, selectors
from approvals.actions import DecisionOutcome, Submission
from approvals.api_schemas import (
    DecisionIn,
    DecisionOut,
    ProposalOut,
    ProposalsOut,
    ViewOut,
    WithdrawIn,
    line_of,
    next_action_of,
    proposal_of,
)
from approvals.enums import ProposalStatus
from approvals.late import add_what_stands
from approvals.policies import check_can_see_all
from approvals.refusals import DecisionRefused
from approvals.shown import view_of
from audit.principals import principal_of, require_scope
from common.clock import db_clock
from common.cursors import PAGE
from common.longpoll import Since, Wait
from common.problems import Problem
from common.strictbody import StrictBody

tokens = Router(tags=["proposals"])
sessions = Router(tags=["decisions"])


@tokens.get(
    "/proposals/{proposal_id}", response={200: ProposalOut, frozenset({401, 403, 404, 422}): Problem},
    summary="Read one proposal",
)  # fmt: skip
def get_proposal(
    request: HttpRequest, proposal_id: UUID, wait: Wait = 0, since: Since = None
) -> dict[str, Any]:
    """Contract, digests, votes and what is still needed. With ``wait`` the answer comes when something changes.

    Needs the scope ``proposals:read``.
    """
    principal = require_scope(request, Scope.PROPOSALS_READ)
    tenant_id = principal.tenant.pk
    proposal = selectors.get_proposal(tenant_id, proposal_id)
    if wait:
        known = proposal.state_version if since is None else since
        wait_as(request, lambda: selectors.has_moved(tenant_id, proposal_id, known), wait)
        proposal = selectors.get_proposal(tenant_id, proposal_id)
    return proposal_of(proposal, db_clock(), principal.actor)


@tokens.get(
    "/proposals", response={200: ProposalsOut, frozenset({401, 403, 422}): Problem}, summary="List proposals",
)  # fmt: skip
def list_proposals(
    request: HttpRequest,
    status: ProposalStatus | None = None,
    workflow: str = "",
    cursor: str = "",
    limit: int = PAGE,
) -> dict[str, Any]:
    """Newest first. ``status=pending`` leaves out what has expired by now. Needs the scope ``proposals:read``."""
    tenant_id = require_scope(request, Scope.PROPOSALS_READ).tenant.pk
    now = db_clock()
    found = selectors.list_proposals(
        tenant_id, status=status or "", workflow=workflow, now=now, cursor=cursor, size=limit
    )
    return {"proposals": [line_of(row, now) for row in found.rows], "next_cursor": found.next_cursor}


@tokens.post(
    "/proposals/{proposal_id}/withdraw",
    response={200: ProposalOut, frozenset({400, 401, 403, 404, 409, 413, 415, 422}): Problem},
    summary="Take a proposal back",
)
def withdraw(
    request: HttpRequest, proposal_id: UUID, body: Annotated[WithdrawIn, StrictBody()]
) -> dict[str, Any]:
    """By the proposer, before anything was sent. Again: the same answer. Needs the scope ``proposals:write``."""
    principal = require_scope(request, Scope.PROPOSALS_WRITE)
    try:
        proposal = actions.withdraw(
            tenant_id=principal.tenant.pk,
            proposal_id=proposal_id,
            reason=body.reason,
            by=principal.actor,
            clock=db_clock,
        )
    except DecisionRefused as refused:
        if refused.http_status == DecisionRefused.http_status:
            add_what_stands(refused, selectors.get_proposal(principal.tenant.pk, proposal_id), db_clock())
        raise
    return proposal_of(selectors.get_proposal(principal.tenant.pk, proposal.pk), db_clock(), principal.actor)


@sessions.get(
    "/proposals/{proposal_id}/view", response={200: ViewOut, frozenset({401, 403, 404, 422}): Problem},
    summary="See what is decided on",
)  # fmt: skip
def get_view(request: HttpRequest, proposal_id: UUID) -> dict[str, Any]:
    """The stored view document whole, with a receipt for each of its parts, for this person. Changes nothing.

    For those whose role is shown personal fields too: reviewers, auditors and owners.
    """
    principal = principal_of(request)
    proposal = selectors.get_proposal(principal.tenant.pk, proposal_id)
    check_can_see_all(principal.actor, principal.tenant.pk)
    view, now = view_of(proposal), db_clock()
    return {
        "proposal_id": proposal.pk, "digest": proposal.digest, "view_digest": proposal.view_digest,
        "status": selectors.shown_status(proposal, now), "decide_by": proposal.decide_by,
        "state_version": proposal.state_version, "view": view.model_dump(mode="json"),
        "view_bytes": b64encode(bytes(proposal.view)).decode(), "to_acknowledge": list(view.to_acknowledge),
        "receipts": {
            part: receipts.issue(
                user_id=principal.actor.user_id, proposal_id=proposal.pk, digest=proposal.digest,
                view_digest=proposal.view_digest, part=part, at=now,
            )
            for part in view.parts
        },
    }  # fmt: skip


@sessions.post(
    "/proposals/{proposal_id}/decisions",
    response={200: DecisionOut, frozenset({400, 401, 403, 404, 409, 413, 415, 422}): Problem},
    summary="Decide",
)
def decide(
    request: HttpRequest, proposal_id: UUID, body: Annotated[DecisionIn, StrictBody()]
) -> dict[str, Any]:
    """A signed-in person's decision. The same decision again answers with the original.

    Any Authorization header is refused with ``token_cannot_decide``: no token ever decides.
    """
    principal = principal_of(request)
    submission = Submission(
        kind=body.decision, digest=body.digest, view_digest=body.view_digest, view_receipts=body.receipts,
        acknowledged=tuple(body.acknowledged or ()), reason_code=body.reason_code or "", reason=body.reason or "",
        remember=body.remember or "", confirmed=confirmed_for(request),
    )  # fmt: skip
    try:
        outcome = actions.decide(
            tenant_id=principal.tenant.pk, proposal_id=proposal_id, submission=submission, by=principal.actor,
            clock=db_clock,
        )  # fmt: skip
    except DecisionRefused as refused:
        if refused.http_status == DecisionRefused.http_status:
            add_what_stands(refused, selectors.get_proposal(principal.tenant.pk, proposal_id), db_clock())
        raise
    spend_proof(request, submission.digest)
    return _outcome(outcome)


def _outcome(outcome: DecisionOutcome) -> dict[str, Any]:
    action, retry_after = next_action_of(outcome.proposal_status, outcome.mode)
    return {
        "result": outcome.result, "votes": outcome.votes, "needed": outcome.needed,
        "proposal_status": outcome.proposal_status, "command_id": outcome.command_id,
        "state_version": outcome.state_version, "decision_id": outcome.decision_id, "event_id": outcome.event_id,
        "replayed": outcome.replayed,
        "next_action": action, "retry_after": retry_after,
    }  # fmt: skip
