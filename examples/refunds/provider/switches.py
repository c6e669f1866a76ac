"""How the provider misbehaves: a mode, and rules that match requests.

Kept in memory only: after a restart the provider behaves well.
"""

import random
import threading
from dataclasses import dataclass, field, fields
from typing import Any

from examples.refunds.provider.exchange import Refusal, Request

MODES = frozenset({"dedup", "lookup_only", "blind"})
"""dedup: the same key never acts twice. lookup_only: it does, but can be looked up. blind: neither."""

EFFECT_PATHS = ("/refunds", "/reversals", "/messages")

EXECUTES = {
    "delay": True,
    "accept_then_hang": True,
    "apply_late": True,
    "drop_connection": False,
    "status": False,
    "half_body": True,
    "trickle": True,
    "flood": True,
    "garbled": True,
    "other_document": True,
}
"""Every fault, and whether the request is executed unless the rule says otherwise."""


@dataclass
class Rule:
    """Which requests misbehave, and how.

    Without ``on`` it matches requests that have an effect (POST to one of `EFFECT_PATHS`); with ``on`` any
    request whose path starts so. ``next`` counts down to nothing; ``share`` picks by a generator seeded with
    ``seed``. ``seconds`` means: the delay; how late; how long a hanging connection is held; for a trickle,
    the time between two bytes.
    """

    fault: str
    seconds: float | None = None
    status: int = 503
    execute: bool | None = None
    retry_after: int | None = None
    code: str | None = None
    on: str | None = None
    method: str | None = None
    order: str | None = None
    key: str | None = None
    tenant: str | None = None
    next: int | None = None
    share: float = 1.0
    seed: int = 0
    hits: int = 0
    chance: random.Random = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311 - a repeatable choice, not a secret

    @property
    def executes(self) -> bool:
        return EXECUTES[self.fault] if self.execute is None else self.execute

    def matches(self, request: Request) -> bool:
        if self.on is None:
            right_path = request.method == "POST" and request.path in EFFECT_PATHS
        else:
            right_path = request.path.startswith(self.on)
        wanted = ((self.method, request.method), (self.key, request.key), (self.tenant, request.tenant))
        if not right_path or any(value is not None and value != found for value, found in wanted):
            return False
        return (self.order is None or self.order == _order_of(request)) and self.next != 0

    def document(self) -> dict[str, Any]:
        names = (item.name for item in fields(self) if item.name != "chance")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def _order_of(request: Request) -> str | None:
    if request.path.startswith("/orders/"):
        return request.parts[1]
    if request.method != "POST":
        return request.query.get("order")
    try:
        body = request.json()
    except Refusal:
        return None
    order = body.get("order") if isinstance(body, dict) else None
    return order if isinstance(order, str) else None


class Switches:
    """Thread-safe; the first rule that matches applies."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        self.mode = "dedup"
        self.lookup_lag_seconds = 0.0
        self.rules: list[Rule] = []

    def replace(self, wanted: Any) -> None:
        """Everything new from one document; what it leaves out goes back to normal."""
        known = {"mode", "lookup_lag_seconds", "rules"}
        if (
            not isinstance(wanted, dict)
            or not set(wanted) <= known
            or wanted.get("mode", "dedup") not in MODES
        ):
            raise Refusal(422, "invalid_switches", f"Known: {sorted(known)}, modes {sorted(MODES)}.")
        rules = [make_rule(rule) for rule in wanted.get("rules", [])]
        with self.lock:
            self.mode = wanted.get("mode", "dedup")
            self.lookup_lag_seconds = float(wanted.get("lookup_lag_seconds", 0))
            self.rules = rules

    def add(self, rule: Rule) -> None:
        with self.lock:
            self.rules.append(rule)

    def find(self, request: Request) -> Rule | None:
        if not self.rules:
            return None
        with self.lock:
            for rule in self.rules:
                if rule.matches(request) and (rule.share >= 1 or rule.chance.random() < rule.share):
                    rule.hits += 1
                    rule.next = None if rule.next is None else rule.next - 1
                    return rule
        return None

    def document(self) -> dict[str, Any]:
        with self.lock:
            rules = [rule.document() for rule in self.rules]
            return {"mode": self.mode, "lookup_lag_seconds": self.lookup_lag_seconds, "rules": rules}


def make_rule(wanted: Any) -> Rule:
    """A rule from its document; raises :class:`Refusal` for an unknown fault or field."""
    names = {item.name for item in fields(Rule) if item.init} - {"hits"}
    if not isinstance(wanted, dict) or not set(wanted) <= names or wanted.get("fault") not in EXECUTES:
        raise Refusal(422, "invalid_rule", f"Known faults: {sorted(EXECUTES)}; fields: {sorted(names)}.")
    return Rule(**wanted)
