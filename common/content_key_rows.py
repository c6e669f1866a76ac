"""The keys of runs as they are stored: found one by one or many at once, and made where there is none yet."""

from collections.abc import Collection
from typing import Any, Final
from uuid import UUID

from django.db import connection

from common import content_keys
from common.content_keys import RunKey
from common.ids import new_id
from common.tx import memo


def raw(wrapped: Any) -> bytes | None:
    """A column with a wrapped key, as bytes."""
    return None if wrapped is None else bytes(wrapped)


_FIND: Final = "SELECT wrapped FROM common_contentkey WHERE tenant_id = %s AND run_id = %s"
_FIND_ALL: Final = (
    "SELECT tenant_id, run_id, wrapped FROM common_contentkey"
    " WHERE tenant_id = ANY(%s::uuid[]) AND run_id = ANY(%s::uuid[])"
)
_MAKE: Final = (
    "INSERT INTO common_contentkey (id, tenant_id, run_id, wrapped, wrapped_with, created_at, held_by, hold_reason)"
    " VALUES (%s, %s, %s, %s, %s, clock_timestamp(), '', '') ON CONFLICT (tenant_id, run_id) DO NOTHING"
)


def found(tenant_id: UUID, run_id: UUID) -> RunKey | None:
    """None where the run has none. Inside an action it is read once."""
    known = memo()
    if known is not None and (tenant_id, run_id) in known:
        return known[tenant_id, run_id]  # type: ignore[no-any-return]
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [tenant_id, run_id])
        row = cursor.fetchone()
    key = RunKey(tenant_id, run_id, raw(row[0])) if row is not None else None
    if known is not None and key is not None:
        known[tenant_id, run_id] = key
    return key


def made(tenant_id: UUID, run_id: UUID) -> RunKey:
    """A new key, or the one that somebody else has made meanwhile."""
    key = content_keys.new_key(tenant_id, run_id)
    assert key.wrapped is not None
    with connection.cursor() as cursor:
        values: list[Any] = [new_id(), tenant_id, run_id, key.wrapped, content_keys.wrapped_with(key.wrapped)]
        cursor.execute(_MAKE, values)
        ours = cursor.rowcount == 1
    if not ours:  # somebody else made it meanwhile, and has committed
        key = found(tenant_id, run_id) or key
    known = memo()
    if known is not None:
        known[tenant_id, run_id] = key
    return key


def found_many(runs: Collection[tuple[UUID, UUID]]) -> dict[tuple[UUID, UUID], RunKey]:
    """By tenant and run, with one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_FIND_ALL, [list({tenant for tenant, _ in runs}), list({run for _, run in runs})])
        return {
            (tenant, run): RunKey(tenant, run, raw(wrapped)) for tenant, run, wrapped in cursor.fetchall()
        }
