"""Measure the product and write one JSON document; see README.md."""

import argparse
import json
import os
import sys
import time
import urllib.request
from typing import Any

from bench.site import Site


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("-n", type=int, default=1000, help="actions of each throughput measure")
    parser.add_argument("--latency", type=int, default=100, help="actions of the latency measure")
    parser.add_argument(
        "--waiting", type=int, nargs="*", default=[1000, 100_000], help="lengths of the lists"
    )
    options = parser.parse_args()
    with Site() as site:
        json.dump(measure(site, options), sys.stdout, indent=2)
        print()


def measure(site: Site, options: argparse.Namespace) -> dict[str, Any]:
    import django

    django.setup()
    from bench.measures import Bench, commit_rate

    def floor() -> float:
        return commit_rate(site.postgres.url(database="postgres"))

    bench, found = Bench(site), {}
    site.start_web()
    _wait_for(f"http://127.0.0.1:{site.web_port}/healthz")
    rate = floor()
    found["propose"] = bench.propose(options.n * 2 + options.latency)
    found["propose"] |= _ratio(found["propose"]["per_second"], rate)
    proposals = bench.pending()
    drained, piped = proposals[: options.n], proposals[options.n : options.n * 2]
    for proposal in drained:
        bench.approve(proposal)
    rate = floor()
    found["drain"] = _with_ratio(bench.drain(drained), rate)
    rate = floor()
    found["pipeline"] = _with_ratio(bench.pipeline(piped), rate)
    found["approve_to_provider"] = bench.latency(proposals[options.n * 2 :])
    bench.propose(2)
    found["lists"] = {str(waiting): bench.lists(waiting) for waiting in options.waiting}
    return {"actions": options.n, "cores": os.cpu_count(), "load": os.getloadavg()[0]} | found


def _with_ratio(per_second: float, rate: float) -> dict[str, float]:
    return {"per_second": per_second} | _ratio(per_second, rate)


def _ratio(per_second: float, rate: float) -> dict[str, float]:
    return {"commits_per_second": rate, "ratio": per_second / rate}


def _wait_for(url: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"{url} does not answer")


if __name__ == "__main__":
    main()
