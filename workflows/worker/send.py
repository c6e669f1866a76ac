"""From claimed to sent: pins outside any transaction, then one that checks everything and commits *sent*."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar

from django.db.models import Q

from approvals.models import Proposal
from audit.actors import Actor
from common.clock import Clock
from common.crashpoints import crashpoint
from common.deadline import Deadline
from common.digests import contract_digest, same
from common.sealed import readable
from common.tx import action
from workflows import registry
from workflows.classify import Meaning
from workflows.contracts import bound_arguments
from workflows.counteractions import BETWEEN
from workflows.effects import family
from workflows.enums import CommandStatus, Effect, Lane, SettledBy, VoidReason
from workflows.models import Attempt, Command, Run
from workflows.operations import Call, Operation, Site
from workflows.record_looks import kind_of_record
from workflows.replays import in_the_way, is_replay
from workflows.results import CredentialRefused, RateLimited, SourceDown
from workflows.scope import enter_scope
from workflows.secret_arguments import NO_SECRETS, Secrets, may_name_secrets, secret_refs, secrets_named
from workflows.settling import Move, Settlement, before_send
from workflows.tenants import slug_of
from workflows.worker.checks import (
    SHORTEST_PAUSE,
    current_policy,
    failed_check,
    intact_contract,
    not_after_lapse,
)
from workflows.worker.circuit import note_trouble
from workflows.worker.claim import Claim
from workflows.worker.held import Held, conclude, hold, make_move, report_unknown

GIVEN_BACK = "given_back"
"""The outcome of a try whose worker had no time left to begin it."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was read outside the transaction, on the word of the bytes with this ``digest``."""

    digest: str
    changed: tuple[str, ...] = ()
    """The kinds of pinned records that are another version by now, such as *order*; no ids, which may be personal."""
    earlier: tuple[str, ...] = ()
    postpone: timedelta | None = None
    refused_credential: bool = False
    secrets: Secrets = field(default=NO_SECRETS, repr=False)
    """Values for the call; whether they are the approved ones is compared in the transaction."""


def site_of(command: Command) -> Site:
    return Site(command.tenant_id, slug_of(command.tenant_id), command.run.on_behalf_of)


def make_call(command: Command, contract: Mapping[str, Any], deadline: Deadline) -> Call[Any]:
    """The request's ingredients, from the contract's stored bytes alone."""
    operation = registry.operation(command.operation, command.operation_version)
    return Call(
        site=site_of(command), arguments=bound_arguments(operation, contract), pins=contract["pins"],
        idempotency_key=contract["idempotency_key"], deadline=deadline,
    )  # fmt: skip


S = TypeVar("S", Call[Any], Looked)


def with_secrets(it: S, operation: Operation[Any], command: Command, contract: Mapping[str, Any]) -> S:
    """With the values that the contract's arguments name, as they are now. Raises CredentialRefused."""
    slug = slug_of(command.tenant_id)
    secrets = secrets_named(operation.arguments, contract["arguments"], command.tenant_id, slug)
    return it if secrets is NO_SECRETS else replace(it, secrets=secrets)


def look(claim: Claim, command: Command) -> Looked:
    """Fetch the pins, the secrets and, before the first call, earlier effects of the same business key."""
    operation = registry.operation(command.operation, command.operation_version)
    digest = contract_digest(readable(command.proposal, "contract") or b"")
    contract = intact_contract(command.proposal, command)
    if contract is None:
        return Looked(digest)  # the checks under the lock say so, and nothing is sent
    call = make_call(command, contract, Deadline.after(operation.call_deadline.total_seconds()))
    try:
        looked = _read(operation, call, digest, first=claim.first_try)
        return with_secrets(looked, operation, command, contract)
    except CredentialRefused:
        return Looked(digest, refused_credential=True)
    except RateLimited as error:
        return Looked(digest, postpone=max(error.retry_after, SHORTEST_PAUSE))
    except SourceDown:
        return Looked(digest, postpone=timedelta(seconds=2 ** min(command.claims, 6)))


