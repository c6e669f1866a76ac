"""From sent to stored: what the answer means, by the one table, and what follows from it."""

import random
from datetime import datetime, timedelta
from typing import Any

from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.strictjson import JsonRefused
from common.tx import action
from workflows.classify import Meaning, Observation, classify
from workflows.documents import store_json
from workflows.enums import CommandStatus, SettledBy
from workflows.models import Attempt, Document, Run
from workflows.settling import Move, after_answer, after_nothing_happened
from workflows.worker.checks import SHORTEST_PAUSE, failed_check, next_look, not_after_lapse, tries_left
from workflows.worker.claim import Claim
from workflows.worker.held import Held, conclude, hold, make_move, report_unknown

FIRST_RETRY = timedelta(seconds=2)
LONGEST_RETRY = timedelta(minutes=2)


@action
def store_answer(claim: Claim, seen: Observation, *, by: Actor, clock: Clock) -> Meaning:
    """Classify and store one answer. A worker whose token is stale changes no state; what it learned is kept."""
    held = hold(claim.tenant_id, claim.proposal_id, by=by, clock=clock, token=claim.token)
    meaning = classify(seen, claim.operation.outcomes)
    if held is None or held.command.status != CommandStatus.SENT:
        _keep_late_evidence(claim, seen, meaning, by=by, now=clock())
        return meaning
    move = after_answer(held.command, meaning, may_retry=tries_left(held))
    _end_attempt(held, seen, meaning)
    _MOVES[move](held, seen, meaning)
    return meaning


def _keep_late_evidence(
    claim: Claim, seen: Observation, meaning: Meaning, *, by: Actor, now: datetime
) -> None:
    """On its own attempt and nowhere else; reconcile reads it before it asks the provider."""
    evidence = {
        "meaning": meaning.value, "status": seen.status, "reference": seen.reference, "code": seen.code,
        "at": now.isoformat(),
    }  # fmt: skip
    Attempt.objects.filter(token=claim.token).update(late_evidence=evidence)
    attempt = Attempt.objects.select_related("command").get(token=claim.token)
    record(
        by=by, kind="attempt.late_evidence", tenant_id=claim.tenant_id, subject_type="attempt",
        subject_id=attempt.pk, run_id=attempt.command.run_id, body={"meaning": meaning.value},
    )  # fmt: skip


def _end_attempt(held: Held, seen: Observation, meaning: Meaning) -> None:
    attempt = held.attempt
    assert attempt is not None
    if not seen.sent:
        attempt.release(at=held.now, outcome=meaning.value, detail=seen.detail)
    elif seen.status is None:
        attempt.no_answer(at=held.now, outcome=meaning.value, detail=seen.detail)
    else:
        attempt.answer(at=held.now, outcome=meaning.value, http_status=seen.status, detail=seen.detail)
    attempt.save()


def _confirm(held: Held, seen: Observation, meaning: Meaning) -> None:
    confirm(held, reference=seen.reference, by=SettledBy.ANSWER, body=dict(seen.body))


def confirm(held: Held, *, reference: str, by: SettledBy, body: dict[str, Any]) -> None:
    """It happened: keep the provider's words as the result, and let proposal, step and run follow."""
    attempt = held.attempt
    command = held.command
    document = _result(held, {"reference": reference, "settled_by": by.value}, body)
    command.result_ref, command.used_attempt_id = document.pk, attempt.pk if attempt else None
    held.move("confirm", at=held.now, by=by, reference=reference)
    conclude(held)


def _result(held: Held, result: dict[str, Any], body: dict[str, Any]) -> Document:
    """An answer that cannot be stored as JSON does not make an effect undone: then its reference is what is kept."""
    command = held.command
    try:
        return store_json(
            command.tenant_id, command.run_id, "result.command", result | {"answer": body}, held.now
        )
    except JsonRefused as refused:
        kept = result | {"answer": {}, "answer_refused": refused.code}
        return store_json(command.tenant_id, command.run_id, "result.command", kept, held.now)


def _refuse(held: Held, seen: Observation, meaning: Meaning) -> None:
    code = (seen.code or f"status_{seen.status}")[:60]
    held.move("refuse", code, at=held.now, code=code)
    conclude(held)


def _give_up(held: Held, seen: Observation, meaning: Meaning) -> None:
    code = "credential_refused" if meaning is Meaning.NOT_AUTHORIZED else "tries_exhausted"
    held.move("give_up", code, at=held.now, by=SettledBy.ANSWER, code=code)
    conclude(held)


def _free(held: Held, seen: Observation, meaning: Meaning) -> None:
    """No byte left this machine: ready again, a little later."""
    due_at = not_after_lapse(held, held.now + backoff(held.command.tries))
    held.move("free", meaning.value, due_at=due_at)
    _go_on_or_stop(held)


def _retry_later(held: Held, seen: Observation, meaning: Meaning) -> None:
    pause = max(seen.retry_after or backoff(held.command.tries), SHORTEST_PAUSE)
    due_at = not_after_lapse(held, held.now + pause)
    held.move("retry_later", meaning.value, due_at=due_at, code=meaning.value)
    _go_on_or_stop(held)


def _go_on_or_stop(held: Held) -> None:
    """Nothing happened, for certain: a cancel wish wins now, and what failed meanwhile ends here."""
    run = Run.objects.only("cancel_requested_at").get(pk=held.command.run_id)
    settlement = after_nothing_happened(
        held.command, cancel_wished=run.cancel_requested_at is not None, frozen=False, circuit_open=False,
        failed_check=failed_check(held),
    )  # fmt: skip
    if settlement.move is Move.STAY:
        conclude(held)
    else:
        make_move(held, settlement, due_at=held.now)


def _lose_track(held: Held, seen: Observation, meaning: Meaning) -> None:
    """A request went out, and what came back settles nothing."""
    code = "key_reused" if meaning is Meaning.KEY_REUSED else "no_complete_answer"
    lose_track(held, code)


def lose_track(held: Held, code: str) -> None:
    """Unknown, everywhere it is counted: the reconciler asks soon, and people are told."""
    held.move("lose_track", code, due_at=next_look(held), code=code)
    report_unknown(held)


def backoff(tries: int) -> timedelta:
    """Doubling with full jitter, never under a tenth, so that a recovering provider is not met by everybody at once."""
    full = min(FIRST_RETRY * (2 ** max(0, tries - 1)), LONGEST_RETRY)
    return timedelta(seconds=full.total_seconds() * random.uniform(0.1, 1.0))  # noqa: S311 - spreads load


_MOVES = {
    Move.CONFIRM: _confirm,
    Move.REFUSE: _refuse,
    Move.GIVE_UP: _give_up,
    Move.FREE: _free,
    Move.RETRY_LATER: _retry_later,
    Move.LOSE_TRACK: _lose_track,
}
