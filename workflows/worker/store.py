"""From sent to stored: what the answer means, by the one table, and what follows from it."""

import random
from datetime import datetime, timedelta
from typing import Any

from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.tx import action
from workflows import registry
from workflows.classify import Meaning, Observation, classify
from workflows.documents import store_json
from workflows.enums import CommandStatus, SettledBy
from workflows.models import Attempt, Command, Run
from workflows.settling import Move, after_answer, after_nothing_happened
from workflows.worker.claim import Claim
from workflows.worker.held import Held, conclude, failed_check, hold, make_move, report_unknown

FIRST_RETRY = timedelta(seconds=2)
LONGEST_RETRY = timedelta(minutes=2)


@action
def store_answer(claim: Claim, seen: Observation, *, by: Actor, clock: Clock) -> Meaning:
    """Classify and store one answer. A worker whose token is stale changes no state; what it learned is kept."""
    held = hold(claim.tenant_id, claim.proposal_id, by=by, clock=clock, token=claim.token)
    command = held.command if held else Command.objects.get(pk=claim.command_id)
    operation = registry.operation(command.operation, command.operation_version)
    meaning = classify(seen, operation.outcomes)
    if held is None or held.command.status != CommandStatus.SENT:
        _keep_late_evidence(claim, seen, meaning, by=by, now=clock())
        return meaning
    move = after_answer(held.command, meaning, may_retry=_may_retry(held))
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


def _may_retry(held: Held) -> bool:
    operation, command = held.operation, held.command
    in_time = held.now < (command.first_sent_at or held.now) + operation.max_total
    return bool(command.tries < operation.max_tries and in_time)


def _end_attempt(held: Held, seen: Observation, meaning: Meaning) -> None:
    attempt = held.attempt()
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
    attempt = held.attempt()
    command = held.command
    result = {"reference": reference, "answer": body, "settled_by": by.value}
    document = store_json(command.tenant_id, command.run_id, "result.command", result, held.now)
    command.result_ref, command.used_attempt_id = document.pk, attempt.pk if attempt else None
    held.move("confirm", at=held.now, by=by, reference=reference)
    conclude(held)


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
    held.move("free", meaning.value, due_at=held.now + backoff(held.command.tries))
    _go_on_or_stop(held)


def _retry_later(held: Held, seen: Observation, meaning: Meaning) -> None:
    held.move(
        "retry_later",
        meaning.value,
        due_at=held.now + (seen.retry_after or backoff(held.command.tries)),
        code=meaning.value,
    )
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
    """Unknown, everywhere it is counted: the reconciler asks once the provider had time to settle."""
    held.move("lose_track", code, due_at=held.now + held.operation.settle_time, code=code)
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