def _read(operation: Operation[Any], call: Call[Any], digest: str, *, first: bool) -> Looked:
    # Earlier effects first: where one is found, the record has changed because of it, and that is the better reason.
    earlier = operation.earlier_effects(call.site, call.arguments) if first else ()
    if not call.pins:
        return Looked(digest, earlier=earlier)
    present: Mapping[str, str] = operation.pins(call.arguments, operation.look(call.site, call.arguments))
    return Looked(digest, changed=_changed(call.pins, present), earlier=earlier)


def _changed(pinned: Mapping[str, str], present: Mapping[str, str]) -> tuple[str, ...]:
    names = {name for name in {*pinned, *present} if pinned.get(name) != present.get(name)}
    return tuple(sorted({kind_of_record(name) for name in names}))


@action
def commit_sent(claim: Claim, looked: Looked, *, by: Actor, clock: Clock) -> Mapping[str, Any] | None:
    """Check everything again under the locks and commit *sent*; the contract that was checked, and may now be called.

    None: nothing may be sent by this worker. Locks: the shared scope (holds, policy), proposal, command by token. The
    people who approved are locked too, so that a revocation either comes before and counts, or waits until this has
    committed. What is sent is what was checked here: the caller builds the request from the returned contract.
    What is checked here, `batch.send` checks too; a check that is missing there lets a command pass.
    """
    enter_scope()
    policy = current_policy(claim.operation, lock=True)
    held = hold(claim.tenant_id, claim.proposal_id, by=by, clock=clock, token=claim.token)
    if held is None or held.command.status != CommandStatus.CLAIMED:
        return None  # the lease was over, or somebody stopped it: the token is no longer the row's
    failed = failed_check(held, policy=policy)
    if _ends_before_sending(held, looked, failed):
        return None
    settlement = before_send(
        frozen=held.is_frozen,
        circuit_open=held.circuit_is_open,
        failed_check=failed or changed_since(held, looked),
    )
    if settlement.move is not Move.SEND:
        _not_sent(held, settlement, looked)
        return None
    _send(held)
    crashpoint("CP4")
    return intact_contract(held.proposal, held.command)


def changed_since(held: Held, looked: Looked) -> VoidReason | None:
    """Whether the pinned records have changed, or the very bytes that told which records are pinned."""
    if not same(looked.digest, held.proposal.digest):
        return VoidReason.DIGEST
    if looked.changed or _has_other_secrets(held, looked) or _is_overtaken(held):
        return VoidReason.PIN
    return None


def _has_other_secrets(held: Held, looked: Looked) -> bool:
    """Whether a secret is gone or has another value than the one that was approved."""
    schema = held.operation.arguments
    if not may_name_secrets(schema):
        return False
    contract = intact_contract(held.proposal, held.command)
    return contract is None or any(map(looked.secrets.problem, secret_refs(schema, contract["arguments"])))


def _is_overtaken(held: Held) -> bool:
    """Whether something that was proposed later has changed the same record already: then this one is out of order,
    and would overwrite the newer (field report C8). A person says whether it is still wanted.
    """
    command = held.command
    return Command.objects.filter(
        tenant_id=command.tenant_id, provider=command.provider, target=command.target,
        effect__in=(Effect.HAPPENED, Effect.PARTIAL), proposal__created_at__gt=held.proposal.created_at,
    ).exists()  # fmt: skip


def _ends_before_sending(held: Held, looked: Looked, failed: VoidReason | None) -> bool:
    """What was found outside: a late answer to an earlier try, the same thing done before, a refused credential, or a
    source that is down. Only the first two say more than that the approval no longer holds.
    """
    if _happened_after_all(held):
        _end_attempt(held, "late_evidence")
        held.move("doubt", "late evidence", at=held.now, code="late_evidence")
        report_unknown(held)
        return True
    if looked.earlier or _earlier_here(held) or _earlier_in_family(held):
        _give_up(held, SettledBy.EARLIER_EFFECT, "earlier_effect")
        return True
    if failed is not None:
        return False
    if looked.refused_credential:
        _give_up(held, SettledBy.CHECK, "credential_refused")
        return True
    if looked.postpone is not None:
        _end_attempt(held, "postponed")
        due_at = not_after_lapse(held, held.now + looked.postpone)
        held.move("retry_later", "source_down", due_at=due_at, code="source_down")
        conclude(held)
        note_trouble(held)
        return True
    return False


