"""The history: each change of state has exactly one event, and replaying them gives the tables."""

from collections.abc import Iterator, Sequence

from audit.replayed import BEGINS, OTHER_STATES, fits
from tests.faults.facts import Row
from tests.faults.oracle import Check, Violation, World


def replay(events: Sequence[Row]) -> tuple[str | None, list[str]]:
    """The state that the events of one subject lead to, and where one does not follow from the one before it."""
    state: str | None = None
    gaps = []
    for event in events:
        if not event["to_state"] or event["kind"] in OTHER_STATES:
            continue
        if state is not None and event["from_state"] != state:
            gaps.append(f"{event['kind']} comes from {event['from_state'] or 'nothing'}, after {state}")
        state = event["to_state"]
    return state, gaps


def log_is_whole(world: World) -> Iterator[Violation]:
    """I21 and I23, for commands, proposals, runs and steps."""
    facts = world.facts
    tables = (
        ("command", facts.commands), ("proposal", facts.proposals), ("run", facts.runs), ("step", facts.steps),
    )  # fmt: skip
    for thing, rows in tables:
        for row in rows:
            events = [event for event in world.events_of.get(row["id"], ()) if event["subject_type"] == thing]
            state, gaps = replay(events)
            for gap in gaps:
                yield Violation("log_gaps", "I21", f"{thing} {row['id']}: {gap}")
            if not fits(row["status"], state, BEGINS[thing]):
                yield Violation(
                    "projection_diff", "I23", f"{thing} {row['id']}: {row['status']}, the log says {state}"
                )


def counted(world: World) -> Iterator[Violation]:
    """I21: every move of a command counts its version up, and so do its events."""
    for command in world.facts.commands:
        events = [event for event in world.events_of.get(command["id"], ()) if event["to_state"]]
        if len(events) != command["state_version"]:
            said = f"{len(events)} events, {command['state_version']} versions"
            yield Violation("log_gaps", "I21", f"command {command['id']}: {said}")


def chained(world: World) -> Iterator[Violation]:
    """I22, by the product's own verifier."""
    if not world.facts.chains_hold:
        yield Violation("chain_broken", "I22", world.facts.chains_say)


CHECKS: list[Check] = [log_is_whole, counted, chained]
