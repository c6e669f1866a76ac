"""The oracle: what really happened, by the provider's journal, against what our tables and history say.

Pure functions over rows. Each violation names its invariant, by the list that the documentation has.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from tests.faults.facts import Facts, Row
from tests.faults.people import Action

NAMES = {
    "I1": "AT-MOST-ONCE-EFFECT",
    "I2": "NO-UNAPPROVED-EFFECT",
    "I3": "NO-LOST-APPROVAL",
    "I4": "INTENT-BEFORE-EFFECT",
    "I5": "UNKNOWN-IS-NOT-FAILED",
    "I6": "NO-BLIND-RETRY",
    "I7": "KEY-STABILITY",
    "I8": "FENCING",
    "I9": "DEADLINE",
    "I11": "ONE-DECISION",
    "I12": "QUORUM",
    "I13": "EXPIRY",
    "I14": "BINDING",
    "I15": "POLICY-FRESH",
    "I16": "REVOCATION",
    "I18": "QUEUE-LIVENESS",
    "I20": "DB-AUTHORITY",
    "I21": "AUDIT-ATOMIC",
    "I22": "AUDIT-CHAIN",
    "I23": "PROJECTION = LOG",
    "I24": "TENANT-ISOLATION",
    "I29": "OPERATOR",
    "PIN": "RECORD-AS-SEEN",
    "FREEZE": "NOTHING-SENT-WHILE-FROZEN",
    "CANCEL": "NOTHING-SENT-AFTER-A-WISH-TO-STOP",
    "ORDER": "NEWER-IS-NOT-OVERWRITTEN",
    "TRIES": "SO-MANY-AND-NO-SOONER",
}
COUNTERS = (
    "duplicates", "lost", "unapproved", "wrong_payload", "false_failed", "false_confirmed", "sent_without_intent",
    "sent_after_told", "blind_retries", "other_keys", "not_ended", "terminal_overwritten", "fencing", "late_decisions",
    "two_decisions", "below_quorum", "log_gaps", "projection_diff", "chain_broken", "poison", "unfounded",
    "not_carried_over", "wrong_reference", "other_tenant", "hearsay", "over_the_cap", "out_of_order",
)  # fmt: skip
"""All zero, or the run has failed."""
SLACK = timedelta(seconds=1.5)
"""How late a busy machine may read the first byte of a request that left in time."""
FINAL = frozenset({"confirmed", "refused", "dead", "cancelled", "void"})
NOTHING_HAPPENED = frozenset({"refused", "dead", "void", "cancelled"})


@dataclass(frozen=True)
class Violation:
    """One thing that must never be, and what shows it."""

    counter: str
    invariant: str
    detail: str

    @property
    def name(self) -> str:
        return f"{self.invariant} {NAMES[self.invariant]}"


@dataclass
class Life:
    """Everything about one action: what was asked for, its command, and what arrived for it."""

    action: Action
    proposal: Row | None = None
    command: Row | None = None
    arrivals: list[Row] = field(default_factory=list)
    attempts: list[Row] = field(default_factory=list)
    lookups: list[Row] = field(default_factory=list)
    moves: list[Row] = field(default_factory=list)
    """The command's changes of state, in the order of their commits."""

    @property
    def effects(self) -> int:
        return sum(bool(row["effect"]) for row in self.arrivals)

    def sends(self) -> list[Row]:
        return [event for event in self.moves if event["to_state"] == "sent"]

    def state_at(self, instant: datetime) -> str:
        """The command's state at that time by the history; empty before there was a command."""
        state = ""
        for event in self.moves:
            if event["committed_at"] > instant:
                break
            state = event["to_state"]
        return state

    def __str__(self) -> str:
        status = self.command["status"] if self.command else "no command"
        return f"action {self.action.number} ({self.action.what}, {status})"


@dataclass
class World:
    """The facts, put together by action."""

    facts: Facts

    @cached_property
    def lives(self) -> list[Life]:
        by_key = {row["idempotency_key"]: row["id"] for row in self.facts.proposals}
        by_body = {action.body_hash: action.proposal_id for action in self.facts.actions}
        lives = {action.proposal_id: Life(action) for action in self.facts.actions if action.proposal_id}
        for proposal in self.facts.proposals:
            if proposal["id"] in lives:
                lives[proposal["id"]].proposal = proposal
        self._add_commands(lives)
        for row in self.facts.arrivals:
            owner = self._owner(row, by_key, by_body, lives)
            (lives[owner].arrivals if owner in lives else self.strangers).append(row)
        return list(lives.values())

    strangers: list[Row] = field(default_factory=list)
    """Arrivals that belong to nothing that was asked for."""

    def _owner(
        self, row: Row, by_key: Mapping[str, Any], by_body: Mapping[str, Any], lives: Mapping[Any, Life]
    ) -> Any:
        """By what was to be sent; a key may stand for several versions of one thing, a body for one only."""
        body = by_body.get(row["body_hash"])
        key = by_key.get(row["key"])
        if body is not None and key is not None and lives[body].action.what == "twin":
            return key  # the same thing asked for twice: the key says on whose behalf
        return body if body is not None else key

    def _add_commands(self, lives: Mapping[Any, Life]) -> None:
        ids = {}
        for command in self.facts.commands:
            if (life := lives.get(command["proposal_id"])) is not None:
                life.command, ids[command["id"]] = command, life
        for rows, name in ((self.facts.attempts, "attempts"), (self.facts.lookups, "lookups")):
            for row in rows:
                if (life := ids.get(row["command_id"])) is not None:
                    getattr(life, name).append(row)
        for event in self.facts.events:
            if event["subject_type"] == "command" and event["to_state"] and event["subject_id"] in ids:
                ids[event["subject_id"]].moves.append(event)

    @cached_property
    def events_of(self) -> Mapping[Any, Sequence[Row]]:
        found: dict[Any, list[Row]] = defaultdict(list)
        for event in self.facts.events:
            found[event["subject_id"]].append(event)
        return found


Check = Callable[[World], Iterator[Violation]]


@dataclass
class Judgement:
    """What a run came to."""

    world: World
    violations: list[Violation]

    @property
    def counters(self) -> dict[str, int]:
        found = Counter(violation.counter for violation in self.violations)
        return {name: found.get(name, 0) for name in COUNTERS}

    @property
    def names(self) -> list[str]:
        """The invariants that do not hold, each once, in their order."""
        return sorted({violation.name for violation in self.violations}, key=_number)

    @property
    def ends(self) -> Counter[str]:
        return Counter(_end(life) for life in self.world.lives)

    @property
    def effects(self) -> int:
        return sum(bool(row["effect"]) for row in self.world.facts.arrivals)


def judge(facts: Facts) -> Judgement:
    """Every check over every row."""
    from tests.faults import judging_effects, judging_ends, judging_records, judging_states, judging_ties

    world = World(facts)
    modules = (judging_effects, judging_states, judging_records, judging_ends, judging_ties)
    checks: list[Check] = [check for module in modules for check in module.CHECKS]
    return Judgement(world, [violation for check in checks for violation in check(world)])


def _number(name: str) -> tuple[int, str]:
    digits = "".join(filter(str.isdigit, name.split(maxsplit=1)[0]))
    return (int(digits) if digits else 99, name)


def _end(life: Life) -> str:
    if life.command is not None:
        reason = life.command["void_reason"] or life.command["hold_reason"]
        return life.command["status"] + (f"({reason})" if reason else "")
    return f"proposal {life.proposal['status']}" if life.proposal else "not proposed"
