"""What a choice is offered by: plain facts about a packet, its step and its order. Pure rules say why not."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from workflows.following import EffectFacts

NO_EFFECT: Final = EffectFacts(happened=False)


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """The order (command) that a packet is about. Times are the database's."""

    status: str
    failure_code: str = ""
    void_reason: str = ""
    known: bool = True
    """Whether the code here knows this version of the operation."""
    can_look_up: bool = True
    """Whether the provider can be asked what became of it."""
    asked_soon: bool = False
    """It is due for a look-up already."""
    lands_until: datetime | None = None
    """Until when its last request may still take effect; from then on *not found* counts. None: nothing was sent."""
    key_until: datetime | None = None
    """Until when one more request could end while the provider still knows its key. None: it knows none."""
    tries_left: bool = True
    held_by: str = ""
    """``freeze`` or ``circuit``, where one is in force over it."""
    failed_check: str = ""
    """The first reason for which its approval no longer holds: lapsed, policy, reviewer, digest."""
    may_ask_again: bool = False
    """Whether the table of endings offers it for how this one ended."""
    said_late: bool = False
    """A late answer says that it happened, after it had ended otherwise."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the rules ask for. ``proposal`` is the status of the step's last one; empty: it never had one."""

    now: datetime
    may_repair: bool
    """Operator, workflow owner or admin."""
    packet: str
    cause: str
    cause_said: bool = False
    mine: bool = False
    assigned: bool = False
    own_side: bool = False
    """This person asked for the action, or is behind the automation that did."""
    run: str = ""
    cancel_wished: bool = False
    step: str = ""
    waiting_for: str = ""
    asks: bool = False
    """The step has asked for data, and what it asked for is still there."""
    wait_over: bool = False
    proposal: str = ""
    decided: bool = False
    editable: tuple[str, ...] = ()
    record: bool = False
    """What was proposed rests on a record that the code here knows how to read."""
    order: OrderFacts | None = None
    lessons: frozenset[str] = frozenset()
    """The codes of what this case was marked as, to be learned from."""
    effect: EffectFacts = NO_EFFECT
    """What has happened, of the order, or else the run's last effect that nothing has taken back."""


class Why(NamedTuple):
    """Why a choice is not offered: a stable code, and a sentence for people."""

    code: str
    words: str


Rule = Callable[[Facts], Why | None]


def first(*rules: Rule) -> Rule:
    """The first of these that says why not."""

    def rule(facts: Facts) -> Why | None:
        return next((why for one in rules if (why := one(facts)) is not None), None)

    return rule
