"""Unknown outcomes: late evidence first, then a look-up at the provider; never a blind retry."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.deadline import Deadline
from common.tx import action
from workflows import registry
from workflows.classify import Meaning
from workflows.enums import CommandStatus, SettledBy
from workflows.models import Attempt, Command, Lookup, Run
from workflows.operations import Finding
from workflows.results import CredentialRefused, RateLimited, SourceDown
from workflows.settling import Move, after_late_answer, after_lookup, after_nothing_happened
from workflows.worker.held import Held, conclude, failed_check, hold, make_move
from workflows.worker.send import make_call
from workflows.worker.store import confirm

log = structlog.get_logger(__name__)

ASK_AGAIN_AT_LEAST = timedelta(seconds=5)
ASK_AGAIN_AT_MOST = timedelta(minutes=10)

# Setting the next time first is the claim: another process passes over what is not due, and a look-up harms nobody.
_DUE = """
    UPDATE workflows_command SET due_at = clock_timestamp() + interval '60 seconds' WHERE id IN (
        SELECT id FROM workflows_command WHERE status = 'unknown' AND due_at <= clock_timestamp()
        ORDER BY due_at, id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING id
"""


def reconcile_due(*, by: Actor, clock: Clock, worker: str, limit: int = 20) -> int:
    """Ask about every unknown command whose time has come; returns how many were settled."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, [limit])
        ids = [row[0] for row in cursor.fetchall()]
    return sum(reconcile(command_id, by=by, clock=clock, worker=worker) for command_id in ids)


def reconcile(command_id: UUID, *, by: Actor, clock: Clock, worker: str) -> bool:
    """Settle one unknown command if anything can; True if it was settled."""
    command = Command.objects.select_related("proposal", "run").get(pk=command_id)
    if _settle_by_late_evidence(command.tenant_id, command.proposal_id, by=by, clock=clock):
        return True
    asked_at = clock()
    finding = _ask(command)
    return _settle_by_lookup(
        command.tenant_id, command.proposal_id, finding, asked_at, worker, by=by, clock=clock
    )


@action
def _settle_by_late_evidence(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> bool:
    held = hold(tenant_id, proposal_id, by=by, clock=clock)
    if held is None or held.command.status != CommandStatus.UNKNOWN:
        return True  # somebody else settled it
    attempts = list(Attempt.objects.filter(command=held.command).order_by("number"))
    for attempt in attempts:
        evidence: dict[str, Any] | None = attempt.late_evidence
        if evidence is None:
            continue
        last = attempt is attempts[-1]
        move = after_late_answer(held.command, Meaning(evidence["meaning"]), of_last_attempt=last)
        if _apply(held, move, evidence.get("reference", ""), SettledBy.LATE_ANSWER, {}):
            return True
    return False


def _ask(command: Command) -> Finding:
    operation = registry.operation(command.operation, command.operation_version)
    try:
        call = make_call(command, Deadline.after(operation.call_deadline.total_seconds()))
        return operation.reconcile(call)
    except (SourceDown, RateLimited) as error:
        return Finding("no_answer", detail=str(error))
    except CredentialRefused as error:
        return Finding("no_answer", detail=f"credential refused: {error}")
    except Exception as error:
        log.exception("lookup_broke", command_id=str(command.pk))
        return Finding("no_answer", detail=type(error).__name__)


@action
def _settle_by_lookup(
    tenant_id: UUID, proposal_id: UUID, finding: Finding, asked_at: datetime, worker: str, *, by: Actor,
    clock: Clock,
) -> bool:  # fmt: skip
    held = hold(tenant_id, proposal_id, by=by, clock=clock)
    if held is None or held.command.status != CommandStatus.UNKNOWN:
        return False
    settled = _has_settled(held, asked_at)
    _write_lookup(held, finding, asked_at, worker, settled)
    move = after_lookup(finding.finding, settled=settled)
    if _apply(held, move, finding.reference, SettledBy.LOOKUP, dict(finding.body)):
        return True
    held.command.lookups += 1
    held.command.due_at = held.now + _pause(held.command.lookups)
    held.command.save(update_fields=["lookups", "due_at"])
    return False


def _has_settled(held: Held, asked_at: datetime) -> bool:
    """*Not found* counts only after the time in which a request that was sent may still take effect."""
    sent = held.command.last_sent_at
    return sent is not None and asked_at >= sent + held.operation.settle_time


def _write_lookup(held: Held, finding: Finding, asked_at: datetime, worker: str, settled: bool) -> None:
    lookup = Lookup.objects.create(
        tenant_id=held.command.tenant_id, command=held.command, asked_at=asked_at, ended_at=held.now,
        worker=worker, finding=finding.finding, provider_reference=finding.reference[:200], settled=settled,
        detail=finding.detail[:200],
    )  # fmt: skip
    record(
        by=held.by, kind="command.looked_up", tenant_id=lookup.tenant_id, subject_type="command",
        subject_id=held.command.pk, run_id=held.command.run_id,
        body={"finding": lookup.finding, "settled": settled, "reference": lookup.provider_reference},
    )  # fmt: skip


def _apply(held: Held, move: Move, reference: str, by: SettledBy, body: dict[str, Any]) -> bool:
    if move is Move.STAY:
        return False
    if move is Move.CONFIRM:
        confirm(held, reference=reference, by=by, body=body)
    elif move is Move.REFUSE:
        held.move("refuse", by, at=held.now, code="refused_late")
        conclude(held)
    else:
        _nothing_happened(held, by)
    return True


def _nothing_happened(held: Held, by: SettledBy) -> None:
    """Design, 6.6: a cancel wish wins; else the checks that need only the database; else ready again."""
    run = Run.objects.only("cancel_requested_at").get(pk=held.command.run_id)
    settlement = after_nothing_happened(
        held.command, cancel_wished=run.cancel_requested_at is not None, frozen=False, circuit_open=False,
        failed_check=failed_check(held),
    )  # fmt: skip
    make_move(held, settlement, due_at=held.now, code=f"did not happen: {by.value}")


def _pause(lookups: int) -> timedelta:
    return min(ASK_AGAIN_AT_LEAST * float(2 ** min(lookups, 10)), ASK_AGAIN_AT_MOST)
