"""What reached the provider: how often, what exactly, and whether it was allowed to at that time."""

from collections import defaultdict
from collections.abc import Iterator

from tests.faults.flows import FORGETS_AFTER
from tests.faults.oracle import FINAL, NOTHING_HAPPENED, SLACK, Check, Life, Violation, World

FREED = ("ready", "retry_wait", "held")
"""Where a command is once its try is known to have had no effect; *held*, where something else keeps it waiting."""

MUST_NOT_RUN = frozenset({
    "pending", "one_vote", "one_person", "rejected", "expired", "lapsed", "revoked", "tampered", "seal_broken",
    "withdrawn", "role_lost", "old_policy", "old_pin", "superseded",
})  # fmt: skip
"""Set up before any worker ran: nothing of these may ever arrive."""


def once(world: World) -> Iterator[Violation]:
    """I1, also where the same thing was asked for twice."""
    same_thing: dict[str, int] = defaultdict(int)
    for life in world.lives:
        for _ in range(1, life.effects):
            yield Violation("duplicates", "I1", f"{life}: {life.effects} effects")
        if life.effects and life.proposal:
            same_thing[life.proposal["business_key"]] += 1
    for key, count in same_thing.items():
        for _ in range(1, count):
            yield Violation("duplicates", "I1", f"{count} actions of the same thing took effect: {key}")


def approved(world: World) -> Iterator[Violation]:
    """I2: the kinds that must not run, and arrivals that nobody ever asked for."""
    for life in world.lives:
        if life.action.what in MUST_NOT_RUN and life.arrivals:
            invariant = {
                "revoked": "I16", "old_policy": "I15", "tampered": "I14", "seal_broken": "I14", "old_pin": "PIN",
                "expired": "I13", "lapsed": "I13", "one_vote": "I12",
                "one_person": "I12", "role_lost": "I16",
            }.get(life.action.what, "I2")  # fmt: skip
            yield Violation("unapproved", invariant, f"{life}: {len(life.arrivals)} arrivals")
            if invariant != "I2":
                yield Violation("unapproved", "I2", f"{life}: sent all the same")
    for row in world.strangers:
        yield Violation("unapproved", "I2", f"an arrival that nobody asked for: {row['key'][:12]}…")


def as_read(world: World) -> Iterator[Violation]:
    """PIN: nothing is sent on the word of what was read before the record changed."""
    changed = world.facts.times.get("record")
    for life in world.lives:
        if changed is not None and life.action.what == "pinning":
            for send in life.sends():
                if send["at"] > changed + world.facts.call_deadline:
                    yield Violation("unapproved", "PIN", f"{life}: sent though its record had changed")


def payload(world: World) -> Iterator[Violation]:
    """I14: the bytes that arrived are those of the approved arguments, computed outside the product."""
    for life in world.lives:
        for row in life.arrivals:
            whole = row.get("fault") != "incomplete_request"
            if whole and row["body_hash"] != life.action.body_hash:
                yield Violation("wrong_payload", "I14", f"{life}: other bytes than were approved")


def keys(world: World) -> Iterator[Violation]:
    """I7: one key for one command, however often it is tried."""
    for life in world.lives:
        expected = life.proposal["idempotency_key"] if life.proposal else ""
        for key in {row["key"] for row in life.arrivals} - {expected}:
            yield Violation("other_keys", "I7", f"{life}: arrived under another key, {key[:12]}…")


def called(world: World) -> Iterator[Violation]:
    """I5: what is called failed did not happen, what is called done did."""
    for life in world.lives:
        if life.command is None:
            continue
        status, effect = life.command["status"], life.command["effect"]
        if status in NOTHING_HAPPENED and effect == "none" and life.effects:
            yield Violation("false_failed", "I5", f"{life}: called failed, and it happened")
        if status == "confirmed" and not life.effects:
            yield Violation("false_confirmed", "I5", f"{life}: called done, and nothing happened")


