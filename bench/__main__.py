"""Measure the product on engines of its own: one JSON document, and a table on standard error (bench/README.md)."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import report
from bench.site import Site

NAMES = ("ingest", "latency", "throughput", "claims", "pulse", "lists", "history", "audit", "memory")
_QUICK = {
    "n": 10, "latency": 5, "workers": [2], "ready": [100, 1000], "claims": 5, "waiting": [50, 200], "among": 500,
    "runs": [100, 300], "pages": 5, "open_pages": 4, "open_s": 3, "events": 2000, "writes": 20, "rounds": 2,
    "seconds": 0.3,
}  # fmt: skip


def options_of(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./placet bench", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES)
    )
    sizes = {
        "-n": (500, "actions of each measure of throughput"),
        "--latency": (100, "actions of the measure of latency"),
        "--workers": ([1, 2, 4], "numbers of worker processes"),
        "--ready": ([1000, 100_000, 1_000_000], "commands ready while others are claimed"),
        "--claims": (200, "claims of ten at each of these"),
        "--waiting": ([1000, 10_000], "proposals waiting while lists are read"),
        "--among": (1_000_000, "proposals in all while lists are read"),
        "--runs": ([1000, 100_000], "runs while pages of them are read"),
        "--events": (1_000_000, "events in the history while it is filtered"),
        "--writes": (2000, "transactions of ten events, each with and without the indexes for filters"),
        "--rounds": (10, "rounds of -n / 5 actions, each with the events of the history and without"),
        "--open-pages": (200, "pages that are open and ask for the pulse"),
        "--open-s": (30, "seconds that they are, once while nothing happens and once with a decision a second"),
        "--pages": (30, "times that each list is read"),
    }  # fmt: skip
    for name, (default, what) in sizes.items():
        many = {"nargs": "+"} if isinstance(default, list) else {}
        parser.add_argument(name, type=int, default=default, help=f"{what} ({default})", **many)
    parser.add_argument("--seconds", type=float, default=2, help="how long each floor is measured (2)")
    parser.add_argument(
        "--quick", action="store_true", help="smallest sizes: shows that it works, says nothing"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="put the document there, not on standard output"
    )
    options = parser.parse_args(arguments)
    if options.quick:
        vars(options).update(_QUICK)
    return options


def main() -> None:
    options = options_of(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the engines and their folder go as well
    with Site() as site:
        found = measure(site, options)
    print(report.table({"verdicts": found["verdicts"]}), file=sys.stderr)
    if not options.json:
        print(_document(found))


def measure(site: Site, options: argparse.Namespace) -> dict[str, Any]:
    """One measure after the other. The file has what is measured so far: a later one that breaks takes none along."""
    found: dict[str, Any] = {"cores": os.cpu_count(), "actions": options.n}
    for name, measured in _measures(site, options).items():
        if name in options.only:
            print(f"bench: {name}", file=sys.stderr)
            found[name] = measured() | {"load": os.getloadavg()[0]}
            found["verdicts"] = report.verdicts(found)
            print(report.table({name: found[name]}), file=sys.stderr, flush=True)
            if options.json:
                options.json.write_text(_document(found) + "\n")
    return found


def _document(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=2)


def _measures(site: Site, options: argparse.Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    """In the order in which they are taken: the later ones leave or need more rows."""
    import django

    django.setup()
    from bench import audit, claims, execution, history, ingest, lists, memory, pulse
    from bench.floor import Bare
    from bench.product import Product

    product, bare, n, seconds = Product(site), Bare(site), options.n, options.seconds
    return {
        "ingest": lambda: ingest.ingest(product, bare, count=2 * n, seconds=seconds),
        "latency": lambda: execution.latency(product, bare, count=options.latency),
        "throughput": lambda: execution.throughput(
            product, bare, count=n, processes=options.workers, seconds=seconds
        ),
        "claims": lambda: claims.claims(
            product, bare, ready=options.ready, count=options.claims, seconds=seconds
        ),
        "pulse": lambda: pulse.pulse(product, pages=options.open_pages, seconds=options.open_s),
        "lists": lambda: lists.lists(
            product, waiting=options.waiting, among=options.among, runs=options.runs, times=options.pages
        ),
        "history": lambda: history.history(product, count=options.events, writes=options.writes),
        "audit": lambda: audit.audit(product, count=max(10, n // 5), rounds=options.rounds),
        "memory": lambda: memory.memory(product, load=n, waiting=options.waiting[-1], settle_s=1 + seconds),
    }


if __name__ == "__main__":
    main()
