"""From the approval to the provider and to the record: latency, backlog and pipeline."""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen
from typing import Any

from bench.behind import Behind
from bench.floor import Bare, commit_rate
from bench.numbers import Numbers, per, percentiles
from bench.product import CLIENTS, Approval, Product, at_once
from bench.site import wait_until
from launch.process import stop
from workflows.doorbell import ring
from workflows.models import Attempt

QUEUE, HELD = "placet", "placet-held"
BATCHES = (1, 10)
"""Rows per claim of the bare loop. The product's own claim takes twenty at most."""


def latency(product: Product, bare: Bare, *, count: int) -> dict[str, Any]:
    """From the POST of the decision to its call at the provider, one at a time, through web, broker and worker."""
    approvals = product.approvals(count + 5)
    commits, floor, behind = (
        commit_rate(bare.address),
        bare.latency(count),
        Behind(product.site, bare).latency(count),
    )
    product.analyze()
    with workers(product, 1):
        for approval in approvals[:5]:
            _one(product, approval)
        times = [_one(product, approval) for approval in approvals[5:]]
    found = percentiles([arrived - began for began, arrived in times])
    phases = [_phases(approval, *time) for approval, time in zip(approvals[5:], times, strict=True)]
    return found | {
        "phases_p50_ms": {name: statistics.median(phase[name] for phase in phases) for name in phases[0]},
        "commits_per_second": commits, "bare": floor,
        "ratio_to_commit": found["p50_ms"] / (4000 / commits),
        "ratio_to_bare": _ratios(found, floor), "behind_web_and_broker": behind,
        "ratio_to_behind": _ratios(found, behind),
    }  # fmt: skip


def _ratios(found: Numbers, floor: Numbers) -> Numbers:
    return {name: per(found[name], floor[name]) for name in ("p50_ms", "p95_ms", "p99_ms")}


def _one(product: Product, approval: Approval) -> tuple[float, float]:
    began = time.time()
    product.approve(approval)
    arrived = product.site.arrival(approval.key)
    product.wait_until_executed()
    return began, arrived


def _phases(approval: Approval, began: float, arrived: float) -> Numbers:
    """Where the time goes, by the times in the rows; each is read under its lock, so a commit belongs to the next."""
    attempt = Attempt.objects.select_related("command").get(command__proposal=approval.proposal)
    points = {
        "request_to_decided": attempt.command.created_at.timestamp(),
        "decided_to_claimed": attempt.claimed_at.timestamp(),
        "claimed_to_sent": attempt.sent_at.timestamp() if attempt.sent_at else arrived,
        "sent_to_arrived": arrived,
    }
    before, phases = began, {}
    for name, at in points.items():
        phases[name], before = (at - before) * 1000, at
    return phases


def throughput(
    product: Product, bare: Bare, *, count: int, processes: list[int], seconds: float
) -> dict[str, Any]:
    """Backlog and pipeline with each number of worker processes, each beside its floors of the same minute."""
    return {str(number): _with(product, bare, number, count, seconds) for number in processes}


def _with(product: Product, bare: Bare, processes: int, count: int, seconds: float) -> dict[str, Any]:
    waiting = product.approvals(2 * count)
    first, second = waiting[:count], waiting[count:]
    at_once(product.approve, first)
    floors = _backlog_floors(bare, processes, seconds)
    product.analyze()
    with _held_messages(product), workers(product, processes):
        backlog = _beside(_backlog(product, count), floors)
        floors = _pipeline_floors(bare, processes, seconds)
    behind = Behind(product.site, bare).pipeline(processes=processes, rows=count, approvers=CLIENTS)
    with workers(product, processes):
        pipeline = _beside(_pipeline(product, second), floors | {"behind_web_and_broker": behind})
    return {"backlog": backlog, "pipeline": pipeline}


def _backlog(product: Product, count: int) -> float:
    """Everything approved, the workers ready: the messages come, and from the first call to the last record."""
    product.site.forget_arrivals()
    _release_messages(product)
    product.wait_until_executed()
    first = min(times[0] for times in product.site.arrivals().values())
    return count / (product.last_recorded() - first)


def _pipeline(product: Product, approvals: list[Approval]) -> float:
    """Approve all over HTTP while the workers run, until the last one is recorded."""
    began = time.time()
    at_once(product.approve, approvals)
    product.wait_until_executed()
    return len(approvals) / (product.last_recorded() - began)


def _backlog_floors(bare: Bare, processes: int, seconds: float) -> Numbers:
    rates = {
        f"bare_{batch}": bare.backlog(processes=processes, batch=batch, seconds=seconds) for batch in BATCHES
    }
    return {"commits": commit_rate(bare.address, seconds=seconds)} | rates


def _pipeline_floors(bare: Bare, processes: int, seconds: float) -> Numbers:
    rates = {
        f"bare_{batch}": bare.pipeline(
            processes=processes, batch=batch, seconds=seconds, approvers=CLIENTS
        )
        for batch in BATCHES
    }  # fmt: skip
    return {"commits": commit_rate(bare.address, seconds=seconds)} | rates


def _beside(per_second: float, floors: Numbers) -> dict[str, Any]:
    ratios = {f"ratio_to_{name}": per(per_second, rate) for name, rate in floors.items()}
    return {"per_second": per_second} | {f"{name}_per_second": rate for name, rate in floors.items()} | ratios


# -- workers and their messages -------------------------------------------------------------------------------


@contextmanager
def workers(product: Product, processes: int) -> Iterator[Popen[bytes]]:
    """One Celery worker with so many processes, for a while."""
    worker = product.site.start_workers(processes)
    try:
        yield worker
    finally:
        stop(worker, 15, grace=20)


@contextmanager
def _held_messages(product: Product) -> Iterator[None]:
    """Keep what the approvals rang for away from the workers until they are ready."""
    with product.site.broker() as broker:
        if broker.exists(QUEUE):
            broker.rename(QUEUE, HELD)
        yield
        broker.delete(HELD)


def _release_messages(product: Product) -> None:
    with product.site.broker() as broker:
        if broker.exists(HELD):
            broker.rename(HELD, QUEUE)
    ring()
    wait_until(lambda: bool(product.site.arrivals()), "the first call comes", every=0.005)
