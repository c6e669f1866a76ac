"""Row identities: UUIDv7, so that new rows land at the end of an index."""

from datetime import datetime
from uuid import UUID

import uuid_utils.compat


def new_id() -> UUID:
    """A fresh UUIDv7 (RFC 9562). Lists still order by database time and id, never by id alone."""
    return uuid_utils.compat.uuid7()


def id_at(at: datetime) -> UUID:
    """One as it would have been made at ``at``, to the millisecond: for rows that are written late."""
    rest = new_id().int & (1 << 80) - 1
    return UUID(int=int(at.timestamp() * 1000) << 80 | rest)
