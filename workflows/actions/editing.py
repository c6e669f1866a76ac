"""A reviewer changes arguments where the operation allows it: a new version, judged anew, which others approve."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from access.selectors import accounts_of
from approvals.actions import lock_proposal
from approvals.kept_votes import what_changed
from approvals.models import Proposal
from approvals.policies import check_can_decide, check_can_see_all, check_is_open
from approvals.recorded import note
from approvals.refusals import AuthorOfVersion, DigestMismatch
from approvals.selectors import get_proposal
from audit.actors import Actor
from common.clock import Clock
from common.digests import same
from common.errors import InvalidInput
from common.fields import ArgumentsRefused
from common.tx import action
from workflows import registry
from workflows.actions.asking_again import arguments_of, prepare_again
from workflows.actions.outside import InvalidArguments, SourceUnavailable
from workflows.actions.proposing import create_proposal
from workflows.actions.replaying import lock_effects_of
from workflows.actions.settle import lock_run, settle_run, steps_of
from workflows.contracts import material_digest_of
from workflows.preparing import Prepared
from workflows.results import CredentialRefused
from workflows.secret_arguments import normalize
from workflows.selectors import get_run
from workflows.tenants import slug_of


class NotEditable(InvalidInput):
    """The operation does not let reviewers change that. Ask for changes instead: the proposer makes a new version."""

    code = "not_editable"


class NothingChanged(InvalidInput):
    """That would be the same action again. Change something, or go back and decide on it as it is."""

    code = "nothing_changed"


@dataclass(frozen=True, slots=True)
class Edit:
    """New values by argument name, as JSON, and the digest of the version that was in front of the person."""

    digest: str
    changes: Mapping[str, Any]


def edit(*, tenant_id: UUID, proposal_id: UUID, edit: Edit, by: Actor, clock: Clock) -> Proposal:
    """Put a changed version in the place of one that waits; returns it.

    1. who may decide on it may edit it, and who edited it may do so once more,
    2. it is prepared anew outside any transaction: schema, checks, facts and policy of today,
    3. proposal and run are locked, it is checked again, and the new version supersedes the old one. Its editor is
       closed out of deciding on it, like the proposer's side; nothing of an edit is approved by a rule.

    Raises a `Refused` and changes nothing: InvalidArguments names the fields; who was faster is told by the state.
    """
    old = get_proposal(tenant_id, proposal_id)
    _check_may_edit(old, edit, by, clock())
    check_fits(old, edit.changes)
    prepared = prepare_again(get_run(tenant_id, old.run_id), old, edit.changes)
    return _edit(tenant_id, old.pk, edit, prepared, by=by, clock=clock)


def _check_may_edit(old: Proposal, edit: Edit, by: Actor, now: datetime) -> None:
    check_may_edit(old, by)
    check_is_open(old, now)
    if not same(edit.digest, old.digest):
        raise DigestMismatch(digest=old.digest)
    refused = sorted(set(edit.changes) - set(registry.editable(old)))
    if refused:
        raise NotEditable(arguments=refused)


def check_may_edit(old: Proposal, by: Actor) -> None:
    """Whoever may decide on it, and its editor, if they are shown all of it. Raises the refusals of deciding."""
    with suppress(AuthorOfVersion):
        check_can_decide(old, by)
    check_can_see_all(by, old.tenant_id)


def check_fits(old: Proposal, changes: Mapping[str, Any]) -> None:
    """Raises InvalidArguments with a message for each field: a person reads it beside what they typed."""
    arguments = {**arguments_of(old), **changes}
    schema = registry.operation(old.operation).arguments
    try:
        normalize(schema, arguments, old.tenant_id, slug_of(old.tenant_id))
    except ArgumentsRefused as refused:
        raise InvalidArguments(errors=[asdict(error) for error in refused.errors]) from None
    except CredentialRefused as error:
        raise SourceUnavailable() from error


@action
def _edit(
    tenant_id: UUID, old_id: UUID, edit: Edit, prepared: Prepared, *, by: Actor, clock: Clock
) -> Proposal:
    lock_effects_of(tenant_id, old_id, prepared.draft)
    old = lock_proposal(tenant_id, old_id)
    run = lock_run(tenant_id, old.run_id)
    now = clock()
    _check_may_edit(old, edit, by, now)
    if same(material_digest_of(tenant_id, prepared.draft), old.material_digest):
        raise NothingChanged()
    assert by.user_id is not None
    step = next(step for step in steps_of(run) if step.key == old.step)
    proposal = create_proposal(
        run, step, prepared, tenant=slug_of(tenant_id), by=by, clock=clock, now=now, supersedes=old,
        side=accounts_of(tenant_id, [by.user_id]), edited_by=by.user_id,
    )  # fmt: skip
    body = {"of": str(old.pk), "changed": list(what_changed(old, proposal))}
    note(proposal, "proposal.edited", by=by, body=body)
    settle_run(run, by=by, now=now)
    return proposal
