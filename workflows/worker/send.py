"""From claimed to sent: pins outside any transaction, then one that checks everything and commits *sent*."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from audit.actors import Actor
from common.clock import Clock
from common.deadline import Deadline
from common.digests import contract_digest, same
from common.tx import action
from workflows import registry
from workflows.contracts import bound_arguments
from workflows.crashpoints import crashpoint
from workflows.enums import CommandStatus, Effect, SettledBy, VoidReason
from workflows.models import Command
from workflows.operations import Call, Operation, Site
from workflows.results import CredentialRefused, RateLimited, SourceDown
from workflows.settling import Move, Settlement, before_send
from workflows.tenants import slug_of
from workflows.worker.checks import (
    SHORTEST_PAUSE,
    current_policy,
    failed_check,
    intact_contract,
    not_after_lapse,
)
from workflows.worker.claim import Claim
from workflows.worker.held import Held, conclude, hold, make_move


@dataclass(frozen=True, slots=True)
class Looked:
    """What was read outside the transaction, on the word of the bytes with this ``digest``."""

    digest: str
    pins_hold: bool = True
    earlier: tuple[str, ...] = ()
    postpone: timedelta | None = None
    refused_credential: bool = False


def site_of(command: Command) -> Site:
    return Site(command.tenant_id, slug_of(command.tenant_id), command.run.on_behalf_of)


def make_call(command: Command, contract: Mapping[str, Any], deadline: Deadline) -> Call[Any]:
    """The request's ingredients, from the contract's stored bytes alone."""
    operation = registry.operation(command.operation, command.operation_version)
    return Call(
        site=site_of(command), arguments=bound_arguments(operation, contract), pins=contract["pins"],
        idempotency_key=contract["idempotency_key"], deadline=deadline,
    )  # fmt: skip


def look(claim: Claim, command: Command) -> Looked:
    """Fetch the pins and, before the first call, earlier effects of the same business key."""
    operation = registry.operation(command.operation, command.operation_version)
    digest = contract_digest(bytes(command.proposal.contract))
    contract = intact_contract(command.proposal, command)
    if contract is None:
        return Looked(digest)  # the checks under the lock say so, and nothing is sent
    call = make_call(command, contract, Deadline.after(operation.call_deadline.total_seconds()))
    try:
        return _read(operation, call, digest, first=claim.first_try)
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
    return Looked(digest, pins_hold=dict(present) == dict(call.pins), earlier=earlier)


@action
def commit_sent(claim: Claim, looked: Looked, *, by: Actor, clock: Clock) -> Mapping[str, Any] | None:
    """Check everything again under the locks and commit *sent*; the contract that was checked, and may now be called.

    None: nothing may be sent by this worker. Locks: the shared scope (policy), proposal, command by token. The people
    who approved are locked too, so that a revocation either comes before and counts, or waits until this has
    committed. What is sent is what was checked here: the caller builds the request from the returned contract.
    """
    policy = current_policy(claim.operation, lock=True)
    held = hold(claim.tenant_id, claim.proposal_id, by=by, clock=clock, token=claim.token)
    if held is None or held.command.status != CommandStatus.CLAIMED:
        return None  # the lease was over, or somebody stopped it: the token is no longer the row's
    failed = failed_check(held, policy=policy)
    if _ends_before_sending(held, looked, failed):
        return None
    settlement = before_send(
        frozen=False, circuit_open=False, failed_check=failed or _changed_since(held, looked)
    )
    if settlement.move is not Move.SEND:
        _not_sent(held, settlement)
        return None
    _send(held)
    crashpoint("CP4")
    return intact_contract(held.proposal, held.command)


def _changed_since(held: Held, looked: Looked) -> VoidReason | None:
    """Whether the pinned records have changed, or the very bytes that told which records are pinned."""
    if not same(looked.digest, held.proposal.digest):
        return VoidReason.DIGEST
    return None if looked.pins_hold else VoidReason.PIN


def _ends_before_sending(held: Held, looked: Looked, failed: VoidReason | None) -> bool:
    """What was found outside: the same thing done before, a refused credential, or a source that is down.

    Only the first of these says more than that the approval no longer holds.
    """
    if looked.earlier or _earlier_here(held):
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
        return True
    return False


def _earlier_here(held: Held) -> bool:
    """Whether another command with this business key had an effect, or may have had one."""
    return Command.objects.filter(
        tenant_id=held.command.tenant_id, business_key=held.command.business_key,
        effect__in=(Effect.HAPPENED, Effect.PARTIAL, Effect.UNKNOWN),
    ).exclude(pk=held.command.pk).exists()  # fmt: skip


def _give_up(held: Held, by: SettledBy, code: str) -> None:
    _end_attempt(held, code)
    held.move("give_up", code, at=held.now, by=by, code=code)
    conclude(held)


def _not_sent(held: Held, settlement: Settlement) -> None:
    _end_attempt(held, str(settlement.void_reason or settlement.hold_reason or "released"))
    make_move(held, settlement, due_at=held.now)


def _end_attempt(held: Held, outcome: str) -> None:
    attempt = held.attempt
    if attempt is not None:
        attempt.release(at=held.now, outcome=outcome)
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
        _end_attempt(held, "given_back")
        held.move("free", "given back", due_at=held.now)
