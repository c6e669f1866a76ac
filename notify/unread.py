"""The number at the bell, for open pages: counted for all sessions that ask, with one statement."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django.db import connection

from notify.selectors import MOST_COUNTED

_UNREAD: Final = """
    SELECT k.key, (SELECT count(*) FROM (
        SELECT FROM notify_notice n
        WHERE n.tenant_id = k.tenant_id AND n.read_at IS NULL AND n.over_at IS NULL AND n.user_id IN (
            SELECT k.user_id UNION ALL SELECT o.user_id FROM access_membership m
            JOIN access_membership o ON o.tenant_id = m.tenant_id AND o.person_id = m.person_id
            WHERE m.tenant_id = k.tenant_id AND m.user_id = k.user_id)
        LIMIT %s) c)
    FROM unnest(%s::text[], %s::uuid[], %s::uuid[]) AS k(key, tenant_id, user_id)
"""


def unread_of(keys: Sequence[str], tenants: Sequence[UUID], users: Sequence[UUID]) -> dict[str, int]:
    """As `unread_count`, by session: of all accounts of each person, counted up to 100."""
    with connection.cursor() as cursor:
        cursor.execute(_UNREAD, [MOST_COUNTED, list(keys), list(tenants), list(users)])
        return dict(cursor.fetchall())
