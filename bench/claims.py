"""What one claim of ten costs, with few and with very many commands ready."""

import json
import time
from collections.abc import Callable
from typing import Any

import psycopg
from django.db import connection, transaction

from audit.actors import worker_actor
from bench import seed
from bench.floor import Bare, commit_rate
from bench.numbers import per, percentiles
from bench.product import Product
from common.clock import db_clock
from workflows.enums import Lane
from workflows.worker import work
from workflows.worker.claim import IN_ORDER, Claim, claim_commands

LIMIT = 10
_READY = "status = 'ready'"
_AGAIN = """
    DELETE FROM workflows_attempt WHERE worker = 'bench' AND status = 'claimed';
    UPDATE workflows_command SET status = 'ready', claims = 0, lease_token = NULL, lease_until = NULL,
        due_at = clock_timestamp() WHERE status = 'claimed'
"""


def claims(product: Product, bare: Bare, *, ready: list[int], count: int, seconds: float) -> dict[str, Any]:
    """The real claim, committed; what it took is made ready again, behind the others, between two claims."""
    [approval] = product.approvals(1)
    product.approve(approval)
    copies = seed.ready_commands(product.site)
    found: dict[str, Any] = {
        "commits_per_second": commit_rate(bare.address, seconds=seconds),
        "bare_10_per_second": bare.backlog(processes=1, batch=LIMIT, seconds=seconds),
    }
    for waiting in ready:
        copies.fill_up_to(waiting, _READY)
        found[str(waiting)] = _measured(product, count, found)
    copies.remove()
    work()  # the one that was copied
    product.wait_until_executed()
    first, last = found[str(ready[0])], found[str(ready[-1])]
    return found | {
        "ratio_p50_last_to_first": per(last["p50_ms"], first["p50_ms"]),
        "ratio_pages_last_to_first": per(last["pages"], first["pages"]),
    }


def _measured(product: Product, count: int, floors: dict[str, Any]) -> dict[str, Any]:
    times, statement = [], _captured(_claim)
    with psycopg.connect(product.site.superuser_url, autocommit=True) as database:
        for _ in range(count):
            database.execute(_AGAIN)
            began = time.perf_counter()
            taken = _claim()
            times.append(time.perf_counter() - began)
            if len(taken) != LIMIT:
                raise SystemExit(f"A claim took {len(taken)} commands instead of {LIMIT}.")
        database.execute(_AGAIN)
    rate = LIMIT * count / sum(times)
    ratios = {
        "ratio_to_commits": per(rate, floors["commits_per_second"]),
        "ratio_to_bare_10": per(rate, floors["bare_10_per_second"]),
    }
    return percentiles(times) | {"rows_per_second": rate} | ratios | _explained(*statement)


def _claim() -> list[Claim]:
    by = worker_actor("bench")
    return claim_commands(limit=LIMIT, lane=Lane.NEW, worker="bench", by=by, clock=db_clock)


def _captured(do: Callable[[], object]) -> tuple[str, Any]:
    """The statement that looks for commands, as the claim sends it, with its parameters."""
    seen: list[tuple[str, Any]] = []

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if "SKIP LOCKED" in sql and "workflows_command" in sql:
            seen.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        do()
    return seen[0]


def _explained(sql: str, params: Any) -> dict[str, Any]:
    """What the look alone costs: milliseconds, and pages of the database, which no busy machine changes."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(IN_ORDER.sql)
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", params)
        row = cursor.fetchone()
    [plan] = row[0] if isinstance(row[0], list) else json.loads(row[0])
    top = plan["Plan"]
    return {
        "look_ms": plan["Execution Time"], "pages": top["Shared Hit Blocks"] + top["Shared Read Blocks"],
        "plan": _nodes(top),
    }  # fmt: skip


def _nodes(plan: dict[str, Any]) -> list[str]:
    """The kinds of nodes and the indexes they use, outermost first."""
    name = " ".join(filter(None, [plan["Node Type"], plan.get("Index Name") or plan.get("Relation Name")]))
    return [name, *(node for part in plan.get("Plans", ()) for node in _nodes(part))]
