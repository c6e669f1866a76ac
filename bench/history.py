"""The history with a million events: how each filter finds its page, and what the indexes for it cost a write.

What counts is the plan: which index, and how many pages of the database are read for 51 rows. They are the same on any
machine; times are not.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
from django.db import transaction
from django.db.models import F, Q, QuerySet

from bench.numbers import per
from bench.product import Product
from bench.site import Site
from common.cursors import PAGE
from common.ids import new_id
from launch import roles

EXTRA = (
    "audit_event_actor", "audit_event_for", "audit_event_kind", "audit_event_through", "approvals_proposal_target",
    "approvals_proposal_through",
)  # fmt: skip
"""The indexes that the explorer needs and nothing else does."""
RUN_EVENTS = 20
_COLUMNS = (
    "id, tenant_id, kind, subject_type, subject_id, run_id, from_state, to_state, performed_by, on_behalf_of, via,"
    " owner, reason, request_id, digest, body, at, xid, through"
)
_SEED = f"""
    INSERT INTO audit_event ({_COLUMNS})
    SELECT md5('bench-event-' || n)::uuid, %(tenant)s,
        CASE WHEN n %% %(rare)s = 7 THEN 'chain.broken'
            ELSE (ARRAY['run.running','step.running','step.completed','proposal.made','proposal.vote','command.ready',
                'command.claimed','command.sent','command.confirmed','run.completed'])[1 + n %% 10] END,
        'run', md5('bench-thing-' || n / 4)::uuid, md5('bench-run-' || n / {RUN_EVENTS})::uuid, '', '',
        CASE WHEN n %% %(rare)s = 11 THEN 'user:rare' ELSE 'worker:' || n %% 8 END,
        CASE WHEN n %% %(rare)s = 13 THEN 'user:away' ELSE '' END, 'worker', 'worker', '', '',
        CASE WHEN n %% 4 = 0 THEN encode(sha256((n / 20)::text::bytea), 'hex') ELSE '' END,
        '{{"bench": true}}', clock_timestamp() - (%(count)s - n) * interval '20 seconds', 1,
        CASE WHEN n %% %(rare)s = 17 THEN 'token:rare' WHEN n %% 4 = 1 THEN 'token:common' ELSE '' END
    FROM generate_series(1, %(count)s) n
"""
_TARGETS = """
    INSERT INTO approvals_proposal ({columns}) SELECT {values}
    FROM (SELECT * FROM approvals_proposal WHERE tenant_id = %(tenant)s LIMIT 1) one, generate_series(1, %(count)s) n
