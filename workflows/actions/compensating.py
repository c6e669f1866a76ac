"""Take an effect back by its counter-action, or do the rest of what happened in part: each proposed as an action of its
own, in a run of its own, that others than whoever chose it decide on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from access.enums import Role
from access.policies import check_role, membership_of
from access.selectors import accounts_of
from approvals.actions import lock_proposal
from approvals.models import Proposal
from audit.actions import record
from audit.actors import Actor, Via
from common.clock import Clock
from common.errors import NotFound, Refused
from common.strictjson import canonicalize
from common.tx import action
from workflows import registry
from workflows.actions.asking_again import ContractChanged, arguments_of
from workflows.actions.attesting import TokenCannotAttest
from workflows.actions.decided import lock_command_of
from workflows.actions.outside import SourceUnavailable, prepare_or_refuse
from workflows.actions.proposing import create_proposal
from workflows.actions.runs import Requester, Source, make_run, make_steps
from workflows.actions.settle import lock_run, settle_run
from workflows.contracts import bound_arguments, read_contract, utc_text
from workflows.effects import EffectOf, effects_of, state_of
from workflows.enums import RunKind, StepKind
from workflows.following import (
    AnotherEffect,
    EffectFacts,
    NoCounterAction,
    NoRemainder,
    why_not_rest,
    why_not_undo,
)
from workflows.models import Run
from workflows.operations import Operation, Site
from workflows.preparing import Prepared
from workflows.results import CredentialRefused, EvidencePiece, Propose, RateLimited, SourceDown
from workflows.selectors import get_run
from workflows.tenants import slug_of

LONGEST_KEY: Final = 60
"""As steps store it. Who takes back what took something back, again and again, comes to the end of it."""
UNDOERS: Final = (Role.OPERATOR, Role.OWNER, Role.ADMIN)
LONGEST_REASON: Final = 500


@dataclass(frozen=True, slots=True)
class Following:
    """One of the two things that may follow an effect."""

    kind: RunKind
    why_not: Callable[[EffectFacts], Refused | None]
    prepare: Callable[[EffectOf, str], Prepared]
    event: str

    def key(self, effect: EffectOf) -> str:
        return effect.undo_key if self.kind == RunKind.UNDO else effect.rest_key


def follow(
    following: Following, *, tenant_id: UUID, run_id: UUID, key: str, reason: str, by: Actor, clock: Clock,
    what: str = "",
) -> Proposal:  # fmt: skip
    """Propose what follows the effect ``key`` of this run; returns the proposal, in a run of its own.

    ``what``: `EffectOf.what` of the one that was seen under this name, where somebody has seen one.

    1. the arguments are made from the approved contract and the provider's reference, and prepared outside any
       transaction: schema, checks, facts and policy of today,
    2. proposal, order and runs are locked, and everything is checked again: of two people one wins,
    3. the new run keeps the first run's keys, and closes out whoever stood behind the first proposal, and whoever
       chose this. No rule approves it.

    For operators, owners and admins in a session. Raises a `Refused` and changes nothing: those of
    `workflows.following`, InvalidArguments, RefusedByPolicy, SourceUnavailable, ContractChanged, AlreadyDone,
    PreviouslyRejected; NotFound for another tenant's run; AnotherEffect.
    """
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotAttest()
    check_role(membership_of(by.user_id, tenant_id), *UNDOERS)
    effect = effect_named(get_run(tenant_id, run_id), key)
    if what not in ("", effect.what):
        raise AnotherEffect()
    _check(following, effect)
    prepared = following.prepare(effect, reason)
    return _propose(following, effect, prepared, reason, by=by, clock=clock)


def effect_named(run: Run, key: str) -> EffectOf:
    """Raises NotFound where nothing of this name has happened in the run."""
    found = next((effect for effect in effects_of(run) if effect.key == key), None)
    if found is None:
        raise NotFound()
    return found


def facts_of(effect: EffectOf) -> EffectFacts:
    """What the rules ask for, read under whatever locks the caller has."""
    operation = operation_of(effect)
    return EffectFacts(
        happened=True, reference=bool(effect.happened.reference), in_part=effect.happened.in_part,
        counter=operation is not None and len(effect.undo_key) <= LONGEST_KEY
        and _is_offered(effect.run, operation.counter),
        can_rest=operation is not None and len(effect.rest_key) <= LONGEST_KEY and _can_rest(effect, operation),
        undo=state_of(effect.run, effect.undo_key), rest=state_of(effect.run, effect.rest_key),
    )  # fmt: skip


def _can_rest(effect: EffectOf, operation: Operation[Any]) -> bool:
    overrides = type(operation).remainder is not Operation.remainder
    return overrides and _is_offered(effect.run, type(operation))


def operation_of(effect: EffectOf) -> Operation[Any] | None:
    """Of the version that was carried out; None where the code here does not know it."""
    name, version = effect.command.operation, effect.command.operation_version
    return registry.operation(name, version) if registry.knows(name, version) else None


def _is_offered(run: Run, operation: type[Operation[Any]] | None) -> bool:
    flow = registry.installed(run.workflow)
    return (
        operation is not None and flow is not None and operation.name in {one.name for one in flow.operations}
    )


def _check(following: Following, effect: EffectOf) -> None:
    refusal = following.why_not(facts_of(effect))
    if refusal is not None:
        raise refusal


# -- outside any transaction --------------------------------------------------------------------------------------


def prepared_undo(effect: EffectOf, reason: str) -> Prepared:
    """The counter-action as it would be proposed now. Reads outside, and writes nothing."""
    operation = operation_of(effect)
    if operation is None or operation.counter is None:
        raise NoCounterAction()
    made = operation.counter_arguments(_approved(effect, operation), effect.happened)
    return prepare_or_refuse(
        _site(effect), Propose(operation.counter.name, made, reason, (_evidence(effect),))
    )


def prepared_rest(effect: EffectOf, reason: str) -> Prepared:
    """The rest as it would be proposed now, where the operation can say what that is. Reads outside, writes nothing."""
    operation = operation_of(effect)
    if operation is None:
        raise NoRemainder()
    arguments, site = _approved(effect, operation), _site(effect)
    try:
        facts = operation.look(site, arguments)
    except (SourceDown, RateLimited, CredentialRefused) as error:
        raise SourceUnavailable() from error
    made = operation.remainder(arguments, effect.happened, facts)
    if made is None:
        raise NoRemainder()
    return prepare_or_refuse(site, Propose(operation.name, made, reason, (_evidence(effect),)))


def _approved(effect: EffectOf, operation: Operation[Any]) -> Any:
    """The arguments that were approved and carried out. Raises ContractChanged where they cannot be read any more."""
    arguments_of(effect.proposal)  # that the stored bytes are what was proposed
    try:
        return bound_arguments(operation, read_contract(bytes(effect.proposal.contract)))
    except ValueError as error:
        raise ContractChanged() from error


def _site(effect: EffectOf) -> Site:
    """The same systems, for the same somebody, as the effect had."""
    run = effect.run
    return Site(run.tenant_id, slug_of(run.tenant_id), run.on_behalf_of)


def _evidence(effect: EffectOf) -> EvidencePiece:
    """What is to follow what: ids, names and times, and nothing personal."""
    command = effect.command
    ended = command.ended_at or command.created_at
    told = {
        "operation": command.operation, "on": command.target, "provider_reference": effect.happened.reference,
        "run": str(effect.run.pk), "step": effect.key, "order": str(command.pk), "ended_at": utc_text(ended),
        "contract": effect.proposal.digest, "in_part": effect.happened.in_part, "only_a_late_answer": effect.late,
    }  # fmt: skip
    return EvidencePiece(
        "effect", "What has happened", canonicalize(told), ended, "Placet", f"run:{effect.run.pk}"
    )


# -- under the locks ----------------------------------------------------------------------------------------------


@action
def _propose(
    following: Following, effect: EffectOf, prepared: Prepared, reason: str, *, by: Actor, clock: Clock
) -> Proposal:
    tenant_id = effect.run.tenant_id
    lock_command_of(lock_proposal(tenant_id, effect.proposal.pk))
    runs = {pk: lock_run(tenant_id, pk) for pk in sorted({effect.run.pk, effect.run.identity})}
    now = clock()
    check_role(membership_of(by.user_id, tenant_id), *UNDOERS)
    effect = _still(runs[effect.run.pk], effect)
    _check(following, effect)
    run = _run_after(following, effect, reason, by=by, now=now)
    [step] = make_steps(run, [(following.key(effect), StepKind.SIDE_EFFECT)])
    proposal = create_proposal(
        run, step, prepared, tenant=slug_of(tenant_id), by=by, clock=clock, now=now,
        side=[UUID(str(user)) for user in effect.proposal.excluded_users],
    )  # fmt: skip
    _record_proposed(following, effect, proposal, by=by)
    settle_run(run, by=by, now=now)
    return proposal


def _still(run: Run, effect: EffectOf) -> EffectOf:
    """The same one, by the same name: another one may have become known, or been taken back, meanwhile."""
    found = effect_named(run, effect.key)
    if found.what != effect.what:
        raise AnotherEffect()
    return found


def _run_after(following: Following, effect: EffectOf, reason: str, *, by: Actor, now: datetime) -> Run:
    """It is asked for by whoever chose it, on behalf of the same somebody; no record takes turns for it."""
    first, command = effect.run, effect.command
    assert by.user_id is not None
    content = canonicalize({"after": {"run": str(first.pk), "step": effect.key, "order": str(command.pk)}})
    excluded = {*map(UUID, map(str, first.excluded_users)), *accounts_of(first.tenant_id, [by.user_id])}
    return make_run(
        first.tenant_id, registry.workflow(first.workflow), Source(first.source_system, first.source_event_id), content,
        Requester(first.on_behalf_of, tuple(excluded)), by=by, now=now, kind=following.kind, after=first,
    )  # fmt: skip


def _record_proposed(following: Following, effect: EffectOf, proposal: Proposal, *, by: Actor) -> None:
    """In the history of the run whose effect it is; the new run has its own."""
    record(
        by=by, kind=following.event, tenant_id=effect.run.tenant_id, subject_type="run", subject_id=effect.run.pk,
        run_id=effect.run.pk, digest=proposal.digest,
        body={
            "key": effect.key, "run": str(proposal.run_id), "step": proposal.step, "proposal_id": str(proposal.pk),
            "operation": proposal.operation, "order": str(effect.command.pk), "effect": effect.what,
        },
    )  # fmt: skip


UNDOING: Final = Following(RunKind.UNDO, why_not_undo, prepared_undo, "run.undo_proposed")
RESTING: Final = Following(RunKind.REST, why_not_rest, prepared_rest, "run.rest_proposed")
