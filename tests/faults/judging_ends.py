"""Why each action ended as it did: an approved one that was not carried out ended for a reason that is true."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from tests.faults.facts import Row
from tests.faults.flows import OPERATIONS
from tests.faults.judging_states import OPEN_PACKETS, gone_since
from tests.faults.oracle import FINAL, Check, Life, Violation, World

QUARANTINED_AFTER = 5
ENOUGH = timedelta(seconds=90)
"""In which processes start and take what is due, also on a busy machine."""
REFUSING = (400, 404, 409, 412, 422)
DEADLY = "poison"
"""Actions from which no worker comes back."""


def for_a_reason(world: World) -> Iterator[Violation]:
    """I3: nobody's approval comes to nothing without a cause that can be seen outside the worker."""
    for life in world.lives:
        command = life.command
        if command is None or command["status"] not in FINAL or command["status"] == "confirmed":
            continue
        word = command["void_reason"] or command["failure_code"]
        is_true = _TRUE.get(command["status"], {}).get(word) or _TRUE_OF_ALL.get(command["status"])
        if is_true is None or not is_true(world, life):
            yield Violation("unfounded", "I3", f"{life}: ended as {word or 'nothing'}, for no cause")
        if word == "quarantined" and life.action.what != DEADLY:
            yield Violation("unfounded", "I18", f"{life}: set aside for what another one did")


def _lapsed(world: World, life: Life) -> bool:
    proposal, command = life.proposal, life.command
    assert proposal is not None and command is not None
    over = proposal["execute_by"]
    return over is None or (command["ended_at"] >= over and not _had_its_time(world, life, over))


def _had_its_time(world: World, life: Life, over: Any) -> bool:
    """Whether nothing stood in its way for long enough while everything was well, and nobody took it."""
    healed = world.facts.times.get("healed")
    decided = (life.proposal or {}).get("decided_at")
    if healed is None or decided is None or life.action.what != "good" or life.attempts:
        return False
    return bool(over - max(healed, decided) > ENOUGH)


def _someone_left(world: World, life: Life) -> bool:
    gone = gone_since(world)
    return any(user in gone for user in life.action.approvers)


def _record_moved(world: World, life: Life) -> bool:
    """Its own customer's standing changed, or a newer action changed the same order."""
    return life.action.what in ("old_pin", "pinning") or any(
        other.effects for other in on_same_order(world, life)
    )


def _done_before(world: World, life: Life) -> bool:
    same = [
        other for other in world.lives
        if other is not life and other.action.arguments == life.action.arguments
    ]  # fmt: skip
    return any(other.arrivals for other in same)


def _exhausted(world: World, life: Life) -> bool:
    operation, sends = OPERATIONS[life.action.operation], life.sends()
    assert life.command is not None
    took = life.command["ended_at"] - sends[0]["at"] if sends else operation.max_total * 0
    return len(sends) >= operation.max_tries or took >= operation.max_total


def _nobody_came_back(world: World, life: Life) -> bool:
    outcomes = [attempt["outcome"] for attempt in life.attempts if attempt["outcome"] != "given_back"]
    return outcomes[-QUARANTINED_AFTER:] == ["lease_over"] * QUARANTINED_AFTER


def _refused(world: World, life: Life) -> bool:
    return any(attempt["http_status"] in REFUSING for attempt in life.attempts) or _late_word(life, "refused")


def _late_word(life: Life, meaning: str) -> bool:
    said = (attempt["late_evidence"] or {} for attempt in life.attempts)
    return any(word.get("meaning") == meaning for word in said)


def _no_credential(world: World, life: Life) -> bool:
    return any(attempt["http_status"] in (401, 403) for attempt in life.attempts)


def _taken_back(world: World, life: Life) -> bool:
    events = world.events_of.get(life.action.proposal_id, ())
    ended = any(event["to_state"] in ("withdrawn", "superseded") for event in events)
    return ended or wished_away(world, life) is not None


Reason = Callable[[World, Life], bool]
_TRUE: Mapping[str, Mapping[str, Reason]] = {
    "void": {
        "digest": lambda world, life: life.action.what in ("tampered", "seal_broken"), "lapsed": _lapsed,
        "policy": lambda world, life: life.action.operation.endswith(".moving") and "policy" in world.facts.times,
        "reviewer": _someone_left, "pin": _record_moved, "withdrawn": _taken_back, "superseded": _taken_back,
    },
    "dead": {
        "tries_exhausted": _exhausted, "earlier_effect": _done_before, "quarantined": _nobody_came_back,
        "credential_refused": _no_credential,
    },
}  # fmt: skip
_TRUE_OF_ALL: Mapping[str, Reason] = {"refused": _refused, "cancelled": _taken_back}


def wished_away(world: World, life: Life) -> Any:
    """Since when somebody wants its run to stop; None when nobody does."""
    run_id = life.command["run_id"] if life.command else None
    runs = (run["cancel_requested_at"] for run in world.facts.runs if run["id"] == run_id)
    return next(runs, None)


def on_same_order(world: World, life: Life) -> list[Life]:
    order = life.action.arguments["order"]
    return [other for other in world.lives if other is not life and other.action.arguments["order"] == order]


def carried_over(world: World) -> Iterator[Violation]:
    """I3: with its command the action has ended for its proposal, its run and whoever waits for it."""
    runs = {run["id"]: run for run in world.facts.runs}
    asked = {packet.get("run_id") for packet in world.facts.packets if packet["status"] in OPEN_PACKETS}
    for life in world.lives:
        command, proposal = life.command, life.proposal
        if command is None or proposal is None or command["status"] not in FINAL:
            continue
        if proposal["status"] in ("approved", "pending"):
            yield Violation("not_carried_over", "I3", f"{life}: its proposal is still {proposal['status']}")
        if (run := runs.get(command.get("run_id"))) is not None:
            yield from _run_follows(life, command, run, asked)


def _run_follows(life: Life, command: Row, run: Row, asked: set[Any]) -> Iterator[Violation]:
    over = ("completed", "failed", "cancelled")
    done = run["status"] == "completed" if command["status"] == "confirmed" else run["status"] in over
    waits_for_people = run["status"] == "waiting_for_approval" or run["id"] in asked
    if not done and (command["status"] == "confirmed" or not waits_for_people):
        yield Violation("not_carried_over", "I3", f"{life}: its run is {run['status']}, and nobody is asked")


CHECKS: list[Check] = [for_a_reason, carried_over]
