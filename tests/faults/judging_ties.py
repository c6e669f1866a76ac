"""What belongs together: answers and commands, events and rows, words and people, tries and pauses, tenants."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests.faults.facts import Row
from tests.faults.flows import OPERATIONS
from tests.faults.judging_ends import on_same_order, wished_away
from tests.faults.judging_states import LATE
from tests.faults.oracle import FINAL, Check, Life, Violation, World

SHORTEST_PAUSE = timedelta(seconds=0.19)
"""After *not now*; what the harness's processes wait is a hundredth more."""
KEY_REUSED = "idempotency_key_reused"
IN_FLIGHT = ("claimed", "sent", "unknown")


def references(world: World) -> Iterator[Violation]:
    """I5: what is called done names the effect that the provider booked for this very action, and no other."""
    for life in world.lives:
        if life.command is None or life.command["status"] != "confirmed" or not life.effects:
            continue
        booked = {row.get("ref") for row in life.arrivals if row["effect"]}
        named = life.command.get("provider_reference")
        if named is not None and None not in booked and named not in booked:
            yield Violation(
                "wrong_reference", "I5", f"{life}: names {named}, the provider has {sorted(booked)}"
            )


def tenants(world: World) -> Iterator[Violation]:
    """I24: nothing of this tenant was asked for in another one's name."""
    keys = {life.proposal["idempotency_key"]: life for life in world.lives if life.proposal}
    for row in world.facts.elsewhere:
        if row["key"] in keys:
            yield Violation(
                "other_tenant", "I24", f"{keys[row['key']]}: arrived in the name of {row['tenant']}"
            )


def wishes(world: World) -> Iterator[Violation]:
    """Once somebody wants a run to stop, nothing of it is newly sent."""
    for life in world.lives:
        wished = wished_away(world, life)
        for send in life.sends() if wished is not None else ():
            if send["at"] > wished + LATE:
                yield Violation("unapproved", "CANCEL", f"{life}: sent {send['at'] - wished} after the wish")


def words(world: World) -> Iterator[Violation]:
    """I29: what people settle is said by as many as it takes, and *no* only once it can be known."""
    for life in world.lives:
        command = life.command
        said = [word for word in world.facts.attestations if command and word["command_id"] == command["id"]]
        if command is not None and command.get("settled_by") == "person" and command["status"] == "confirmed":
            yield from _enough(life, [word for word in said if word["says"] != "did_not_happen"])
        for event in life.moves:
            if (
                event["from_state"] == "unknown"
                and event["to_state"] != "confirmed"
                and event["owner"] == "person"
            ):
                yield from _settled(life, event, said)


def _settled(life: Life, event: Row, said: list[Row]) -> Iterator[Violation]:
    operation = OPERATIONS[life.action.operation]
    sent = max(
        attempt["sent_at"] for attempt in life.attempts
        if attempt["sent_at"] and attempt["sent_at"] <= event["at"]
    )  # fmt: skip
    if event["to_state"] != "sent" and event["at"] < sent + operation.call_deadline + operation.settle_time:
        yield Violation("hearsay", "I29", f"{life}: said not to have happened while it still could")
    noes = [word for word in said if word["says"] == "did_not_happen" and word["at"] <= event["at"]]
    yield from _enough(life, noes)


def _enough(life: Life, said: list[Row]) -> Iterator[Violation]:
    limit = OPERATIONS[life.action.operation].second_person_from
    needed = 2 if limit is not None and Decimal(life.action.arguments["amount"]) >= limit else 1
    people = {word["person"] for word in said if not word["replaced_at"]}
    if len(people) < needed:
        yield Violation("hearsay", "I29", f"{life}: settled by the word of {len(people)} of {needed} people")


def caps(world: World) -> Iterator[Violation]:
    """No more tries than the operation allows, and after *not now* not at once again."""
    for life in world.lives:
        most = OPERATIONS[life.action.operation].max_tries
        if len(life.sends()) > most:
            yield Violation(
                "over_the_cap", "TRIES", f"{life}: sent {len(life.sends())} times, {most} are allowed"
            )
        for earlier, later in zip(life.attempts, life.attempts[1:], strict=False):
            soon = _too_soon(earlier, later, world.facts.times.get("not_before"))
            if soon:
                yield Violation("over_the_cap", "TRIES", f"{life}: sent again {soon} after *not now*")


def _too_soon(earlier: Row, later: Row, not_before: Any) -> timedelta | None:
    if earlier["http_status"] != 429 or not later["sent_at"] or earlier.get("late_evidence"):
        return None
    pause: timedelta = later["sent_at"] - earlier["ended_at"]
    early = not_before is not None and later["sent_at"] < not_before
    return pause if pause < SHORTEST_PAUSE or early else None


