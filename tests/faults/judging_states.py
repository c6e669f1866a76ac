"""What became of each action, who moved it, and whether every decision and every send was in time."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from tests.faults.facts import Row
from tests.faults.oracle import FINAL, Check, Life, Violation, World

LATE = timedelta(seconds=0.35)
"""Between the clock that a transaction reads after its last lock and its event; a wait for a lock is longer."""
OPEN_PACKETS = ("open", "in_progress", "awaiting_second")
DECIDED = ("proposal.approved", "proposal.rejected", "proposal.changes_requested", "proposal.expired")
MOST_CLAIMS_IN_A_ROW = 6


def ended(world: World) -> Iterator[Violation]:
    """I3: each approved action ended, or a person is being asked about it."""
    asked = {packet["command_id"] for packet in world.facts.packets if packet["status"] in OPEN_PACKETS}
    for life in world.lives:
        was_approved = any(event["kind"] == "proposal.approved" for event in _events(world, life))
        if was_approved and life.command is None:
            yield Violation("lost", "I3", f"{life}: approved, and no command")
        if life.command is None or life.command["status"] in FINAL:
            continue
        nobody_can_tell = world.facts.kind == "blind" or life.action.operation.endswith(".forgetful")
        nobody_can_tell = nobody_can_tell or life.command["failure_code"] == "key_reused"
        may_wait = nobody_can_tell and life.command["status"] == "unknown"
        if not (may_wait and life.command["id"] in asked):
            yield Violation("not_ended", "I3", f"{life}: still {life.command['status']}")


def fenced(world: World) -> Iterator[Violation]:
    """I8: what has ended stays so, and only the holder of the newest try moves a command on."""
    for life in world.lives:
        ends = [event for event in life.moves if event["to_state"] in FINAL]
        for event in ends[1:]:
            yield Violation("terminal_overwritten", "I8", f"{life}: ended again as {event['to_state']}")
        if ends and life.moves[-1] is not ends[0] and len(ends) == 1:
            yield Violation("terminal_overwritten", "I8", f"{life}: moved on after its end")
        if ends and life.command and life.command["status"] != ends[0]["to_state"]:
            yield Violation("terminal_overwritten", "I8", f"{life}: ended as {ends[0]['to_state']} before")
        yield from _moved_by_holders(life)


def _moved_by_holders(life: Life) -> Iterator[Violation]:
    holder = None
    for event in life.moves:
        by = event["performed_by"]
        if event["to_state"] == "claimed":
            holder = by
        elif event["from_state"] in ("claimed", "sent") and by.startswith("worker:") and by != holder:
            yield Violation("fencing", "I8", f"{life}: {event['kind']} by {by}, while {holder} had it")


def in_time(world: World) -> Iterator[Violation]:
    """I13: nothing is approved after decide-by, nothing sent after execute-by."""
    for life in world.lives:
        proposal = life.proposal
        if proposal is None:
            continue
        for event in _events(world, life):
            if event["kind"] == "proposal.approved" and event["at"] > proposal["decide_by"] + LATE:
                late = event["at"] - proposal["decide_by"]
                yield Violation("late_decisions", "I13", f"{life}: approved {late} after decide-by")
        for send in life.sends():
            over = proposal["execute_by"] is not None and send["at"] > proposal["execute_by"] + LATE
            if over and _arrived_after(life, send):
                yield Violation(
                    "late_decisions", "I13", f"{life}: sent {send['at'] - proposal['execute_by']} late"
                )


def _arrived_after(life: Life, send: Row) -> bool:
    return any(row["first_byte_at"] >= send["at"] for row in life.arrivals)


def still_allowed(world: World) -> Iterator[Violation]:
    """I2, I15, I16: when *sent* committed the approval stood, its policy was current and its people were there.

    All of these take a lock that conflicts with the send's, so the events' times give their order.
    """
    gone = gone_since(world)
    published = world.facts.times.get("policy")
    for life in world.lives:
        for send in life.sends():
            at = send["at"]
            if not _stands(world, life, at):
                yield Violation("unapproved", "I2", f"{life}: sent while its approval did not stand")
            lost = [user for user in life.action.approvers if user in gone and gone[user] < at]
            if lost and _left_standing(world, life, lost) < (life.proposal or {}).get("needed", 1):
                yield Violation("unapproved", "I16", f"{life}: sent after its reviewer was deactivated")
            if published is not None and life.action.operation.endswith(".moving") and at > published:
                yield Violation("unapproved", "I15", f"{life}: sent under a policy that was replaced")
            if _frozen_at(world, at):
                yield Violation("unapproved", "FREEZE", f"{life}: newly sent while everything was frozen")


def gone_since(world: World) -> dict[Any, Any]:
    """Who may not approve any more, and since when: people who left, or lost the role."""
    return {
        event["subject_id"]: event["at"] for event in world.facts.events
        if event["kind"] in ("user.deactivated", "membership.deactivated")
        or (event["kind"] == "membership.roles_set" and "reviewer" not in event["body"]["after"])
    }  # fmt: skip


def _stands(world: World, life: Life, at: Any) -> bool:
    state = "pending"
    for event in _events(world, life):
        if event["to_state"] and event["at"] <= at:
            state = event["to_state"]
    return state == "approved"


def _left_standing(world: World, life: Life, lost: list[Any]) -> int:
    votes = [
        vote for vote in world.facts.decisions
        if vote["proposal_id"] == life.action.proposal_id and vote["kind"] == "approve" and not vote["replaced_at"]
    ]  # fmt: skip
    return sum(vote["user_id"] not in lost for vote in votes)


def _frozen_at(world: World, at: Any) -> bool:
    pulled, lifted = world.facts.times.get("frozen"), world.facts.times.get("lifted")
    return pulled is not None and at > pulled and (lifted is None or at < lifted)


def decided_once(world: World) -> Iterator[Violation]:
    """I11: one end for each proposal, and at most one command."""
    commands = Counter(command["proposal_id"] for command in world.facts.commands)
    for life in world.lives:
        decided = [event["kind"] for event in _events(world, life) if event["kind"] in DECIDED]
        if len(decided) > 1 and decided != ["proposal.changes_requested", "proposal.expired"]:
            kinds = ", ".join(decided)
            yield Violation("two_decisions", "I11", f"{life}: {kinds}")
        if commands[life.action.proposal_id] > 1:
            yield Violation("two_decisions", "I11", f"{life}: more than one command")


def quorum(world: World) -> Iterator[Violation]:
    """I12: what was sent was approved by as many distinct people as it needs, on these very digests."""
    for life in world.lives:
        proposal = life.proposal
        if proposal is None or not life.arrivals:
            continue
        people = {
            vote.get("person") or vote["user_id"] for vote in world.facts.decisions
            if vote["proposal_id"] == proposal["id"] and vote["kind"] == "approve"
            and vote["digest"] == life.action.digest and vote["user_id"] not in proposal["excluded_users"]
        }  # fmt: skip
        if len(people) < proposal["needed"]:
            yield Violation("below_quorum", "I12", f"{life}: {len(people)} of {proposal['needed']} people")


def poison(world: World) -> Iterator[Violation]:
    """I18: what no worker comes back from is set aside after a few claims."""
    for life in world.lives:
        lost = 0
        for attempt in life.attempts:
            lost = lost + 1 if attempt["outcome"] == "lease_over" and attempt["sent_at"] is None else 0
            if lost > MOST_CLAIMS_IN_A_ROW:
                yield Violation("poison", "I18", f"{life}: claimed {lost} times without an end")
                break


def _events(world: World, life: Life) -> list[Row]:
    return [
        event
        for event in world.events_of.get(life.action.proposal_id, ())
        if event["kind"] != "proposal.vote"
    ]


CHECKS: list[Check] = [ended, fenced, in_time, still_allowed, decided_once, quorum, poison]
