"""The same choice for many cases: each by itself, bound to what the list showed, and only so many in one go."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from access.models import Membership
from audit.actors import Actor
from common.clock import Clock
from common.errors import InvalidInput, Refused
from repair.choices.acting import choose
from repair.choices.case import Seen
from repair.choices.declared import Choice, Typed

AT_ONCE: Final = 50
"""So many cases are worked off by one request; the list goes on behind them."""


class TooMany(InvalidInput):
    """That is more than one request works off. Take them in portions."""

    code = "too_many_cases"


@dataclass(frozen=True, slots=True)
class Listed:
    """One case as the list showed it."""

    packet_id: UUID
    seen: Seen

    @property
    def text(self) -> str:
        return f"{self.packet_id}/{self.seen.text}"

    @classmethod
    def parse(cls, text: str) -> "Listed | None":
        """None for what was not made by `text`."""
        ident, _, rest = text.partition("/")
        seen = Seen.parse(rest)
        try:
            return cls(UUID(ident), seen) if seen is not None else None
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one case: ``code`` is empty where it was done."""

    packet_id: UUID
    says: str
    code: str = ""


def choose_many(
    *, tenant_id: UUID, choice: Choice, listed: Iterable[Listed], typed: Typed, membership: Membership, by: Actor,
    clock: Clock,
) -> Sequence[Result]:  # fmt: skip
    """A result per case, in their order; one that is refused leaves the others as they are. Raises TooMany."""
    rows = list(listed)
    if len(rows) > AT_ONCE or not choice.in_bulk:
        raise TooMany(most=AT_ONCE if choice.in_bulk else 0)
    results = []
    for row in rows:
        try:
            says = choose(
                tenant_id=tenant_id, packet_id=row.packet_id, choice=choice, seen=row.seen, typed=typed,
                membership=membership, by=by, clock=clock,
            )  # fmt: skip
            results.append(Result(row.packet_id, says))
        except Refused as refused:
            results.append(Result(row.packet_id, refused.message, refused.details.get("why", refused.code)))
    return results
