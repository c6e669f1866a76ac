"""What was attempted: the order, its tries with the time of each boundary, look-ups, words of people, late evidence."""

from datetime import datetime

from repair.packet.case import Case
from repair.packet.possible import Possibility, State, possibilities
from repair.packet.texts import Part, instant, said
from workflows.effects import references_in
from workflows.enums import CommandStatus
from workflows.models import Attempt, Attestation, Command, Lookup
from workflows.screens.tries import NO_LOOKUP
from workflows.screens.words import code_words
from workflows.worker.checks import settled_from


def command_part(case: Case, now: datetime) -> Part | None:
    """None where no order was ever written."""
    command = case.command
    if command is None:
        return None
    attempts = case.story.attempts.get(command.pk, ())
    return {
        "id": str(command.pk), "status": command.status, "effect": command.effect, "tries": command.tries,
        "resent": command.resent, "restored": command.restored, "created_at": instant(command.created_at),
        "first_sent_at": instant(command.first_sent_at), "last_sent_at": instant(command.last_sent_at),
        "due_at": instant(command.due_at), "ended_at": instant(command.ended_at),
        "settled_by": command.settled_by or None, "provider_reference": said(command.provider_reference) or None,
        "late_reference": said(late_effect(case)) or None,
        "void_reason": command.void_reason or None, "failure_code": said(command.failure_code) or None,
        "hold": _hold(case), "clocks": _clocks(case, now),
        "attempts": [_attempt(row) for row in attempts],
        "lookups": [_lookup(row) for row in case.story.lookups.get(command.pk, ())],
        "attestations": [_attestation(row) for row in case.attestations],
    }  # fmt: skip


def _hold(case: Case) -> Part | None:
    hold, command = case.hold, case.command
    if command is None or command.status != CommandStatus.HELD:
        return None
    return {
        "reason": command.hold_reason, "id": str(hold.pk) if hold else None,
        "placed_at": instant(hold.placed_at) if hold else None,
        "until": instant(hold.until) if hold else None,
    }  # fmt: skip


def _clocks(case: Case, now: datetime) -> Part:
    """Until when a late effect is possible, and while the provider surely remembers the key."""
    command, operation = case.command, case.operation
    if command is None or operation is None or command.last_sent_at is None:
        return {"not_found_counts_from": None, "settled": command is not None and operation is not None,
                "key_remembered_until": None}  # fmt: skip
    settled = settled_from(command, operation)
    kept = operation.key_retention
    until = command.first_sent_at + kept if kept is not None and command.first_sent_at else None
    return {
        "not_found_counts_from": instant(settled), "settled": now >= settled,
        "key_remembered_until": instant(until),
    }  # fmt: skip


def _attempt(row: Attempt) -> Part:
    late = row.late_evidence or {}
    return {
        "number": row.number, "status": row.status, "worker": said(row.worker),
        "claimed_at": instant(row.claimed_at), "sent_at": instant(row.sent_at), "ended_at": instant(row.ended_at),
        "outcome": row.outcome or None, "http_status": row.http_status, "detail": said(row.detail) or None,
        "late_evidence": {
            "meaning": said(late.get("meaning")), "status": late.get("status"),
            "reference": said(late.get("reference")), "at": said(late.get("at")),
        } if late else None,
    }  # fmt: skip


def _lookup(row: Lookup) -> Part:
    return {
        "asked_at": instant(row.asked_at), "ended_at": instant(row.ended_at), "finding": row.finding,
        "settled": row.settled, "provider_reference": said(row.provider_reference) or None,
        "detail": said(row.detail) or None,
    }  # fmt: skip


def _attestation(row: Attestation) -> Part:
    return {
        "says": row.says, "by": f"user:{row.user_id}", "role": row.role, "reference": said(row.reference) or None,
        "about_tries": row.tries, "at": instant(row.at), "replaced_at": instant(row.replaced_at),
    }  # fmt: skip


def error_part(case: Case) -> Part:
    """The class of what went wrong: the packet's cause, and the newest code beneath it."""
    code = said(code_of(case))
    return {"class": said(case.packet.cause), "code": code or None, "words": code_words(code) or None}


def possible_part(case: Case, now: datetime, *, pins_differ: bool) -> list[Part]:
    rows: list[Possibility] = possibilities(state_of(case, now, pins_differ=pins_differ))
    return [
        {"code": row.code, "what": row.what, "tell_by": row.tell_by, "certain": row.certain} for row in rows
    ]


def state_of(case: Case, now: datetime, *, pins_differ: bool = False) -> State:
    """The facts that the possibilities depend on, of rows."""
    command, cause = case.command, case.packet.cause
    if command is None:
        code = case.step.failure_code if case.step else ""
        target = case.proposal.target if case.proposal else ""
        return State(cause=cause, code=said(code), target=said(target), pins_differ=pins_differ)
    lookups = case.story.lookups.get(command.pk, ())
    clocks = _clocks(case, now)
    return State(
        cause=cause, status=command.status, effect=command.effect, tries=command.tries, resent=command.resent,
        restored=command.restored, code=said(command.failure_code), target=said(command.target),
        key=command.idempotency_key, looked_up=lookups[-1].finding if lookups else "",
        can_look_up=not (lookups and lookups[-1].detail in NO_LOOKUP), late_answer=_late_answer(case, command),
        settled_from=_minute(clocks["not_found_counts_from"]), is_settled=bool(clocks["settled"]),
        pins_differ=pins_differ,
    )  # fmt: skip


def late_effect(case: Case) -> str:
    """The provider's reference of an effect that only a late answer tells of, after the order had ended; or empty."""
    command = case.command
    if command is None or command.status not in CommandStatus.final_states:
        return ""
    found = references_in(case.story.attempts.get(command.pk, ()))
    return next((reference for reference in found if reference != command.provider_reference), "")


def _late_answer(case: Case, command: Command) -> str:
    said_late = [row.late_evidence for row in case.story.attempts.get(command.pk, ()) if row.late_evidence]
    return said(said_late[-1].get("meaning")) if said_late else ""


def _minute(at: str | None) -> str:
    """``2026-09-19 17:52:08 UTC``: as people compare it with a provider's list."""
    return f"{at[:10]} {at[11:19]} UTC" if at else ""


def code_of(case: Case) -> str:
    """The newest code beneath the packet's cause, of the order or else of the step; empty where there is none."""
    command, step = case.command, case.step
    if command is not None:
        return str(command.failure_code or command.void_reason)
    return str(step.failure_code) if step is not None else ""
