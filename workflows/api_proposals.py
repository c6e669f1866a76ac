"""``POST /proposals``: an automation proposes one action.

It hangs on the router of `approvals.api`: Django finds an address once, and the same one lists proposals there.
"""

import hashlib
from typing import Annotated, Any

from django.http import HttpRequest
from ninja.responses import Status

from access.actions_agents import require_may_propose
from access.enums import Scope
from approvals import api as approvals_api
from approvals.api_schemas import ProposalOut, proposal_of
from approvals.limits import check_open_limit, open_proposals
from audit.principals import Principal, require_scope
from common.clock import db_clock
from common.digests import same
from common.errors import InvalidInput
from common.fields import ArgumentsRefused, DataClass
from common.models import Tenant
from common.pipelined import ask
from common.problems import Problem
from common.strictbody import EvidenceBody
from common.strictjson import canonicalize
from workflows import api_reads, registry
from workflows.actions.outside import OutsideProposal, propose_from_outside
from workflows.api_requests import requester_of, source_of
from workflows.api_schemas import EvidenceIn, ProposalIn
from workflows.results import CredentialRefused, EvidencePiece
from workflows.secret_arguments import normalize


class HashMismatch(InvalidInput):
    """The hash that you sent is not the one of these arguments. Only ours counts."""

    code = "hash_mismatch"


@approvals_api.tokens.post(
    "/proposals",
    response={
        frozenset({200, 201}): ProposalOut,
        frozenset({400, 401, 403, 404, 409, 413, 415, 422, 429, 503}): Problem,
    },
    summary="Propose one action",
)
def propose(request: HttpRequest, body: Annotated[ProposalIn, EvidenceBody()]) -> Status[dict[str, Any]]:
    """201 with the new proposal; 200 for the same key and body again; 422 for the same key with another body.

    For workflows that accept proposals. Needs the scope ``proposals:write``.
    """
    principal = require_scope(request, Scope.PROPOSALS_WRITE)
    require_may_propose(principal, body.workflow, body.operation)
    _check_hash(principal.tenant, body)
    _check_not_too_many(principal, body)
    proposed = propose_from_outside(
        tenant=principal.tenant, request=_request(body), by=principal.actor, clock=db_clock,
        requester=requester_of(principal),
    )  # fmt: skip
    return Status(
        201 if proposed.created else 200, proposal_of(proposed.proposal, db_clock(), principal.actor)
    )


def _request(body: ProposalIn) -> OutsideProposal:
    return OutsideProposal(
        workflow=body.workflow, source=source_of(body.source, body.key), operation=body.operation,
        arguments=body.arguments, reason=body.reason, evidence=tuple(_piece(piece) for piece in body.evidence),
        target=body.target or "", pins=body.pins, supersedes=body.supersedes,
        body=canonicalize(body.model_dump(mode="json", exclude_unset=True)),
    )  # fmt: skip


def _piece(given: EvidenceIn) -> EvidencePiece:
    content = given.content
    stored = (
        b"" if content is None else content.encode() if isinstance(content, str) else canonicalize(content)
    )
    return EvidencePiece(
        kind=given.kind, title=given.title, ref=given.ref, content=stored, captured_at=given.captured_at,
        asserted=True, data_class=DataClass.PERSONAL,  # nobody has said what stands in it
    )  # fmt: skip


def _check_hash(tenant: Tenant, body: ProposalIn) -> None:
    """Compare what the client claims; what does not fit the schema is refused later, in its own words."""
    if body.hash is None or body.operation not in {operation.name for operation in registry.operations()}:
        return
    try:
        normalized = normalize(
            registry.operation(body.operation).arguments, body.arguments, tenant.pk, tenant.slug
        )
    except (ArgumentsRefused, CredentialRefused):
        return
    ours = hashlib.sha256(canonicalize({**normalized.material, **normalized.volatile})).hexdigest()
    if not same(ours, body.hash.removeprefix("sha256:")):
        raise HashMismatch(hash=ours)


def _check_not_too_many(principal: Principal, body: ProposalIn) -> None:
    """A request that came before is answered all the same, and a new version takes the place of an open one."""
    source, tenant_id = body.source, principal.tenant.pk
    known, open_ = ask(
        api_reads.known_event(tenant_id, body.workflow, source.system, source.event_id, body.key),
        open_proposals(tenant_id, principal.actor.performed_by),
    )
    if not known and body.supersedes is None:
        check_open_limit(open_)
