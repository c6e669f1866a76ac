"""Unknown outcomes: late evidence first, then a look-up at the provider; never a blind retry."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.deadline import Deadline
from common.rounds import each
from common.tx import action
from workflows import registry
from workflows.classify import Meaning
from workflows.crashpoints import crashpoint
from workflows.enums import CommandStatus, SettledBy
from workflows.models import Attempt, Command, Lookup, Run
from workflows.operations import Finding
from workflows.results import CredentialRefused, RateLimited, SourceDown
from workflows.settling import Move, after_late_answer, after_lookup, after_nothing_happened
from workflows.worker.checks import failed_check, intact_contract, next_look, settles_at, tries_left
from workflows.worker.held import Held, conclude, hold, make_move
from workflows.worker.send import make_call
from workflows.worker.store import confirm

log = structlog.get_logger(__name__)

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
    return each(ids, lambda id_: reconcile(id_, by=by, clock=clock, worker=worker), what="reconcile")


def reconcile(command_id: UUID, *, by: Actor, clock: Clock, worker: str) -> bool:
    """Settle one unknown command if anything can; True if it was settled."""
    command = Command.objects.select_related("proposal", "run").get(pk=command_id)
    if _settle_by_late_evidence(command.tenant_id, command.proposal_id, by=by, clock=clock):
        return True
    asked_at = clock()
    finding = _ask(command)
    crashpoint("CP12")
    return _settle_by_lookup(
        command.tenant_id, command.proposal_id, finding, asked_at, worker, by=by, clock=clock
    )


@action
def _settle_by_late_evidence(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> bool:
    held = hold(tenant_id, proposal_id, by=by, clock=clock)
    if held is None or held.command.status != CommandStatus.UNKNOWN:
        return True  # somebody else settled it
    attempts = list(Attempt.objects.filter(command=held.command).order_by("number"))
    evidence = [
        (attempt.late_evidence, attempt is attempts[-1]) for attempt in attempts if attempt.late_evidence
    ]
    return any(_settle_by_evidence(held, said, of_last_attempt=last) for said, last in evidence)


def _settle_by_evidence(held: Held, evidence: Mapping[str, Any], *, of_last_attempt: bool) -> bool:
    meaning, by = Meaning(evidence["meaning"]), SettledBy.LATE_ANSWER
    move = after_late_answer(held.command, meaning, of_last_attempt=of_last_attempt)
    if move is Move.CONFIRM:
        confirm(held, reference=evidence["reference"], by=by, body={})
    elif move is Move.REFUSE:
        code = (evidence["code"] or f"status_{evidence['status']}")[:60]
        held.move("refuse", by, at=held.now, code=code, by=by)
        conclude(held)
    elif move is Move.FREE:
        # A refused credential is never tried again by itself: a person looks.
        _nothing_happened(held, by, "credential_refused" if meaning is Meaning.NOT_AUTHORIZED else "")
    return move is not Move.STAY


def _ask(command: Command) -> Finding:
    """What the provider says. Asked by the key that was approved: a changed contract names no key to ask by."""
    operation = registry.operation(command.operation, command.operation_version)
    contract = intact_contract(command.proposal, command)
    if contract is None:
        return Finding("no_answer", detail="the stored contract is not what was approved")
    try:
        deadline = Deadline.after(operation.call_deadline.total_seconds())
        return operation.reconcile(make_call(command, contract, deadline))
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
    settled = asked_at >= settles_at(held)
    _write_lookup(held, finding, asked_at, worker, settled)
    move = after_lookup(finding.finding, settled=settled)
    # The key came before with other parameters: what is found under it may be somebody else's. A person settles it.
    if move is Move.STAY or held.command.failure_code == "key_reused":
        held.command.lookups += 1
        held.command.due_at = next_look(held)
        held.command.save(update_fields=["lookups", "due_at"])
        return False
    if move is Move.CONFIRM:
        confirm(held, reference=finding.reference, by=SettledBy.LOOKUP, body=dict(finding.body))
    else:
        _nothing_happened(held, SettledBy.LOOKUP)
    return True


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


def _nothing_happened(held: Held, by: SettledBy, never_again: str = "") -> None:
    """Design, 6.6: a cancel wish wins; else the checks that need only the database; else ready again, while the caps
    on tries and time allow it. ``never_again`` says why it is not tried again all the same.
    """
    run = Run.objects.only("cancel_requested_at").get(pk=held.command.run_id)
    settlement = after_nothing_happened(
        held.command, cancel_wished=run.cancel_requested_at is not None, frozen=False, circuit_open=False,
        failed_check=failed_check(held),
    )  # fmt: skip
    why = never_again or ("" if tries_left(held) else "tries_exhausted")
    if settlement.move is Move.FREE and why:
        held.move("free", f"did not happen: {by.value}", due_at=held.now)
        held.move("give_up", why, at=held.now, by=by, code=why)
        conclude(held)
        return
    make_move(held, settlement, due_at=held.now, code=f"did not happen: {by.value}", by=by)
