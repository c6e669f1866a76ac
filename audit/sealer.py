"""The sealer: numbers the events of each tenant from 1 without gaps, and chains them.

Events are written without any shared lock, so that recording one costs nothing to the others. About once a second
one sealer takes those whose transaction is older than every running one: no event can come in before them any
more. Within such a set, ``written`` gives an order that fits cause and effect, because a transaction that waited for
another one writes its events after the wait. Their times need not: a clock may step back in between.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from django.db import IntegrityError, connection, transaction

from audit.chain import GENESIS, SELECT_CONTENT, Content, content_of, link_hash
from audit.models import Head, Watermark
from common.clock import Clock
from common.crashpoints import crashpoint

log = structlog.get_logger("placet.audit")
BATCH: Final = 10_000
"""Events per transaction; large enough for a backlog, small enough not to hold back vacuum."""
LOCK: Final = 0x506C6163_65747365  # "Placetse", a number of our own among the advisory locks
_LEFT_OVER: Final = "NOT EXISTS (SELECT FROM audit_seal s WHERE s.event_id = e.id)"


@dataclass(frozen=True, slots=True)
class Horizon:
    """What is settled: transactions below ``xmin`` have ended, those from ``xmax`` on have not begun."""

    xmin: int
    xmax: int
    cluster: int


def seal(clock: Clock) -> int:
    """Seal what can be sealed, in transactions of their own; returns how many events that were.

    0 also when another sealer is at work.
    """
    total, stuck = 0, set[str]()
    while True:
        sealed, more = _seal_batch(clock, stuck)
        total += sealed
        if not more:
            return total


@transaction.atomic(durable=True)
def _seal_batch(clock: Clock, stuck: set[str]) -> tuple[int, bool]:
    """One transaction: how many events it sealed, and whether there may be more.

    ``stuck``: tenants whose chain takes no event, because somebody has damaged it. The others go on without them, and
    the mark stays where it is, so that nothing of theirs is passed over once the chain is right again.
    """
    if not _alone():
        return 0, False
    horizon = _horizon()
    mark = _mark(horizon)
    events = _next_events(horizon, mark, stuck)
    before = len(stuck)
    sealed = _append_all(events, clock, stuck)
    crashpoint("CP14") if sealed else None
    more = len(events) == BATCH or len(stuck) > before
    if (
        not more and not stuck and (events or mark is None)
    ):  # moving it is a write, and an idle system writes nothing
        Watermark.objects.update_or_create(
            id=1, defaults={"sealed_below": horizon.xmin, "cluster": horizon.cluster}
        )
    return sealed, more


def _append_all(events: Sequence[Content], clock: Clock, stuck: set[str]) -> int:
    """Together; where that fails, tenant by tenant, so that one damaged chain stops no other."""
    if not events:
        return 0
    try:
        with transaction.atomic():
            _append(events, clock)
            return len(events)
    except IntegrityError:
        return sum(
            _append_one(tenant, events, clock, stuck) for tenant in sorted({it.tenant for it in events})
        )


def _append_one(tenant: str, events: Sequence[Content], clock: Clock, stuck: set[str]) -> int:
    mine = [event for event in events if event.tenant == tenant]
    try:
        with transaction.atomic():
            _append(mine, clock)
            return len(mine)
    except IntegrityError as error:
        stuck.add(tenant)
        log.error("audit_chain_takes_no_event", tenant=tenant, problem=str(error).partition("\n")[0])  # noqa: TRY400
        return 0


def _alone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])


def _horizon() -> Horizon:
    """Read before the events, so that everything below it is visible to the later statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_snapshot_xmin(now)::text::bigint, pg_snapshot_xmax(now)::text::bigint, system_identifier"
            " FROM pg_current_snapshot() AS now, pg_control_system()"
        )
        return Horizon(*cursor.fetchone())


def _mark(horizon: Horizon) -> Watermark | None:
    """The mark, if it was set in this cluster: after a dump and restore transaction numbers begin anew."""
    return Watermark.objects.filter(cluster=horizon.cluster, sealed_below__lte=horizon.xmin).first()


def _next_events(horizon: Horizon, mark: Watermark | None, stuck: Collection[str] = ()) -> list[Content]:
    """The next events of a settled transaction without a seal, in the order in which they were written.

    Without a mark, events with a transaction number that this cluster has not reached come along: they were
    restored from another one. Those numbers in between wait until they are settled here too.
    """
    if mark is None:
        where, values = "(e.xid < %s OR e.xid >= %s)", [horizon.xmin, horizon.xmax]
    else:
        where, values = "e.xid >= %s AND e.xid < %s", [mark.sealed_below, horizon.xmin]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {SELECT_CONTENT} FROM audit_event e WHERE {where} AND {_LEFT_OVER}"  # noqa: S608
            " AND NOT e.tenant_id = ANY(%s::uuid[]) ORDER BY e.written NULLS FIRST, e.at, e.id LIMIT %s",
            [*values, list(stuck), BATCH],
        )
        return [found for row in cursor.fetchall() if (found := content_of(row))]


def _append(events: Sequence[Content], clock: Clock) -> None:
    """Give each event the next place of its tenant's chain."""
    heads = _heads({event.tenant for event in events})
    rows = []
    for event in events:
        seq, previous = heads.get(event.tenant, (0, GENESIS))
        value = link_hash(seq + 1, previous, event)
        heads[event.tenant] = (seq + 1, value)
        rows.append((event.id, event.tenant, seq + 1, previous, value))
    now = clock()
    with connection.cursor() as cursor:
        cursor.execute(_INSERT_SEALS, [now, *_columns(rows)])
        cursor.execute(_UPSERT_HEADS, [now, *_columns([(tenant, *head) for tenant, head in heads.items()])])


_INSERT_SEALS: Final = """
    INSERT INTO audit_seal (event_id, tenant_id, seq, previous, hash, sealed_at)
    SELECT *, %s::timestamptz FROM unnest(%s::uuid[], %s::uuid[], %s::bigint[], %s::text[], %s::text[])
"""
_UPSERT_HEADS: Final = """
    INSERT INTO audit_head (tenant_id, seq, hash, at)
    SELECT *, %s::timestamptz FROM unnest(%s::uuid[], %s::bigint[], %s::text[])
    ON CONFLICT (tenant_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, at = excluded.at
"""


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _heads(tenants: set[str]) -> dict[str, tuple[int, str]]:
    found = Head.objects.filter(tenant_id__in=tenants).select_for_update().order_by("tenant_id")
    return {str(head.tenant_id): (head.seq, head.hash) for head in found}