def _happened_after_all(held: Held) -> bool:
    """Whether the worker of an earlier try came back and says that it happened, after it was settled that it had not.
    The reconciler reads it; a second request would be a second effect.
    """
    if held.command.tries == 0:
        return False
    said = Attempt.objects.filter(command=held.command, late_evidence__meaning=Meaning.CONFIRMED.value)
    return said.exists()


_MAY_HAVE_HAPPENED = Q(effect__in=(Effect.HAPPENED, Effect.PARTIAL, Effect.UNKNOWN)) | Q(
    attempts__late_evidence__meaning=Meaning.CONFIRMED.value
)


def _earlier_here(held: Held) -> bool:
    """Whether another command with this business key had an effect, or may have had one, or a late answer says so."""
    same = Command.objects.filter(
        tenant_id=held.command.tenant_id, business_key=held.command.business_key
    ).exclude(pk=held.command.pk)  # fmt: skip
    return same.filter(_MAY_HAVE_HAPPENED).exists()


def _earlier_in_family(held: Held) -> bool:
    """Whether this step has been done before, under whatever business key, or may have been: by an earlier version of
    it, a run that shares its keys, or, of a replay, its original or another replay. Whatever is known by now counts,
    also what came in after the approval.
    """
    command, step = held.command, held.proposal.step
    if command.lane == Lane.REPROCESS and is_replay(command.run):
        return in_the_way(command.run, step, besides=held.proposal.pk) is not None
    if not may_have_been_done(held.proposal):
        return False
    others = Command.objects.filter(
        tenant_id=command.tenant_id, step__key=step, run__in=Run.objects.filter(family(command.run))
    )
    return others.exclude(pk=command.pk).filter(_MAY_HAVE_HAPPENED).exists()


def may_have_been_done(proposal: Proposal) -> bool:
    """Whether this step can have had an order before: no first version of an ordinary step has."""
    return proposal.version > 1 or BETWEEN in proposal.step


def _give_up(held: Held, by: SettledBy, code: str) -> None:
    _end_attempt(held, code)
    held.move("give_up", code, at=held.now, by=by, code=code)
    conclude(held)


def _not_sent(held: Held, settlement: Settlement, looked: Looked) -> None:
    because_changed = settlement.void_reason == VoidReason.PIN and looked.changed
    detail = f"another version now: {', '.join(looked.changed)}" if because_changed else ""
    _end_attempt(held, str(settlement.void_reason or settlement.hold_reason or "released"), detail)
    make_move(held, settlement, due_at=held.now)


def _end_attempt(held: Held, outcome: str, detail: str = "") -> None:
    attempt = held.attempt
    if attempt is not None:
        attempt.release(at=held.now, outcome=outcome, detail=detail)
        attempt.save()


def _send(held: Held) -> None:
    attempt = held.attempt
    assert attempt is not None
    attempt.send(at=held.now)
    attempt.save(update_fields=["status", "sent_at"])
    held.move("send", at=held.now, lease_until=held.now + 2 * held.operation.call_deadline)


@action
def give_back(claim: Claim, *, by: Actor, clock: Clock) -> None:
    """Make a claimed command ready again, because this worker will not come to it in time. No run changes by that."""
    held = hold(claim.tenant_id, claim.proposal_id, by=by, clock=clock, token=claim.token)
    if held is not None and held.command.status == CommandStatus.CLAIMED:
        _end_attempt(held, GIVEN_BACK)
        held.move("free", "given back", due_at=held.now)
