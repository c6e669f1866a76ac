"""Do the tables say what the history says? A row is in the state of the last event that moved it, or was never moved.

A change to a row past the product leaves the chain whole. Replaying the events finds it: their last state is compared
with the row's. Every statement reads rows and events in one snapshot, a batch at a time by index, so that nothing that
moves meanwhile looks wrong, and no long transaction is held. The apps above say which tables have states (`register`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, OuterRef, QuerySet, Subquery

from audit.models import Event, Seal
from audit.replayed import BEGINS, OTHER_STATES, fits

BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class Stateful:
    """A table whose rows have a ``status`` that events of this thing move."""

    thing: str
    table: str


@dataclass(frozen=True, slots=True)
class Misfit:
    """A row that does not fit its events; ``stored`` is None where the row is gone."""

    thing: str
    id: UUID
    stored: str | None
    told: str | None

    @property
    def says(self) -> str:
        if self.stored is None:
            return f"The {self.thing} {self.id} stands in the history and no more in its table."
        told = f"the history says {self.told}" if self.told else "the history tells of no move"
        return f"The {self.thing} {self.id} is {self.stored}; {told}."


_known: dict[str, Stateful] = {}


def register(*stateful: Stateful) -> None:
    _known.update({one.thing: one for one in stateful})


@contextmanager
def one_state() -> Iterator[None]:
    """Rows and events as they are at one moment: of a busy system, two statements would see two."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


Differences = Callable[[UUID], Iterator[str]]
"""Of a tenant: a sentence for each row that is not what was recorded of it, beyond its state. A batch at a time, each
in `one_state`."""
_differences: list[Differences] = []


def batch_by_batch(
    tenant_id: UUID, differ: Callable[[UUID, UUID], tuple[UUID | None, list[str]]]
) -> Iterator[str]:
    """What ``differ`` says of the rows behind an id, from the first on: it gives the last id, None at the end."""
    after: UUID | None = UUID(int=0)
    while after is not None:
        with one_state():
            after, found = differ(tenant_id, after)
        yield from found


def in_their_order(events: QuerySet[Event]) -> QuerySet[Event]:
    """By place, then as they were written: a clock may step back."""
    places = Seal.objects.filter(event_id=OuterRef("id")).values("seq")[:1]
    order = (F("seq").asc(nulls_last=True), F("written").asc(nulls_first=True), "at", "id")
    return events.annotate(seq=Subquery(places)).order_by(*order)


def register_differences(look: Differences) -> None:
    """Called when the apps are loaded."""
    if look not in _differences:
        _differences.append(look)


def first_difference(tenant_id: UUID) -> str:
    """The first sentence; empty where every row says what the history says."""
    for look in _differences:
        for says in look(tenant_id):
            return says
    return ""


def first_misfit(tenant_id: UUID) -> Misfit | None:
    """The first row of a tenant that does not fit its history: by thing, in the order of ids; then what is gone."""
    for one in _known.values():
        for stored in _rows(tenant_id, one):
            if not fits(stored.stored, stored.told, BEGINS[one.thing]):
                return stored
    return next(_gone(tenant_id, list(_known.values())), None)


def _rows(tenant_id: UUID, one: Stateful) -> Iterator[Misfit]:
    """Every row with the state that its events lead to: by place in the chain, since a clock may step back."""
    after = UUID(int=0)
    while found := _query(_LAST_STATES.format(table=one.table), [
        tenant_id, after, BATCH, tenant_id, one.thing, list(OTHER_STATES),
    ]):  # fmt: skip
        yield from (Misfit(one.thing, *row) for row in found)
        after = found[-1][0]


def _gone(tenant_id: UUID, things: Sequence[Stateful]) -> Iterator[Misfit]:
    """What sealed events moved and no table has."""
    if not things:
        return
    newest = (
        Seal.objects.filter(tenant_id=tenant_id).order_by("-seq").values_list("seq", flat=True).first() or 0
    )
    missing = " OR ".join(
        f"(e.subject_type = '{one.thing}' AND NOT EXISTS (SELECT FROM {one.table} r WHERE r.id = e.subject_id))"
        for one in things
    )
    for start in range(0, newest, BATCH):
        for row in _query(_GONE.format(missing=missing), [tenant_id, start, start + BATCH]):
            yield Misfit(row[0], row[1], None, row[2])


_LAST_STATES: Final = """
    SELECT r.id, r.status, e.to_state
    FROM (SELECT id, status FROM {table} WHERE tenant_id = %s AND id > %s ORDER BY id LIMIT %s) r
    LEFT JOIN LATERAL (
        SELECT v.to_state FROM audit_event v LEFT JOIN audit_seal s ON s.event_id = v.id
        WHERE v.tenant_id = %s AND v.subject_id = r.id AND v.subject_type = %s AND v.to_state <> ''
            AND v.kind <> ALL(%s)
        ORDER BY s.seq DESC NULLS FIRST, v.written DESC NULLS LAST, v.at DESC, v.id DESC LIMIT 1) e ON true
    ORDER BY r.id
"""
_GONE: Final = """
    SELECT e.subject_type, e.subject_id, e.to_state FROM audit_seal s JOIN audit_event e ON e.id = s.event_id
    WHERE s.tenant_id = %s AND s.seq > %s AND s.seq <= %s AND e.to_state <> '' AND ({missing})
    ORDER BY s.seq LIMIT 1
"""


def _query(sql: str, values: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
