"""An outside agent proposes one action. Same key, same body: the same answer; a new version supersedes the old."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError

from approvals.actions import NotYours, lock_proposal
from approvals.enums import ProposalStatus
from approvals.models import Proposal
from approvals.refusals import BY_STATUS, AlreadyDecided, DecisionRefused
from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.db import violates
from common.digests import same, tenant_hmac
from common.errors import InvalidInput, Refused
from common.models import Tenant
from common.pipelined import PLANNED_ONCE, ask_then_time
from common.prepared import Reading
from common.strictjson import canonicalize
from common.tx import action
from workflows import registry
from workflows.actions.decided import TooLate, end_claim, lock_command_of, move_command
from workflows.actions.proposing import create_proposal
from workflows.actions.runs import (
    THIS_EVENT,
    Requester,
    Source,
    WorkflowHasStages,
    make_run,
    make_source_event,
    make_steps,
)
from workflows.actions.settle import lock_run, settle_run, steps_of
from workflows.contracts import material_digest_of, read_contract
from workflows.definitions import Workflow
from workflows.enums import CommandStatus, StepKind, VoidReason
from workflows.models import Run, SourceEvent
from workflows.operations import OperationRefused, Site
from workflows.preparing import Prepared, prepare
from workflows.results import (
    CredentialRefused,
    EvidencePiece,
    Malformed,
    NotAllowed,
    Propose,
    RateLimited,
    SourceDown,
)

STEP = "action"


class InvalidArguments(InvalidInput):
    """The arguments do not fit the operation. Nothing was queued."""

    code = "invalid_arguments"


class RefusedByPolicy(InvalidInput):
    """The operation or its policy refuses this action, so nobody is asked."""

    code = "refused_by_policy"


class KeyReused(InvalidInput):
    """This key was used before, with another body."""

    code = "idempotency_key_reused"


class OperationNotOffered(InvalidInput):
    """This workflow does not offer that operation."""

    code = "operation_not_offered"


class AssertionFailed(InvalidInput):
    """What was claimed about the record is not what was found there."""

    code = "assertion_failed"


class AlreadySuperseded(DecisionRefused):
    """That proposal has a newer version already."""

    code = "already_superseded"


class OtherWorkflow(InvalidInput):
    """That proposal belongs to another workflow, so nothing of this one takes its place."""

    code = "other_workflow"


class SourceUnavailable(Refused):
    """A system that must be read first does not answer. Nothing was queued; try again later."""

    code = "source_unavailable"
    http_status = 503


@dataclass(frozen=True, slots=True)
class OutsideProposal:
    """What the agent sends. ``pins`` and ``target`` are claims: they are fetched again, and at most compared."""

    workflow: str
    source: Source
    operation: str
    arguments: Mapping[str, Any]
    reason: str
    evidence: tuple[EvidencePiece, ...] = ()
    target: str = ""
    pins: Mapping[str, str] | None = None
    supersedes: UUID | None = None
    body: bytes = b""
    """The request's canonical bytes, to tell the same request from another under the same key."""


@dataclass(frozen=True, slots=True)
class Proposed:
    proposal: Proposal
    created: bool


def propose_from_outside(
    *, tenant: Tenant, request: OutsideProposal, by: Actor, clock: Clock, requester: Requester | None = None
) -> Proposed:
    """Each (tenant, workflow, system, event id, key) makes one proposal, however often it is sent.

    Raises a `Refused`: nothing is stored then. What is read from outside is read before the transaction.
    """
    flow = registry.workflow(request.workflow)
    if not flow.accepts_proposals:
        raise WorkflowHasStages()
    if request.operation not in {operation.name for operation in flow.operations}:
        raise OperationNotOffered()
    hash_ = tenant_hmac(tenant.pk, "proposal-request", request.body or canonicalize(dict(request.arguments)))
    known = _known(tenant, request, hash_)
    if known is not None:
        return Proposed(known, created=False)
    requester = requester or Requester()
    prepared = _prepare(tenant, request, requester)
    try:
        made = _create(tenant, flow, request, prepared, hash_, requester, by=by, clock=clock)
        return Proposed(made, created=made.pk != request.supersedes)
    except (IntegrityError, AlreadySuperseded) as error:
        if isinstance(error, IntegrityError) and not violates(error, "workflows_sourceevent_once"):
            raise
        known = _known(tenant, request, hash_)
        if known is None:
            raise
        return Proposed(
            known, created=False
        )  # the same request came twice at once, and the other one has won


