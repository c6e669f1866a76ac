"""Proportional set sizes of the product's own processes: their pages, shared ones divided among the sharers."""

import time
from pathlib import Path
from typing import Any

from bench import seed
from bench.execution import workers
from bench.product import Product, at_once
from launch.process import stop


def memory(product: Product, *, load: int, waiting: int, settle_s: float) -> dict[str, Any]:
    """MiB of 2 web processes, 2 worker processes and the sweep: idle, after so many actions, with many waiting."""
    site = product.site
    approvals = product.approvals(load)
    sweep = site.start("manage.py", "sweep")
    try:
        with workers(product, 2) as worker:
            programs = {"web": site.restart_web(), "worker": worker, "sweep": sweep}
            pids = {name: process.pid for name, process in programs.items()}
            found = {"idle": _settled(pids, settle_s)}
            at_once(product.approve, approvals)
            product.wait_until_executed()
            found["loaded"] = _settled(pids, settle_s)
            copies = seed.pending_proposals(site)
            product.approvals(1)
            copies.fill_up_to(waiting, "status = 'pending'")
            found[f"loaded_and_{waiting}_waiting"] = _settled(pids, settle_s)
            copies.remove()
    finally:
        stop(sweep, 15, grace=20)
    return found


def _settled(pids: dict[str, int], settle_s: float) -> dict[str, float]:
    """After the sweep has looked a few times."""
    time.sleep(settle_s)
    sizes = {f"{name}_mib": sum(map(_pss, _with_children(pid))) / 1024 for name, pid in pids.items()}
    return sizes | {"total_mib": sum(sizes.values())}


def _pss(pid: int) -> int:
    """KiB; 0 of a process that has ended since it was listed: a pool replaces its children as it likes."""
    for line in _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _with_children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for task in tasks for child in _read(task).split()]
    return [pid, *(below for child in children for below in _with_children(child))]
