"""Events for tests, and the hands of somebody who may do everything in the database."""

from typing import Any
from uuid import UUID

from django.db import connections, transaction

from audit.actions import Entry, record, record_many
from audit.actors import Actor, clock_actor
from common.ids import new_id


def entry(tenant_id: UUID, number: int = 0, by: Actor | None = None, **more: Any) -> Entry:
    values = {
        "kind": "thing.moved",
        "subject_type": "thing",
        "subject_id": new_id(),
        "body": {"number": number},
    }
    return Entry(by=by or clock_actor(), tenant_id=tenant_id, **(values | more))


def write(tenant_id: UUID, count: int = 1) -> list[UUID]:
    """So many events, each in a transaction of its own."""
    ids = []
    for number in range(count):
        with transaction.atomic():
            ids += record_many([entry(tenant_id, number)])
    return ids


def write_one(tenant_id: UUID, **more: Any) -> UUID:
    values = {"kind": "thing.moved", "subject_type": "thing", "subject_id": new_id()}
    with transaction.atomic():
        return record(by=clock_actor(), tenant_id=tenant_id, **(values | more))


def tamper(sql: str, *values: Any) -> None:
    """As the owner with triggers off, which is more than the application ever has."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(sql, values)
        assert cursor.rowcount != 0
