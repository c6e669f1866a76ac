"""How many proposals are taken in: one POST each, and by bulks of runs whose only stage proposes."""

import time
from typing import Any

from approvals.models import Proposal
from bench.execution import workers
from bench.floor import Bare, commit_rate
from bench.numbers import Numbers, per, percentiles
from bench.product import BULK, CLIENTS, Product, at_once
from bench.site import wait_until

_BULK_CLIENTS = 4


def ingest(product: Product, bare: Bare, *, count: int, seconds: float) -> dict[str, Any]:
    product.site.start_web()
    at_once(product.propose, range(CLIENTS))
    single = _single(product, count) | {"connections": CLIENTS}
    found = {"single": _beside(single, bare, seconds)}
    return found | {"bulk": _beside(_bulk(product, count), bare, seconds)}


def _beside(found: dict[str, Any], bare: Bare, seconds: float) -> dict[str, Any]:
    commits = commit_rate(bare.address, seconds=seconds)
    floor = bare.backlog(processes=2, batch=1, seconds=seconds)
    return found | {
        "commits_per_second": commits, "bare_1_per_second": floor,
        "ratio_to_commits": per(found["per_second"], commits), "ratio_to_bare_1": per(found["per_second"], floor),
    }  # fmt: skip


def _single(product: Product, count: int) -> Numbers:
    """``POST /proposals``: each with its run, step, bound contract, view document and audit events."""
    began = time.perf_counter()
    times = at_once(product.propose, range(count))
    return {"per_second": count / (time.perf_counter() - began)} | percentiles(times)


def _bulk(product: Product, count: int) -> Numbers:
    """``POST /runs`` with arrays while two worker processes run, until the last run has its proposal.

    There is no bulk of proposals: a program that has many cases sends runs, and their stage proposes.
    """
    size = min(BULK, max(1, count // _BULK_CLIENTS))
    bulks = count // size
    before = Proposal.objects.count()
    with workers(product, 2):
        began = time.perf_counter()
        at_once(product.start_runs, [size] * bulks, clients=_BULK_CLIENTS)
        accepted = time.perf_counter() - began
        wait_until(lambda: Proposal.objects.count() >= before + size * bulks, "all runs have proposed")
        proposed = time.perf_counter() - began
    return {
        "per_second": size * bulks / proposed, "runs_accepted_per_second": size * bulks / accepted, "bulk": size,
        "connections": _BULK_CLIENTS,
    }  # fmt: skip
