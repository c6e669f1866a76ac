"""Keyset pages: newest first by (created_at, id), stable while new rows come in.

A cursor is the place behind the last row of a page. It is opaque to clients and gives no rights: every page is
filtered by tenant first.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from common.errors import InvalidInput

PAGE: Final = 50
LONGEST_PAGE: Final = 200
Row = TypeVar("Row", bound=Model)


class BadCursor(InvalidInput):
    """This cursor was not given out by this list."""

    code = "bad_cursor"


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, and where the next page begins ("" after the last)."""

    rows: list[Row]
    next_cursor: str


def page(found: "QuerySet[Row]", *, list_name: str, cursor: str = "", size: int = PAGE) -> Page[Row]:
    """One page of rows that have ``created_at`` and ``id``. Raises BadCursor, also for another list's cursor."""
    size = max(1, min(size, LONGEST_PAGE))
    if cursor:
        at, row_id = read_cursor(list_name, cursor)
        found = found.filter(Q(created_at__lt=at) | Q(created_at=at, id__lt=row_id), created_at__lte=at)
    rows = list(found.order_by("-created_at", "-id")[: size + 1])
    more = len(rows) > size
    return Page(rows[:size], cursor_behind(list_name, rows[size - 1]) if more else "")


def cursor_behind(list_name: str, row: Any) -> str:
    """The place right behind a row of the list."""
    text = f"{list_name} {row.created_at.isoformat()} {row.id}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(list_name: str, cursor: str) -> tuple[datetime, UUID]:
    """The place that a cursor names. Raises BadCursor."""
    try:
        name, at, row_id = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split(" ")
        instant, identity = datetime.fromisoformat(at), UUID(row_id)
    except (ValueError, binascii.Error) as error:
        raise BadCursor from error
    if name != list_name or instant.tzinfo is None:
        raise BadCursor
    return instant, identity