def intent(world: World) -> Iterator[Violation]:
    """I4: the *sent* event was committed before the first byte arrived, and an attempt says so."""
    for life in world.lives:
        commits = [event["committed_at"] for event in life.sends()]
        tried = sum(attempt["sent_at"] is not None for attempt in life.attempts)
        for row in life.arrivals:
            if not any(commit <= row["first_byte_at"] for commit in commits):
                yield Violation("sent_without_intent", "I4", f"{life}: arrived before any commit of sent")
        if len(life.arrivals) > max(tried, len(commits)):
            yield Violation(
                "sent_without_intent", "I4", f"{life}: more arrivals than attempts that were sent"
            )
            if not tried:
                yield Violation("sent_without_intent", "I20", f"{life}: sent without any claim")


def deadlines(world: World) -> Iterator[Violation]:
    """I9, and nothing arrives after somebody was told that it cannot."""
    for life in world.lives:
        for row in life.arrivals:
            at = row["first_byte_at"]
            before = [event["committed_at"] for event in life.sends() if event["committed_at"] <= at]
            in_time = bool(before) and at <= before[-1] + world.facts.call_deadline + SLACK
            if before and not in_time:
                yield Violation("sent_after_told", "I9", f"{life}: arrived {at - before[-1]} after sent")
            state = life.state_at(at)
            if state in FINAL | {"held"}:
                yield Violation("sent_after_told", "I9", f"{life}: arrived while {state}")


def retries(world: World) -> Iterator[Violation]:
    """I6: between two arrivals somebody found out that nothing had happened, or the key made it harmless."""
    for life in world.lives:
        for earlier, later in zip(life.arrivals, life.arrivals[1:], strict=False):
            if not _settled_between(world, life, earlier, later):
                yield Violation("blind_retries", "I6", f"{life}: sent again without knowing")
        for event in life.moves:
            if event["from_state"] in ("sent", "unknown") and event["to_state"] in FREED:
                before = [row for row in life.arrivals if row["first_byte_at"] < event["committed_at"]]
                if any(row["effect"] for row in before):
                    yield Violation("blind_retries", "I6", f"{life}: freed although it had happened or would")


def _settled_between(world: World, life: Life, earlier: object, later: object) -> bool:
    first, second = earlier["first_byte_at"], later["first_byte_at"]  # type: ignore[index]
    freed = [
        event for event in life.moves
        if event["from_state"] in ("sent", "unknown") and event["to_state"] in FREED
        and first <= event["committed_at"] <= second
    ]  # fmt: skip
    if freed:
        return all(_has_a_reason(world, life, event) for event in freed)
    forgets = life.action.operation.endswith(".forgetful")
    retention = FORGETS_AFTER if forgets else world.facts.key_retention
    same_key = earlier["key"] == later["key"]  # type: ignore[index]
    return retention is not None and same_key and second - life.arrivals[0]["first_byte_at"] <= retention


def _has_a_reason(world: World, life: Life, event: object) -> bool:
    """A definite *no* of the provider to that very request, a look-up after the settle time, or a person."""
    at = event["committed_at"]  # type: ignore[index]
    sent = [
        attempt["sent_at"] for attempt in life.attempts if attempt["sent_at"] and attempt["sent_at"] <= at
    ]
    no = ("not_executed", "not_sent", "came_too_late")
    definite = any(
        attempt["outcome"] in no and attempt["http_status"] in (429, 401, 403, None)
        for attempt in life.attempts if attempt["sent_at"] and attempt["sent_at"] <= at
    )  # fmt: skip
    settled_from = (sent[-1] if sent else at) + world.facts.call_deadline + world.facts.settle_time
    looked = any(
        row["finding"] == "not_found" and settled_from <= row["asked_at"] <= at for row in life.lookups
    )
    late = any(attempt["late_evidence"] for attempt in life.attempts)
    by_a_person = event["owner"] == "person"  # type: ignore[index]
    return definite or looked or late or by_a_person


CHECKS: list[Check] = [once, approved, as_read, payload, keys, called, intent, deadlines, retries]
