"""What the runs of an incident have in common, as typed fields: read from an address, kept as JSON, said in words."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from common.display import visible
from repair.tables import cause_words

USUAL: Final = timedelta(days=7)
LONGEST: Final = timedelta(days=90)
LABELS: Final[Mapping[str, str]] = {
    "workflow": "Workflow", "workflow_version": "Version of the workflow", "policy": "Policy",
    "policy_version": "Version of the policy", "model": "Model", "prompt": "Prompt", "provider": "Provider",
    "operation": "Operation", "operation_version": "Version of the operation", "target": "Target",
    "outcome": "Outcome or state", "cause": "Stopped because",
}  # fmt: skip
NUMBERS: Final = ("workflow_version", "policy_version", "operation_version")
OF_A_FREEZE: Final = ("workflow", "workflow_version", "operation", "target")
"""What a freeze can name by itself; all else needs the very runs."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """All that is given must hold. A run began from ``since`` until ``until``; without that until now, and on."""

    since: datetime
    until: datetime | None = None
    workflow: str = ""
    workflow_version: int | None = None
    policy: str = ""
    policy_version: int | None = None
    model: str = ""
    prompt: str = ""
    provider: str = ""
    operation: str = ""
    operation_version: int | None = None
    target: str = ""
    outcome: str = ""
    cause: str = ""
    """Of a packet of the run."""

    @property
    def named(self) -> dict[str, Any]:
        """Everything that is given beside the time, by field."""
        return {name: value for name in LABELS if (value := getattr(self, name)) not in ("", None)}

    @property
    def is_a_scope(self) -> bool:
        """Whether a freeze can name all of it, but for the time."""
        return bool(self.named) and set(self.named) <= set(OF_A_FREEZE)

    def as_json(self) -> dict[str, Any]:
        times = {"since": _text(self.since), "until": _text(self.until) if self.until else None}
        return {**times, **self.named}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Criteria":
        known = {field.name for field in fields(cls)}
        kept: dict[str, Any] = {
            name: value for name, value in stored.items() if name in known and value is not None
        }
        kept |= {name: datetime.fromisoformat(kept[name]) for name in ("since", "until") if name in kept}
        return cls(**kept)

    def words(self) -> list[tuple[str, str]]:
        """(label, value) of all that is given, the time last."""
        shown = [(LABELS[name], _said(name, value)) for name, value in self.named.items()]
        until = f"{self.until:%Y-%m-%d %H:%M} UTC" if self.until else "now, and what comes"
        return [*shown, ("Began", f"{self.since:%Y-%m-%d %H:%M} UTC until {until}")]

    def address(self, page: str = "repair:new_incident") -> str:
        """The page of all this, to be shared."""
        named = {name: value for name, value in asdict(self).items() if name in self.named}
        times = {"since": f"{self.since:%Y-%m-%dT%H:%M:%S}"}
        if self.until:
            times["until"] = f"{self.until:%Y-%m-%dT%H:%M:%S}"
        return reverse(page) + "?" + urlencode(named | times)

    def at(self, now: datetime) -> datetime:
        """The end of the time, as of now."""
        return min(self.until, now) if self.until else now


def alike(now: datetime, **named: Any) -> str:
    """The address of the page that finds what is alike, for links from other pages."""
    return replace(Criteria(since=now - USUAL), **named).address()


def _said(name: str, value: Any) -> str:
    return cause_words(value) if name == "cause" else visible(str(value))


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
