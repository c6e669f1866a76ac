"""Unknown outcomes: late evidence first, then a look-up at the provider; never a blind retry."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import connection

from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.content_keys import known_names, locked
from common.crashpoints import crashpoint
from common.deadline import Deadline
from common.rounds import each
from common.stopping import stopping
from common.tx import action
from workflows import registry
from workflows.classify import Meaning
from workflows.enums import CommandStatus, SettledBy
from workflows.models import Attempt, Command, Lookup, Run
from workflows.operations import Call, Finding, Operation
from workflows.results import CredentialRefused, RateLimited, SourceDown
from workflows.secret_arguments import hidden
from workflows.settling import Move, after_late_answer, after_lookup, after_nothing_happened
from workflows.worker.again import send_again
from workflows.worker.checks import failed_check, intact_contract, next_look, settles_at, tries_left
from workflows.worker.held import Held, conclude, hold, make_move
from workflows.worker.send import make_call, with_secrets
from workflows.worker.store import confirm

log = structlog.get_logger(__name__)

# Setting the next time first is the claim: another process passes over what is not due, and a look-up harms nobody.
# It is chosen apart from the update: inside an IN the planner may run it again for each row, and so take several.
_DUE = f"""
    WITH due AS MATERIALIZED (
        SELECT id FROM workflows_command u WHERE status = 'unknown' AND due_at <= clock_timestamp()
          AND (operation, operation_version) IN (SELECT * FROM unnest(%(names)s::text[], %(versions)s::int[]))
          AND NOT {locked("u")}
        ORDER BY due_at, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
    UPDATE workflows_command c SET due_at = clock_timestamp() + interval '60 seconds' FROM due WHERE c.id = due.id
    RETURNING c.id
"""  # noqa: S608 - our own text


BUDGET_S: Final = 5.0
"""Slow providers must not keep everything else that is due from being seen to."""


def reconcile_due(*, by: Actor, clock: Clock, worker: str, limit: int = 20) -> int:
    """Ask about unknown commands whose time has come, one after the other; returns how many were settled.

    One is always asked about. What there was no time for stays due.
    """
    due = _due_in_time(limit, Deadline.after(BUDGET_S))
    return each(due, lambda id_: reconcile(id_, by=by, clock=clock, worker=worker), what="reconcile")


def _due_in_time(limit: int, until: Deadline) -> Iterator[UUID]:
    for number in range(limit):
        if stopping() or (number and until.over()):
            return
        id_ = _take_due()
        if id_ is None:
            return
        yield id_


def _take_due() -> UUID | None:
    known = registry.known_operations()
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {
            "names": [name for name, _ in known], "versions": [version for _, version in known], "keys": known_names(),
        })  # fmt: skip
        row = cursor.fetchone()
    return row[0] if row is not None else None


def reconcile(command_id: UUID, *, by: Actor, clock: Clock, worker: str) -> bool:
    """Settle one unknown command if anything can; True if it was settled."""
    command = Command.objects.select_related("proposal", "run").get(pk=command_id)
    if _settle_by_late_evidence(command.tenant_id, command.proposal_id, by=by, clock=clock):
        return True
    asked_at = clock()
    finding = _ask(command)
    crashpoint("CP12")
    if _settle_by_lookup(
        command.tenant_id, command.proposal_id, finding, asked_at, worker, by=by, clock=clock
    ):
        return True
    return finding.finding == "no_answer" and send_again(command, by=by, clock=clock, worker=worker)


@action
def _settle_by_late_evidence(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> bool:
    held = hold(tenant_id, proposal_id, by=by, clock=clock)
    if held is None or held.command.status != CommandStatus.UNKNOWN:
        return True  # somebody else settled it
    return read_late_evidence(held)


def read_late_evidence(held: Held) -> bool:
    """What stale workers learned about an unknown command, read before anybody else is asked; True if it settled it."""
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
        nothing_happened(held, by, "credential_refused" if meaning is Meaning.NOT_AUTHORIZED else "")
    return move is not Move.STAY


def _look_up(operation: Operation[Any], call: Call[Any]) -> Finding:
    """What the look-up says, in words or by an error, without the values of secrets."""
    try:
        return hidden(operation.reconcile(call), call.secrets)
    except (SourceDown, RateLimited, CredentialRefused) as error:
        detail = f"credential refused: {error}" if isinstance(error, CredentialRefused) else str(error)
        return Finding("no_answer", detail=call.secrets.hide(detail))


def _ask(command: Command) -> Finding:
    """What the provider says. Asked by the key that was approved: a changed contract names no key to ask by."""
    operation = registry.operation(command.operation, command.operation_version)
    contract = intact_contract(command.proposal, command)
    if contract is None:
        return Finding("no_answer", detail="the stored contract is not what was approved")
    try:
        deadline = Deadline.after(operation.call_deadline.total_seconds())
        call = with_secrets(make_call(command, contract, deadline), operation, command, contract)
        return _look_up(operation, call)
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
    if read_late_evidence(held):
        return True  # it came while the provider was asked, and knows more than *not found*
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
        nothing_happened(held, SettledBy.LOOKUP)
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


def nothing_happened(held: Held, by: SettledBy, never_again: str = "") -> None:
    """Design, 6.6: a cancel wish wins; else the checks that need only the database; else ready again, while the caps
    on tries and time allow it. ``never_again`` says why it is not tried again all the same.
    """
    run = Run.objects.only("cancel_requested_at").get(pk=held.command.run_id)
    settlement = after_nothing_happened(
        held.command, cancel_wished=run.cancel_requested_at is not None, frozen=held.is_frozen,
        circuit_open=held.circuit_is_open,
        failed_check=failed_check(held),
    )  # fmt: skip
    why = never_again or ("" if tries_left(held) else "tries_exhausted")
    if settlement.move in (Move.FREE, Move.HOLD) and why:
        # Also while it is frozen: what is held is let go again, and this must not be.
        held.move("free", f"did not happen: {by.value}", due_at=held.now)
        held.move("give_up", why, at=held.now, by=by, code=why)
        conclude(held)
        return
    make_move(held, settlement, due_at=held.now, code=f"did not happen: {by.value}", by=by)