def _known(tenant: Tenant, request: OutsideProposal, hash_: str) -> Proposal | None:
    source = request.source
    event = next(
        iter(_SENT.rows(tenant.pk, request.workflow, source.system, source.event_id, source.key)), None
    )
    if event is None:
        return None
    if not same(event.input_hash, hash_):
        raise KeyReused(run_id=str(event.run_id), proposal_id=str(event.proposal_id))
    assert event.proposal_id is not None
    return _as_it_stands(Proposal.objects.get(tenant=tenant, pk=event.proposal_id))


_SENT = Reading(SourceEvent, THIS_EVENT)


def _as_it_stands(proposal: Proposal) -> Proposal:
    """The newest version that people made of it, edited or asked again; one that was sent under another key is another
    request's (field report B5).
    """
    while (newer := proposal.successors.first()) is not None:
        if SourceEvent.objects.filter(run_id=newer.run_id, proposal_id=newer.pk).exists():
            break
        proposal = newer
    return proposal


def _prepare(tenant: Tenant, request: OutsideProposal, requester: Requester) -> Prepared:
    site = Site(tenant.pk, tenant.slug, requester.on_behalf_of)
    asserted = tuple(replace(piece, asserted=True) for piece in request.evidence)
    prepared = prepare_or_refuse(
        site, Propose(request.operation, request.arguments, request.reason, asserted)
    )
    _compare_claims(request, prepared)
    # What the operation does not pin itself, it cannot fetch: that is shown as the proposer's word and nothing more.
    unchecked = [
        (record, tag) for record, tag in (request.pins or {}).items() if record not in prepared.draft.pins
    ]
    return replace(prepared, asserted_pins=tuple(f"{record} as {tag}" for record, tag in sorted(unchecked)))


def prepare_or_refuse(site: Site, propose: Propose) -> Prepared:
    """`prepare` with the newest installed versions, and its failures as refusals that callers are told."""
    try:
        return prepare(site, propose)
    except Malformed as malformed:
        raise InvalidArguments(errors=malformed.kept.get("errors", [])) from None
    except OperationRefused as refused:
        raise RefusedByPolicy(refused.message, rule=refused.code) from None
    except NotAllowed as refused:
        raise RefusedByPolicy(rule=refused.code) from None
    except (SourceDown, RateLimited, CredentialRefused) as error:
        raise SourceUnavailable() from error


def _compare_claims(request: OutsideProposal, prepared: Prepared) -> None:
    if request.target and request.target != prepared.draft.target:
        raise AssertionFailed(target=prepared.draft.target)
    wrong = sorted(
        record for record, tag in (request.pins or {}).items() if prepared.draft.pins.get(record, tag) != tag
    )
    if wrong:
        raise AssertionFailed(pins=wrong)


@action
def _create(
    tenant: Tenant, flow: type[Workflow], request: OutsideProposal, prepared: Prepared, hash_: str,
    requester: Requester, *, by: Actor, clock: Clock,
) -> Proposal:  # fmt: skip
    if request.supersedes is not None:
        return _supersede(tenant, request, prepared, hash_, requester, by=by, clock=clock)
    _, now = ask_then_time(clock, PLANNED_ONCE)
    content = canonicalize({"operation": request.operation, "arguments": dict(request.arguments)})
    run = make_run(tenant.pk, flow, request.source, content, requester, by=by, now=now)
    [step] = make_steps(run, [(STEP, StepKind.SIDE_EFFECT)])
    proposal = create_proposal(run, step, prepared, tenant=tenant.slug, by=by, clock=clock, now=now)
    _remember(run, request, proposal, hash_, now)
    settle_run(run, by=by, now=now, steps=[step])
    return proposal


