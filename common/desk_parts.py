"""Small values that views hand to the components of the desk: no domain words, only what is shown."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from common.states_ui import Tone


@dataclass(frozen=True, slots=True)
class TrackStep:
    """One step of a life: ``done``, ``now``, ``lost`` (outcome unknown), ``bad``, or not reached ("")."""

    word: str
    note: str
    icon: str = "pending"
    state: Literal["done", "now", "lost", "bad", ""] = ""
    at: datetime | None = None
    href: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Leader:
    """One line of a checklist: a question, and its answer at the end of the dots."""

    text: str
    answer: str
    tone: Tone
    icon: str
