"""From claimed to sent: pins outside any transaction, then one that checks everything and commits *sent*."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog

from audit.actors import Actor
from common.clock import Clock
from common.deadline import Deadline
from common.models import Tenant
from common.tx import action
from workflows import registry
from workflows.contracts import bound_arguments, read_contract
from workflows.crashpoints import crashpoint
from workflows.enums import CommandStatus, Effect, SettledBy, VoidReason
from workflows.models import Command
from workflows.operations import Call, Operation, Site
from workflows.results import CredentialRefused, RateLimited, SourceDown
from workflows.settling import Move, Settlement, before_send
from workflows.worker.claim import LEASE, Claim
from workflows.worker.held import Held, conclude, failed_check, hold, lock_scope, make_move

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Looked:
    """What was read outside the transaction: whether the pinned records are still the same, and earlier effects."""

    pins_hold: bool = True
    earlier: tuple[str, ...] = ()
    postpone: timedelta | None = None
    refused_credential: bool = False


def site_of(command: Command) -> Site:
    tenant = Tenant.objects.get(pk=command.tenant_id)
    return Site(command.tenant_id, tenant.slug, command.run.on_behalf_of)


def make_call(command: Command, deadline: Deadline) -> Call[Any]:
    """The request's ingredients, from the contract's stored bytes alone."""
    contract = read_contract(bytes(command.proposal.contract))
    operation = registry.operation(command.operation, command.operation_version)
    return Call(
        site=site_of(command), arguments=bound_arguments(operation, contract), pins=contract["pins"],
        idempotency_key=contract["idempotency_key"], deadline=deadline,
    )  # fmt: skip


def look(claim: Claim, command: Command) -> Looked:
    """Fetch the pins and, before the first call, earlier effects of the same business key."""
    operation = registry.operation(command.operation, command.operation_version)
    try:
        call = make_call(command, Deadline.after(operation.call_deadline.total_seconds()))
    except Exception:
        # Unreadable bytes: the checks under the lock say so, and nothing is sent.
        log.exception("contract_unreadable", command_id=str(command.pk))
        return Looked()
    try:
        return _read(operation, call, first=claim.first_try)
    except CredentialRefused:
        return Looked(refused_credential=True)
    except RateLimited as error:
        return Looked(postpone=error.retry_after)
    except SourceDown:
        return Looked(postpone=timedelta(seconds=2 ** min(command.claims, 6)))


def _read(operation: Operation[Any], call: Call[Any], *, first: bool) -> Looked:
    # Earlier effects first: where one is found, the record has changed because of it, and that is the better reason.
    earlier = operation.earlier_effects(call.site, call.arguments) if first else ()
    if not call.pins:
        return Looked(earlier=earlier)
    present: Mapping[str, str] = operation.pins(call.arguments, operation.look(call.site, call.arguments))
    return Looked(pins_hold=dict(present) == dict(call.pins), earlier=earlier)


@action
def commit_sent(claim: Claim, looked: Looked, *, by: Actor, clock: Clock) -> bool:
    """Check everything again under the locks and commit *sent*; False: nothing may be sent by this worker.

    Locks: the shared scope (policy), proposal, command by token. The people who approved are locked too, so that a
    revocation either comes before and counts, or waits until this has committed.
    """
    named = Command.objects.only("operation", "operation_version").get(pk=claim.command_id)
    lock_scope(registry.operation(named.operation, named.operation_version))
    held = hold(claim.tenant_id, claim.proposal_id, by=by, clock=clock, token=claim.token)
    if held is None or held.command.status != CommandStatus.CLAIMED:
        return False  # the lease was over, or somebody stopped it: the token is no longer the row's
    if _ends_before_sending(held, looked):
        return False
    settlement = before_send(frozen=False, circuit_open=False, failed_check=_failed(held, looked))
    if settlement.move is Move.SEND:
        _send(held)
        crashpoint("CP4")
        return True
    _not_sent(held, settlement)
    return False


def _failed(held: Held, looked: Looked) -> VoidReason | None:
    return failed_check(held) or (None if looked.pins_hold else VoidReason.PIN)


def _ends_before_sending(held: Held, looked: Looked) -> bool:
    """What was found outside: postpone, a refused credential, or the same thing done before."""
    if looked.postpone is not None and failed_check(held) is None:
        _end_attempt(held, "postponed")
        held.move("retry_later", "source_down", due_at=held.now + looked.postpone, code="source_down")
        conclude(held)
        return True
    if looked.refused_credential:
        _give_up(held, SettledBy.CHECK, "credential_refused")
        return True
    if looked.earlier or _earlier_here(held):
        _give_up(held, SettledBy.EARLIER_EFFECT, "earlier_effect")
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
    attempt = held.attempt()
    if attempt is not None:
        attempt.release(at=held.now, outcome=outcome)
        attempt.save()


def _send(held: Held) -> None:
    attempt = held.attempt()
    assert attempt is not None
    attempt.send(at=held.now)
    attempt.save(update_fields=["status", "sent_at"])
    held.move("send", at=held.now, lease_until=held.now + LEASE)