"""


def history(product: Product, *, count: int, writes: int) -> dict[str, Any]:
    """``count`` events, a twentieth as many proposals; each filter explained, with and without what it needs."""
    product.approvals(1)
    began = time.perf_counter()
    _seed(product, count)
    found: dict[str, Any] = {"events": count, "seeded_s": time.perf_counter() - began}
    asked = dict(_asked(product.tenant.pk, count))
    found["plans"] = {name: explained(query) for name, query in asked.items()}
    with _without(product.site):
        found["plans_without"] = {name: explained(query) for name, query in asked.items()}
    return found | {"writes": _writes(product, writes)}


def _seed(product: Product, count: int) -> None:
    from approvals.models import Proposal

    changed = {
        "id": "gen_random_uuid()", "run_id": "md5('bench-run-' || n)::uuid", "target": "'order:' || n",
        "operation": "'bench.post-' || n % 5", "status": "'consumed'", "decided_at": "clock_timestamp()",
        "execute_by": "clock_timestamp()", "ended_at": "clock_timestamp()",
        "created_at": "one.created_at - n * interval '1 second'",
        "proposed_through": "CASE WHEN n % 10000 = 7 THEN 'token:rare' ELSE 'token:common' END",
    }  # fmt: skip
    columns = [field.column for field in Proposal._meta.concrete_fields]
    values = ", ".join(changed.get(name, f'one."{name}"') for name in columns)
    targets = _TARGETS.format(columns=", ".join(f'"{name}"' for name in columns), values=values)
    with psycopg.connect(product.site.superuser_url, autocommit=True) as database:
        asked = {"tenant": product.tenant.pk, "count": count, "rare": max(20, count // 5)}
        database.execute(_SEED, asked)
        database.execute(
            targets.replace("% ", "%% "), {"tenant": product.tenant.pk, "count": count // RUN_EVENTS}
        )
        database.execute("VACUUM ANALYZE audit_event")
        database.execute("VACUUM ANALYZE approvals_proposal")


def _asked(tenant_id: UUID, count: int) -> Iterator[tuple[str, QuerySet[Any]]]:
    """One page of each, as the page and the API ask for it."""
    from audit.finding import of_runs_doing
    from audit.models import Event
    from audit.selectors import Filters, events
    from workflows.let_through import Asked, let_through

    middle = Event.objects.filter(tenant_id=tenant_id).order_by("-at")[count // 2]
    run = middle.run_id
    for name, filters in {
        "newest": Filters(), "rare_actor": Filters(actor="user:rare"), "rare_on_behalf_of": Filters(actor="user:away"),
        "common_actor": Filters(actor="worker:1"), "rare_kind": Filters(kind="chain.broken"),
        "group_of_kinds": Filters(kind="chain."), "common_kind": Filters(kind="command.sent"),
        "run": Filters(run_id=run), "subject": Filters(subject_id=middle.subject_id),
        "digest": Filters(digest="0" * 64),
        "rare_token": Filters(through="token:rare"), "common_token": Filters(through="token:common"),
        "time_span": Filters(since=middle.at - timedelta(hours=1), until=middle.at),
        "rare_kind_in_a_time_span": Filters(kind="chain.broken", since=middle.at - timedelta(days=1), until=middle.at),
    }.items():  # fmt: skip
        yield name, _page(events(tenant_id, filters))
    yield "target", _page(events(tenant_id).filter(of_runs_doing(tenant_id, "", f"order:{count // 50}")))
    for name, token in (("let_through_by_a_rare_token", "token:rare"), ("by_a_common_token", "token:common")):
        yield name, let_through(tenant_id, Asked(through=token))[: PAGE + 1]
    yield (
        "deep_page",
        _page(
            events(tenant_id).filter(
                Q(at__lt=middle.at) | Q(at=middle.at, id__lt=middle.pk), at__lte=middle.at
            )
        ),
    )


def _page(found: QuerySet[Any]) -> QuerySet[Any]:
    return found.annotate(created_at=F("at")).order_by("-created_at", "-id")[: PAGE + 1]


def explained(query: QuerySet[Any]) -> dict[str, Any]:
    """Indexes of the plan, whether a table is read from end to end, pages and milliseconds."""
    [top] = json.loads(query.explain(format="json", analyze=True, buffers=True))
    plan = top["Plan"]
    nodes = list(_nodes(plan))
    return {
        "indexes": sorted({node["Index Name"] for node in nodes if "Index Name" in node}),
        "read_from_end_to_end": sorted(node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"),
        "pages": plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], "ms": top["Execution Time"],
        "rows": plan["Actual Rows"],
    }  # fmt: skip


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


@contextmanager
def _without(site: Site) -> Iterator[None]:
    """As if these indexes were not there: dropped, and made again."""
    with psycopg.connect(site.superuser_url, autocommit=True) as database:
        rows = database.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE indexname = ANY(%s)", [list(EXTRA)]
        )
        made = dict(rows.fetchall())
        for name in made:
            database.execute(f"DROP INDEX {name}")
        try:
            yield
        finally:
            for definition in made.values():
                database.execute(definition)


def _writes(product: Product, times: int) -> dict[str, Any]:
    """Transactions of ten events each, in turns with and without the indexes: bytes of WAL and seconds, as ratios."""
    rounds = [(_written(product, times), _bare(product, times)) for _ in range(3)]
    with_them, without = ([pair[at] for pair in rounds] for at in (0, 1))
    return {
        "wal_bytes_per_event": _median(with_them, "wal"), "wal_bytes_without": _median(without, "wal"),
        "ratio_wal": per(_median(with_them, "wal"), _median(without, "wal")),
        "ms_per_ten": _median(with_them, "ms"), "ms_per_ten_without": _median(without, "ms"),
        "ratio_ms": per(_median(with_them, "ms"), _median(without, "ms")),
    }  # fmt: skip


def _median(rounds: list[dict[str, float]], name: str) -> float:
    return sorted(one[name] for one in rounds)[len(rounds) // 2]


def _bare(product: Product, times: int) -> dict[str, float]:
    with _without(product.site):
        return _written(product, times)


def _written(product: Product, times: int) -> dict[str, float]:
    """As an action writes them, in the product's own statement. A checkpoint first: images of pages weigh alike."""
    from audit.actions import record_many

    with psycopg.connect(product.site.postgres.url(database=roles.DATABASE), autocommit=True) as database:
        database.execute("CHECKPOINT")
        begin, began = _wal(database), time.perf_counter()
        for number in range(times):
            entries = list(_entries(product.tenant.pk, number))
            with transaction.atomic():
                record_many(entries)
        took = time.perf_counter() - began
        return {"wal": (_wal(database) - begin) / (times * 10), "ms": took * 1000 / times}


def _entries(tenant_id: UUID, number: int) -> Iterator[Any]:
    """What an action leaves: ten events of one run."""
    from audit.actions import Entry
    from audit.actors import worker_actor

    run, by = new_id(), worker_actor(f"bench-{number % 8}")
    for kind in ("run.running", "step.running", "step.completed", "proposal.made", "command.ready") * 2:
        yield Entry(
            by=by,
            kind=kind,
            tenant_id=tenant_id,
            subject_type="run",
            subject_id=run,
            run_id=run,
            body={"a": 1},
        )


def _wal(database: "psycopg.Connection[Any]") -> float:
    row = database.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    return float(row[0]) if row else 0.0
