"""A page of 100 of the API, and pages of the review queue, with so many proposals waiting among so many."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from django.db import connections
from django.test import Client

from bench import seed
from bench.numbers import per, percentiles
from bench.product import Product

PAGES = {
    "review_queue": "", "by_amount": "sort=amount", "for_you": "view=mine", "words": "q=thing", "alike": "by=alike",
}  # fmt: skip


def lists(product: Product, *, waiting: list[int], among: int, runs: list[int], times: int) -> dict[str, Any]:
    """The median of a page with the most waiting is put beside that with the fewest."""
    product.approvals(2)
    of_runs = _of_runs(product, runs, times)
    began = time.perf_counter()
    decided, copies = seed.decided_proposals(product.site), seed.pending_proposals(product.site)
    decided.fill_up_to(max(0, among - max(waiting)), "status <> 'pending'", of="status = 'pending'")
    found: dict[str, Any] = {"seeded_s": time.perf_counter() - began}
    for count in waiting:
        copies.fill_up_to(count, "status = 'pending'")
        found[str(count)] = _measured(product, times)
    found["rows"] = decided.rows()
    first, last = (found[str(count)] for count in (waiting[0], waiting[-1]))
    found["ratio_last_to_first"] = {
        name: per(last[name]["p50_ms"], measured["p50_ms"]) for name, measured in first.items()
    }
    found["ratio_cpu_last_to_first"] = {
        name: per(last[name]["cpu_ms"], measured["cpu_ms"]) for name, measured in first.items()
    }
    copies.remove()
    return found | {"runs": of_runs}


def _of_runs(product: Product, counts: list[int], times: int) -> dict[str, Any]:
    """A page of 100 runs of the API, with the fewest there are and with the most."""
    program, copies = _program(product), seed.runs(product.site)
    found: dict[str, Any] = {}
    for count in counts:
        for one in copies:
            one.fill_up_to(count, "true")
        for name, query in {"runs": "", "runs_of_one_workflow": "&workflow=bench-1"}.items():
            address = f"/api/v1/runs?limit=100{query}"
            found.setdefault(name, {})[str(count)] = _timed(partial(program.get, address), times)
    for measured in found.values():
        few, many = (measured[str(count)]["cpu_ms"] for count in (counts[0], counts[-1]))
        measured["ratio_cpu_last_to_first"] = per(many, few)
    for one in copies:
        one.remove()
    return found


def _program(product: Product) -> Client:
    return Client(headers={"host": "localhost", "authorization": f"Bearer {product.token}"})


def _measured(product: Product, times: int) -> dict[str, Any]:
    """In this process, so what is measured is the product and not the web server."""
    person = Client(headers={"host": "localhost"})
    person.force_login(product.reviewer)
    program, found = _program(product), {}
    for name, query in {"api_page_of_100": "&status=pending", "api_newest_100": ""}.items():
        found[name] = _timed(partial(program.get, f"/api/v1/proposals?limit=100{query}"), times)
    addresses = {name: f"/review/?{query}" for name, query in PAGES.items()} | {"last_page": _last_page()}
    for name, address in addresses.items():
        found[name] = _timed(partial(person.get, address), times)
    return found


def _last_page() -> str:
    """The address of the last page by urgency, made as the list makes it: no page in between is read."""
    from approvals.models import Proposal
    from approvals.screens.orders import URGENCY

    rows = URGENCY.keyed(Proposal.objects.filter(status="pending"))
    row = rows.order_by(*(key.ordering() for key in URGENCY.keys)).reverse()[20:21].get()
    return f"/review/?after={URGENCY.cursor_of(row)}"


def _timed(get: Callable[[], Any], times: int) -> dict[str, float]:
    """``cpu_ms`` is the mean of what this process and its database connections used: other work changes it less."""
    taken = []
    for number in range(times + 3):
        if number == 3:
            cpu = _cpu()
        began = time.perf_counter()
        answer = get()
        taken.append(time.perf_counter() - began)
        if answer.status_code != 200:
            raise SystemExit(f"{answer.status_code}: {answer.content[:300]!r}")
    return percentiles(taken[3:]) | {"cpu_ms": (_cpu() - cpu) * 1000 / times}


def _cpu() -> float:
    return time.process_time() + sum(map(_backend, ("app", "system")))


def _backend(alias: str) -> float:
    """Seconds of CPU of the server process behind a connection, to the nanosecond where the kernel says."""
    connection: psycopg.Connection[Any] | None = connections[alias].connection
    if connection is None:
        return 0.0
    path = Path(f"/proc/{connection.info.backend_pid}/schedstat")
    return int(path.read_text().split()[0]) / 1e9 if path.exists() else 0.0