def order(world: World) -> Iterator[Violation]:
    """Of one record one change at a time, and none that is older than what has been done to it."""
    place = {proposal["id"]: number for number, proposal in enumerate(world.facts.proposals)}
    for life in world.lives:
        for other in on_same_order(world, life):
            for send in life.sends():
                yield from _in_order(life, other, send, place)


def _in_order(life: Life, other: Life, send: Row, place: dict[Any, int]) -> Iterator[Violation]:
    done = [row["effect_at"] for row in other.arrivals if row["effect"] and row.get("effect_at")]
    known = other.command is not None and other.command["status"] in FINAL
    newer = place.get(other.action.proposal_id, 0) > place.get(life.action.proposal_id, 0)
    if newer and known and any(at < send["at"] for at in done):
        yield Violation(
            "out_of_order", "ORDER", f"{life}: sent after a newer change of the same order, {other}"
        )
    if other.state_at(send["committed_at"]) in IN_FLIGHT:
        yield Violation(
            "out_of_order", "ORDER", f"{life}: sent while {other} was under way on the same order"
        )


def leases(world: World) -> Iterator[Violation]:
    """I8: nobody's call is taken away before its time is over."""
    for life in world.lives:
        lease = 2 * OPERATIONS[life.action.operation].call_deadline
        for attempt in life.attempts:
            if attempt["outcome"] == "lease_over" and attempt["sent_at"]:
                had = attempt["ended_at"] - attempt["sent_at"]
                if had < lease:
                    yield Violation("fencing", "I8", f"{life}: taken away after {had} of {lease}")


def circuits(world: World) -> Iterator[Violation]:
    """While a provider's circuit is open nothing is newly sent to it."""
    for start, end in _open_times(world):
        for life in world.lives:
            for send in life.sends():
                if start + LATE < send["at"] and (end is None or send["at"] < end):
                    yield Violation("unapproved", "FREEZE", f"{life}: newly sent while the circuit was open")


def keys_reused(world: World) -> Iterator[Violation]:
    """I7: a provider that knows our key with other parameters gets nothing more until a person has looked."""
    looked = [
        event["at"] for event in world.facts.events
        if event["kind"] == "hold.lifting" and event["owner"] == "person"
    ]  # fmt: skip
    for life in world.lives:
        for attempt in life.attempts:
            if not _says_reused(life, attempt):
                continue
            at = attempt["ended_at"]
            if life.state_at(at + LATE) not in ("unknown", "sent"):
                yield Violation("other_keys", "I7", f"{life}: settled by an answer to another request")
            for other in world.lives:
                for send in other.sends():
                    if send["at"] > at + LATE and not any(at < look < send["at"] for look in looked):
                        yield Violation(
                            "other_keys", "I7", f"{other}: sent though keys are not what we believe"
                        )


def _says_reused(life: Life, attempt: Row) -> bool:
    refused = attempt["outcome"] == "refused" and (life.command or {}).get("failure_code") == KEY_REUSED
    return refused or attempt["outcome"] == "key_reused"


def _open_times(world: World) -> Iterator[tuple[Any, Any]]:
    """From when until when each circuit was open, and nothing was on trial."""
    began: dict[Any, Any] = {}
    for event in world.facts.events:
        if event["subject_type"] != "hold" or not event["to_state"]:
            continue
        subject = event["subject_id"]
        if subject in began:
            yield began.pop(subject), event["at"]
        if event["to_state"] == "in_force" and event["body"].get("reason") == "circuit":
            began[subject] = event["committed_at"]
    yield from ((start, None) for start in began.values())


def written_together(world: World) -> Iterator[Violation]:
    """I21: the last change of a row and its event were written by one transaction, and tell of one contract."""
    facts = world.facts
    digests = {proposal["id"]: proposal["digest"] for proposal in facts.proposals}
    tables = (
        ("command", facts.commands), ("proposal", facts.proposals), ("run", facts.runs), ("step", facts.steps),
    )  # fmt: skip
    for thing, rows in tables:
        for row in rows:
            events = [
                event for event in world.events_of.get(row["id"], ())
                if event["subject_type"] == thing and event["to_state"]
            ]  # fmt: skip
            ended = thing == "command" and row["status"] in FINAL
            if ended and "row_xid" in row and events and row["row_xid"] != events[-1]["xid"] % 2**32:
                yield Violation(
                    "log_gaps", "I21", f"{thing} {row['id']}: its last event was written apart from it"
                )
            approved = digests.get(row.get("proposal_id") or row["id"])
            for event in events if thing in ("command", "proposal") else ():
                if event.get("digest") and event["digest"] != approved:
                    yield Violation(
                        "log_gaps", "I14", f"{thing} {row['id']}: {event['kind']} of another digest"
                    )


CHECKS: list[Check] = [
    references, tenants, wishes, words, caps, order, leases, circuits, keys_reused, written_together,
]  # fmt: skip