def _supersede(
    tenant: Tenant, request: OutsideProposal, prepared: Prepared, hash_: str, requester: Requester, *, by: Actor,
    clock: Clock,
) -> Proposal:  # fmt: skip
    assert request.supersedes is not None
    old = lock_proposal(tenant.pk, request.supersedes)
    _check_can_supersede(old, request, by)
    command = lock_command_of(old)
    if command is not None and command.status not in CommandStatus.stoppable_states:
        raise TooLate(command_id=str(command.pk))
    now = clock()
    if _says_the_same(old, prepared, now):
        return _carry_over(old, request, hash_, by=by, now=now)
    if command is not None:
        end_claim(command, at=now, outcome=VoidReason.SUPERSEDED)
        move_command(command, "make_void", by, VoidReason.SUPERSEDED, at=now, reason=VoidReason.SUPERSEDED)
    run = lock_run(tenant.pk, old.run_id)
    step = next(step for step in steps_of(run) if step.key == old.step)
    proposal = create_proposal(
        run, step, prepared, tenant=tenant.slug, by=by, clock=clock, now=now, supersedes=old,
        side=requester.excluded_users,
    )  # fmt: skip
    _remember(run, request, proposal, hash_, now)
    settle_run(run, by=by, now=now)
    return proposal


def _says_the_same(old: Proposal, prepared: Prepared, now: datetime) -> bool:
    """Whether the new version would be the old one again: the same action on the same records under the same policy,
    and no evidence that was not there. Only a new plan is a reason to throw approvals away (field report C2).
    """
    draft = prepared.draft
    contract = read_contract(bytes(old.contract))
    known = {(row.kind, row.title, bytes(row.content or b"")) for row in old.evidence.all()}
    until = {ProposalStatus.PENDING: old.decide_by, ProposalStatus.APPROVED: old.execute_by}.get(
        ProposalStatus(old.status)
    )
    return (
        until is not None
        and now < until
        and same(material_digest_of(old.tenant_id, draft), old.material_digest)
        and dict(draft.pins) == contract["pins"]
        and draft.operation.policy.version == contract["policy_version"]
        and {(piece.kind, piece.title, piece.content) for piece in prepared.evidence} <= known
    )


def _carry_over(old: Proposal, request: OutsideProposal, hash_: str, *, by: Actor, now: datetime) -> Proposal:
    record(
        by=by, kind="proposal.carried_over", tenant_id=old.tenant_id, subject_type="proposal", subject_id=old.pk,
        run_id=old.run_id, from_state=old.status, to_state=old.status, reason="material_equal", digest=old.digest,
        body={"key": request.source.key},
    )  # fmt: skip
    _remember(Run.objects.get(pk=old.run_id), request, old, hash_, now)
    return old


def _check_can_supersede(old: Proposal, request: OutsideProposal, by: Actor) -> None:
    if old.proposed_by != by.performed_by:
        raise NotYours()
    if old.workflow != request.workflow:
        # Its stages made that proposal, or another workflow's agent; their limits are not those of this workflow.
        raise OtherWorkflow(workflow=old.workflow)
    successor = old.successors.values_list("pk", flat=True).first()
    if successor is not None:
        raise AlreadySuperseded(proposal_id=str(successor))
    if not old.is_live:
        raise BY_STATUS.get(old.status, AlreadyDecided)(status=old.status)


def _remember(run: Run, request: OutsideProposal, proposal: Proposal, hash_: str, now: datetime) -> None:
    make_source_event(run, request.source, hash_, now, proposal_id=proposal.pk)
