"""Row identities: UUIDv7, so that new rows land at the end of an index."""

from uuid import UUID

import uuid_utils.compat


def new_id() -> UUID:
    """A fresh UUIDv7 (RFC 9562). Lists still order by database time and id, never by id alone."""
    return uuid_utils.compat.uuid7()
