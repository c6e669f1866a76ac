"""Pages of a list in any of several orders, each by what stands in the last row: no page is slower than the first.

An order ends in the primary key, so that no two rows share a place. The place of a row is text for an address; it
gives no rights, and what cannot be read as one is the beginning of the list.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Model, Q
from django.db.models.expressions import Expression

READERS: Final[dict[str, Callable[[str], Any]]] = {
    "integer": int, "decimal": Decimal, "instant": datetime.fromisoformat, "id": UUID, "text": str,
}  # fmt: skip

LARGEST: Final = 10**18
"""Numbers of rows are smaller."""


@dataclass(frozen=True, slots=True)
class Key:
    """One part of an order. ``expression``: what is compared, where it is no column; it is annotated as ``name``.

    Neither may be NULL in any row. ``implies``: what a row at this value or behind it says of a column. Behind
    row-level security no index begins at an expression, unless PostgreSQL knows that its errors tell nothing; of what
    a column says it can, and reads none of the rows before.
    """

    name: str
    kind: str
    descending: bool = False
    expression: Expression | None = None
    implies: Callable[[Any], Q] | None = None

    def ordering(self) -> Any:
        return F(self.name).desc() if self.descending else F(self.name).asc()

    def read(self, text: str) -> Any:
        """A value of ours. Raises ValueError for what no row can hold: it never gets to the database."""
        value = READERS[self.kind](text)
        if self.kind == "instant":
            if value.tzinfo is None:
                raise ValueError("an instant without a zone")
            return value.astimezone(UTC)
        if self.kind in ("integer", "decimal") and not abs(value) < LARGEST:
            raise ValueError("no number of a row")
        return value


@dataclass(frozen=True, slots=True)
class Order:
    """A named order of a list, and what it is called where people choose it."""

    name: str
    word: str
    keys: tuple[Key, ...]

    def sorted(self, rows: Any) -> Any:
        return self.keyed(rows).order_by(*(key.ordering() for key in self.keys))

    def keyed(self, rows: Any) -> Any:
        computed = {key.name: key.expression for key in self.keys if key.expression is not None}
        return rows.annotate(**computed) if computed else rows

    def behind(self, place: Sequence[Any]) -> Q:
        """The rows behind a place: of rows that are `keyed`."""
        found, same = Q(), Q()
        for key, value in zip(self.keys, place, strict=True):
            found |= same & Q(**{f"{key.name}__{'lt' if key.descending else 'gt'}": value})
            same &= Q(**{key.name: value})
        # An index cannot begin at an OR. This says the same of the first key, and it can begin there.
        first = self.keys[0]
        begins = Q(**{f"{first.name}__{'lte' if first.descending else 'gte'}": place[0]})
        return found & begins & (first.implies(place[0]) if first.implies else Q())

    def place_of(self, row: Model) -> tuple[Any, ...]:
        """Where a row stands, of rows that are `keyed`."""
        return tuple(getattr(row, key.name) for key in self.keys)

    def cursor_of(self, row: Model) -> str:
        """`place_of` as text for an address."""
        return self.cursor_at(self.place_of(row))

    def cursor_at(self, place: Sequence[Any]) -> str:
        values = [value.isoformat() if isinstance(value, datetime) else str(value) for value in place]
        return base64.urlsafe_b64encode("\n".join([self.name, *values]).encode()).decode().rstrip("=")

    def read_cursor(self, text: str) -> tuple[Any, ...] | None:
        """The place that `cursor_of` wrote in this order; None for anything else."""
        try:
            name, *values = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().split("\n")
            if name != self.name or len(values) != len(self.keys):
                return None
            return tuple(key.read(value) for key, value in zip(self.keys, values, strict=True))
        except (
            ValueError,
            OverflowError,
            InvalidOperation,
            binascii.Error,
        ):  # text that is not ASCII is a ValueError, too
            return None

    def page(self, rows: Any, *, after: str, size: int) -> tuple[list[Any], bool]:
        """``size`` rows behind the place ``after``, and whether more follow."""
        place = self.read_cursor(after) if after else None
        listed = self.sorted(rows)
        if place is not None:
            listed = listed.filter(self.behind(place))
        found = list(listed[: size + 1])
        return found[:size], len(found) > size
