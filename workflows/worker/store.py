"""From sent to stored: what the answer means, by the one table, and what follows from it."""

import random
from datetime import timedelta
from typing import Any

from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.crashpoints import crashpoint
from common.strictjson import JsonRefused
from common.tx import action
from workflows.actions.decided import end_claim
from workflows.classify import CAME_TOO_LATE, Meaning, Observation, classify
from workflows.documents import store_json
from workflows.enums import CommandStatus, Effect, SettledBy
from workflows.models import Attempt, Document, Run
from workflows.settling import Move, after_answer, after_nothing_happened
from workflows.worker.checks import SHORTEST_PAUSE, failed_check, next_look, not_after_lapse, tries_left
from workflows.worker.circuit import BAD, freeze_connector, note_trouble
from workflows.worker.claim import Claim
from workflows.worker.held import Held, conclude, hold, make_move, report_late_effect, report_unknown

LATE = "late_evidence"
FIRST_RETRY = timedelta(seconds=2)
LONGEST_RETRY = timedelta(minutes=2)


@action
def store_answer(claim: Claim, seen: Observation, *, by: Actor, clock: Clock) -> Meaning:
    """Classify and store one answer. A worker whose token is stale changes no state; what it learned is kept."""
    held = hold(claim.tenant_id, claim.proposal_id, by=by, clock=clock, token=claim.token)
    meaning = classify(seen, claim.operation.outcomes)
    if held is None or held.command.status != CommandStatus.SENT:
        _keep_late_evidence(claim, seen, meaning, by=by, clock=clock)
        return meaning
    move = after_answer(held.command, meaning, may_retry=tries_left(held))
    _end_attempt(held, seen, meaning)
    earlier = _late_references(held)
    if earlier and meaning is not Meaning.CONFIRMED:
        # An earlier try happened after all, so *no* to this one settles nothing: the reconciler reads the late answer.
        lose_track(held, LATE)
    else:
        _MOVES[move](held, seen, meaning)
    if earlier - {seen.reference} and meaning is Meaning.CONFIRMED:
        report_late_effect(held)
    if meaning is Meaning.KEY_REUSED:
        freeze_connector(held)
    elif meaning.value in BAD and seen.code != CAME_TOO_LATE:
        note_trouble(held)
    crashpoint("CP9")
    return meaning


def _late_references(held: Held) -> set[str]:
    """The provider's references in late answers to earlier tries of this command."""
    if held.command.tries < 2:
        return set()
    said = Attempt.objects.filter(command=held.command, late_evidence__meaning=Meaning.CONFIRMED.value)
    return {str((attempt.late_evidence or {}).get("reference", "")) for attempt in said}


def _keep_late_evidence(
    claim: Claim, seen: Observation, meaning: Meaning, *, by: Actor, clock: Clock
) -> None:
    """On its own attempt and nowhere else, where reconcile reads it before it asks the provider.

    A late *yes* about what was settled as *no* puts the command in doubt again, if it can still be stopped; of one that
    has ended otherwise, people are told.
    """
    held = hold(claim.tenant_id, claim.proposal_id, by=by, clock=clock)
    assert held is not None
    evidence = {
        "meaning": meaning.value, "status": seen.status, "reference": seen.reference, "code": seen.code,
        "at": held.now.isoformat(),
    }  # fmt: skip
    Attempt.objects.filter(token=claim.token).update(late_evidence=evidence)
    attempt = Attempt.objects.get(token=claim.token)
    record(
        by=by, kind="attempt.late_evidence", tenant_id=claim.tenant_id, subject_type="attempt",
        subject_id=attempt.pk, run_id=held.command.run_id, body={"meaning": meaning.value},
    )  # fmt: skip
    if meaning in (Meaning.CONFIRMED, Meaning.KEY_REUSED):
        _believe_late(held, seen, meaning)


def _believe_late(held: Held, seen: Observation, meaning: Meaning) -> None:
    command = held.command
    if command.status in CommandStatus.stoppable_states:
        end_claim(command, at=held.now, outcome=LATE)
        held.move("doubt", LATE, at=held.now, code=LATE if meaning is Meaning.CONFIRMED else "key_reused")
        report_unknown(held)
    elif meaning is Meaning.CONFIRMED and _ended_otherwise(held, seen.reference):
        report_late_effect(held)
    if meaning is Meaning.KEY_REUSED:
        freeze_connector(held)


def _ended_otherwise(held: Held, reference: str) -> bool:
    """Whether it was settled as *nothing happened*, or as another effect than the one that is reported now."""
    command = held.command
    if command.status not in CommandStatus.final_states:
        return False
    return command.effect == Effect.NONE or command.provider_reference not in ("", reference)


def _end_attempt(held: Held, seen: Observation, meaning: Meaning) -> None:
    attempt = held.attempt
    assert attempt is not None
    if not seen.sent:
        # A worker that slept says nothing about the provider.
        outcome = CAME_TOO_LATE if seen.code == CAME_TOO_LATE else meaning.value
        attempt.release(at=held.now, outcome=outcome, detail=seen.detail)
    elif seen.status is None:
        attempt.no_answer(at=held.now, outcome=meaning.value, detail=seen.detail)
    else:
        attempt.answer(at=held.now, outcome=meaning.value, http_status=seen.status, detail=seen.detail)
    attempt.save()


def _confirm(held: Held, seen: Observation, meaning: Meaning) -> None:
    confirm(held, reference=seen.reference, by=SettledBy.ANSWER, body=dict(seen.body))


def confirm(
    held: Held, *, reference: str, by: SettledBy, body: dict[str, Any], effect: Effect = Effect.HAPPENED
) -> None:
    """It happened: keep the provider's words as the result, and let proposal, step and run follow.

    *Partial* is only ever said by a person.
    """
    attempt = held.attempt
    command = held.command
    in_part = {"in_part": True} if effect == Effect.PARTIAL else {}
    document = _result(held, {"reference": reference, "settled_by": by.value} | in_part, body)
    command.result_ref, command.used_attempt_id = document.pk, attempt.pk if attempt else None
    held.move("confirm", at=held.now, by=by, reference=reference, effect=effect)
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
        held.command, cancel_wished=run.cancel_requested_at is not None, frozen=held.is_frozen,
        circuit_open=held.circuit_is_open,
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
