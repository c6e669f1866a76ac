"""Correct what stopped and propose it anew: a new version with other values, judged and approved from the start."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from access.policies import check_role, membership_of
from access.selectors import accounts_of
from approvals.actions import lock_proposal
from approvals.enums import ProposalStatus
from approvals.kept_votes import what_changed
from approvals.models import Proposal
from audit.actions import record
from audit.actors import Actor, Via
from common.clock import Clock
from common.digests import same
from common.errors import Refused
from common.tx import action
from workflows import registry
from workflows.actions.asking_again import (
    ASKERS,
    CancelRequested,
    MayHaveHappened,
    happened_late,
    last_proposal,
    prepare_again,
    step_of,
)
from workflows.actions.attesting import TokenCannotAttest
from workflows.actions.decided import lock_command_of
from workflows.actions.editing import NotEditable, NothingChanged, check_fits
from workflows.actions.outside import AlreadySuperseded
from workflows.actions.proposing import create_proposal
from workflows.actions.replaying import lock_effects_of
from workflows.actions.settle import lock_run, settle_run, steps_of
from workflows.contracts import material_digest_of
from workflows.enums import CommandStatus, Effect, StepStatus, WaitingFor
from workflows.hooks import settled
from workflows.models import Command, Run, Step
from workflows.preparing import Prepared
from workflows.selectors import get_run
from workflows.tenants import slug_of

ENDED: Final = (
    ProposalStatus.LAPSED, ProposalStatus.INVALIDATED, ProposalStatus.EXPIRED, ProposalStatus.CHANGES_REQUESTED,
)  # fmt: skip
"""How a proposal ends, or stands still, without effect and without a no."""
WITHOUT_EFFECT: Final = (CommandStatus.REFUSED, CommandStatus.DEAD)


class NothingToCorrect(Refused):
    """Nothing waits here to be proposed anew: it goes on, it has ended, or it was rejected."""

    code = "nothing_to_correct"


def propose_anew(
    *, tenant_id: UUID, run_id: UUID, step: str, changes: Mapping[str, Any], by: Actor, clock: Clock
) -> Proposal:
    """Make a new version of the step's last proposal, with ``changes`` by argument name as JSON; returns it.

    As `ask_again`, and also for what the provider refused, what was given up, and what reviewers wished changed. Only
    what the operation lets people edit may be changed, and something must be, except where it was given up. Whoever
    corrects it does not decide on it. Raises a `Refused` and changes nothing: InvalidArguments names the fields.
    """
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotAttest()
    run, row = get_run(tenant_id, run_id), step_of(tenant_id, run_id, step)
    check_role(membership_of(by.user_id, tenant_id), *ASKERS)
    old = last_proposal(row)
    _check_offered(run, row, old, Command.objects.filter(tenant_id=tenant_id, proposal=old).first())
    return _propose(tenant_id, old.pk, prepared_anew(run, old, changes), changes, by=by, clock=clock)


def prepared_anew(run: Run, old: Proposal, changes: Mapping[str, Any]) -> Prepared:
    """What would be proposed, by the schema, checks, policy and facts of today. Reads outside, and writes nothing."""
    refused = sorted(set(changes) - set(registry.editable(old)))
    if refused:
        raise NotEditable(arguments=refused)
    check_fits(old, changes)
    return prepare_again(run, old, changes)


def _check_offered(run: Run, step: Step, old: Proposal, command: Command | None) -> None:
    if step.proposal_id != old.pk:
        raise AlreadySuperseded(proposal_id=str(step.proposal_id))
    waits = step.status == StepStatus.WAITING and step.waiting_for == WaitingFor.PERSON
    if not waits or not _is_without_effect(old, command):
        raise NothingToCorrect(step=step.status, proposal_status=old.status)
    if command is not None and happened_late(command):
        raise MayHaveHappened(command_id=str(command.pk))
    if run.cancel_requested_at is not None:
        raise CancelRequested()


def _is_without_effect(old: Proposal, command: Command | None) -> bool:
    if old.status == ProposalStatus.CONSUMED:
        return command is not None and command.status in WITHOUT_EFFECT and command.effect == Effect.NONE
    return old.status in ENDED


@action
def _propose(
    tenant_id: UUID, old_id: UUID, prepared: Prepared, changes: Mapping[str, Any], *, by: Actor, clock: Clock
) -> Proposal:
    lock_effects_of(tenant_id, old_id, prepared.draft)
    old = lock_proposal(tenant_id, old_id)
    command = lock_command_of(old)
    run = lock_run(tenant_id, old.run_id)
    now = clock()
    check_role(membership_of(by.user_id, tenant_id), *ASKERS)
    step = next(step for step in steps_of(run) if step.key == old.step)
    _check_offered(run, step, old, command)
    given_up = command is not None and command.status == CommandStatus.DEAD
    if same(material_digest_of(tenant_id, prepared.draft), old.material_digest) and not given_up:
        raise NothingChanged()
    assert by.user_id is not None
    # What stopped here is over; what stops now, such as nobody being eligible, opens a packet of its own.
    settled(run, step.key, "proposed", by=by, at=now)
    proposal = create_proposal(
        run, step, prepared, tenant=slug_of(tenant_id), by=by, clock=clock, now=now, supersedes=old,
        side=accounts_of(tenant_id, [by.user_id]) if changes else (), edited_by=by.user_id if changes else None,
    )  # fmt: skip
    _record_corrected(step, old, proposal, by=by)
    if run.user_message == registry.contract_of(run.workflow).stopped_tell:
        run.user_message = ""  # it goes on
    settle_run(run, by=by, now=now)
    return proposal


def _record_corrected(step: Step, old: Proposal, proposal: Proposal, *, by: Actor) -> None:
    record(
        by=by, kind="step.corrected", tenant_id=step.tenant_id, subject_type="step", subject_id=step.pk,
        run_id=step.run_id, reason=old.end_reason, digest=proposal.digest,
        body={
            "key": step.key, "proposal_id": str(proposal.pk), "instead_of": str(old.pk), "ended": old.status,
            "changed": list(what_changed(old, proposal)),
            "same_key": proposal.idempotency_key == old.idempotency_key,
        },
    )  # fmt: skip
