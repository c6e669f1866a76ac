"""What the API says about a command: what was attempted, what is known of it, and what people said."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from access.selectors import standings
from approvals.api_schemas import NextAction as NextWord
from common.clock import db_clock
from workflows import selectors
from workflows.actions.attesting import counting, people_needed, standing_words
from workflows.api_schemas import example
from workflows.enums import CommandStatus, NextAction, Testimony
from workflows.models import Attempt, Attestation, Command, Lookup
from workflows.registry import UnknownOperation, operation
from workflows.worker.checks import settled_from

_ID = "0199d3f0-7b7e-7cc2-8f60-6c1f0d3c5a11"


class AttemptOut(BaseModel):
    """One physical try."""

    number: int
    status: str
    claimed_at: datetime
    sent_at: datetime | None
    ended_at: datetime | None
    outcome: str | None
    http_status: int | None


class LookupOut(BaseModel):
    """One question to the provider whether it happened."""

    asked_at: datetime
    finding: str
    settled: bool
    provider_reference: str | None


class WordOut(BaseModel):
    """What one person said about the outcome. ``tries``: about how many requests. ``replaced_at``: by a newer word."""

    says: str
    by: str
    role: str
    provider_reference: str | None
    tries: int
    at: datetime
    replaced_at: datetime | None


class SettlingOut(BaseModel):
    """How an outcome that nobody knows may be settled now.

    ``given`` of the ``needed`` people say the same, ``says``. ``may_attest`` is what a person may say at this moment;
    before ``may_attest_from`` the request may still be on its way, and nobody can say that it did not happen.
    ``late_answer``: an answer came after its worker was given up; it is read before anybody's word.
    """

    needed: int
    given: int
    says: str | None
    may_attest: list[str]
    may_attest_from: datetime
    next_look_at: datetime | None
    late_answer: bool


class CommandOut(BaseModel):
    """What was attempted. ``effect`` is *unknown* until it is settled, and called so; ``settling`` is null then."""

    model_config = example(
        {
            "id": _ID, "run_id": _ID, "step": "refund", "proposal_id": _ID, "operation": "refunds.issue",
            "operation_version": 2, "provider": "refunds", "target": "order:1042", "status": "confirmed",
            "effect": "happened", "settled_by": "answer", "hold_reason": None, "void_reason": None,
            "failure_code": None, "provider_reference": "re_17", "idempotency_key": "MFRGGZDFMZTWQ2LK", "tries": 1,
            "created_at": "2026-09-19T13:55:00Z", "first_sent_at": "2026-09-19T13:55:01Z",
            "last_sent_at": "2026-09-19T13:55:01Z", "ended_at": "2026-09-19T13:55:02Z", "result_ref": _ID,
            "attempts": [], "lookups": [], "attestations": [], "settling": None, "state_version": 4,
            "next_action": "fetch_result", "retry_after": None,
        }
    )  # fmt: skip

    id: UUID
    run_id: UUID
    step: str
    proposal_id: UUID
    operation: str
    operation_version: int
    provider: str
    target: str
    status: str
    effect: str
    settled_by: str | None
    hold_reason: str | None
    void_reason: str | None
    failure_code: str | None
    provider_reference: str | None
    idempotency_key: str
    tries: int
    created_at: datetime
    first_sent_at: datetime | None
    last_sent_at: datetime | None
    ended_at: datetime | None
    result_ref: UUID | None
    attempts: list[AttemptOut]
    lookups: list[LookupOut]
    attestations: list[WordOut]
    settling: SettlingOut | None
    state_version: int
    next_action: NextWord
    retry_after: int | None


def command_of(command: Command) -> dict[str, Any]:
    """The body of ``GET /commands/{id}``."""
    same = (
        "run_id", "proposal_id", "operation", "operation_version", "provider", "target", "status", "effect",
        "idempotency_key", "tries", "created_at", "first_sent_at", "last_sent_at", "ended_at", "result_ref",
        "state_version",
    )  # fmt: skip
    or_null = ("settled_by", "hold_reason", "void_reason", "failure_code", "provider_reference")
    action, retry_after = next_action_of(command)
    attempts = selectors.attempts_of(command)
    return {name: getattr(command, name) for name in same} | {
        name: getattr(command, name) or None for name in or_null
    } | {
        "id": command.pk, "step": command.step.key, "next_action": action, "retry_after": retry_after,
        "attempts": [_attempt(row) for row in attempts],
        "lookups": [_lookup(row) for row in command.lookup_rows.order_by("asked_at")],
        "attestations": [_word(row) for row in Attestation.objects.filter(command=command)],
        "settling": _settling(command, attempts),
    }  # fmt: skip


def next_action_of(command: Command) -> tuple[NextAction, int | None]:
    """What comes after the end of a command is told by its run."""
    if command.status == CommandStatus.CONFIRMED:
        return NextAction.FETCH_RESULT, None
    if command.status in CommandStatus.final_states:
        return NextAction.STOP, None
    return NextAction.WAIT, selectors.RETRY_AFTER_S


def _attempt(row: Attempt) -> dict[str, Any]:
    same = ("number", "status", "claimed_at", "sent_at", "ended_at", "http_status")
    return {name: getattr(row, name) for name in same} | {"outcome": row.outcome or None}


def _lookup(row: Lookup) -> dict[str, Any]:
    same = ("asked_at", "finding", "settled")
    return {name: getattr(row, name) for name in same} | {
        "provider_reference": row.provider_reference or None
    }


def _word(row: Attestation) -> dict[str, Any]:
    """Without the person's own reason: it may name people."""
    same = ("says", "role", "tries", "at", "replaced_at")
    return {name: getattr(row, name) for name in same} | {
        "by": f"user:{row.user_id}", "provider_reference": row.reference or None
    }  # fmt: skip


def _settling(command: Command, attempts: list[Attempt]) -> dict[str, Any] | None:
    """Null where nothing is in doubt, and where no code of its version is installed: nobody can settle it here then."""
    if command.status != CommandStatus.UNKNOWN:
        return None
    try:
        known = operation(command.operation, command.operation_version)
    except UnknownOperation:
        return None
    words, no_counts_from = standing_words(command), settled_from(command, known)
    people = standings(command.tenant_id, {row.user_id for row in words})
    counted = counting(words, command, command.proposal, people)
    denied = [Testimony.DID_NOT_HAPPEN] if db_clock() >= no_counts_from else []
    return {
        "needed": people_needed(command.proposal, command),
        "given": len({people[row.user_id].person for row in counted}),
        "says": counted[0].says if counted else None, "may_attest_from": no_counts_from,
        "may_attest": [Testimony.HAPPENED, Testimony.PARTIAL, *denied], "next_look_at": command.due_at,
        "late_answer": any(attempt.late_evidence for attempt in attempts),
    }  # fmt: skip
