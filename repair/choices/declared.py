"""What a choice is: its words, when it is offered, what it would do, what it needs, and the action behind it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from audit.actors import Actor
from common.clock import Clock
from repair.choices.case import Case
from repair.choices.facts import Rule
from repair.choices.forms import ChoiceForm
from repair.models import RepairPacket

Typed = Mapping[str, Any]
"""The cleaned data of a choice's form."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at just now. ``ok`` is None for what only the worker can look at, before it sends."""

    label: str
    says: str
    ok: bool | None = None

    @property
    def tone(self) -> str:
        return {True: "ok", False: "bad", None: "mute"}[self.ok]

    @property
    def icon(self) -> str:
        return {True: "check-circle", False: "x-circle", None: "pending"}[self.ok]


@dataclass(frozen=True, slots=True)
class DryRun:
    """Exactly what would change and what would be sent, and what was checked for that. Nothing of it has happened."""

    changes: tuple[str, ...]
    sends: tuple[tuple[str, str], ...] = ()
    """Label and value of all that would leave this system; personal and secret values are only said to be there."""
    sends_says: str = "Nothing leaves this system by this."
    checks: tuple[Check, ...] = ()
    until: datetime | None = None
    """Until when a late effect of an earlier request is still possible; None: none is, or nobody can tell."""
    until_says: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One next move. ``act`` runs in transactions of its own, ``inside`` in the one that moves the packet."""

    code: str
    title: str
    says: str
    icon: str
    rule: Rule
    dry_run: Callable[[Case, Typed | None], DryRun]
    form: type[ChoiceForm] = ChoiceForm
    act: "Callable[[Case, Typed, Actor, Clock], str] | None" = None
    inside: "Callable[[RepairPacket, Typed, Actor, datetime], str] | None" = None
    finish: "Callable[[RepairPacket, datetime], None] | None" = None
    """What it does to the packet itself at the end, where nothing has closed that by then."""
    needs: tuple[str, ...] = ()
    """What it takes, in words: evidence, a reason, a second person."""
    danger: bool = False
    resolves: bool = False
    """It ends the case, so the cause is asked for."""
    in_bulk: bool = False
    preview: bool = False
    """What it would do depends on what is typed: it is shown once more before it is done."""
    button: str = ""

    @property
    def word(self) -> str:
        return self.button or self.title

    def make_form(self, case: Case, data: Any = None) -> ChoiceForm:
        return self.form(case, data, asks_cause=self.resolves)


@dataclass(frozen=True, slots=True)
class Offer:
    """A choice for one case: offered, or not, and then why."""

    choice: Choice
    code: str = ""
    words: str = ""
    href: str = ""

    @property
    def offered(self) -> bool:
        return not self.code


@dataclass(frozen=True, slots=True)
class Made:
    """What somebody chose before, as a line."""

    who: str
    title: str
    at: datetime
    refused: str
    cause: str
    words: str


@dataclass(frozen=True, slots=True)
class Choices:
    """All choices of one case, for its page."""

    offered: tuple[Offer, ...]
    refused: tuple[Offer, ...]
    made: tuple[Made, ...]
    assignee: str = ""
    why_none: str = ""
    """Why nothing at all is offered to this person, where that is one reason."""
