"""Who did it: every action takes one `Actor`, and every audit event records it whole."""

from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import TextChoices

INSTALLATION = UUID(int=0)
"""The chain of what belongs to no tenant, such as a failed sign-in under an unknown name."""


class Via(TextChoices):
    """By which way the actor came."""

    SESSION = "session"
    TOKEN = "token"  # noqa: S105
    LINK = "link"
    WORKER = "worker"
    CLOCK = "clock"
    RULE = "rule"
    COMMAND_LINE = "command_line"


class Owner(TextChoices):
    """What kind of authority owns a transition (design, section 4)."""

    PERSON = "person"
    WORKER = "worker"
    RULE = "rule"
    CLOCK = "clock"
    AUTOMATION = "automation"


@dataclass(frozen=True, slots=True)
class Actor:
    """``performed_by`` and ``on_behalf_of`` are ``kind:id`` words such as ``user:<uuid>``, ``api:intake``,
    ``worker:<host>-<pid>``, ``rule:refund.limit@7``, ``clock:sweep``; never a display name."""

    performed_by: str
    via: Via
    owner: Owner
    on_behalf_of: str = ""
    request_id: str = ""
    user_id: UUID | None = field(default=None)
    """The person at the keyboard, where there is one; decisions need it."""
    through: str = ""
    """Which one it was of what ``via`` names, as a ``kind:id`` word: ``token:<uuid>``, ``session:<handle>``,
    ``endpoint:<uuid>``. Never the secret itself, nor anything that would let somebody in. Empty where ``performed_by``
    says it already, as for workers, rules and the clock."""


def clock_actor(name: str = "sweep") -> Actor:
    return Actor(performed_by=f"clock:{name}", via=Via.CLOCK, owner=Owner.CLOCK)


def worker_actor(name: str) -> Actor:
    return Actor(performed_by=f"worker:{name}", via=Via.WORKER, owner=Owner.WORKER)


def rule_actor(rule: str, version: int) -> Actor:
    return Actor(performed_by=f"rule:{rule}@{version}", via=Via.RULE, owner=Owner.RULE)
