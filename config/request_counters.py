"""Counters of the requests of one web server, for `/metrics`.

The processes of a server share them through files in a folder that the first one made before it forked
(`config/wsgi.py`), so it does not matter which of them is asked. Each host counts for itself, and a restart begins
anew, as Prometheus expects of counters.
"""

import os
from http import HTTPStatus
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The library's own variable: where it is set, counters are files in that folder."""
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
NO_ROUTE: Final = "none"

_registry: Final = CollectorRegistry()
_requests: Final = Counter(
    "placet_requests", "Requests answered.", ["method", "route", "status"], registry=_registry
)
_seconds: Final = Histogram(
    "placet_request_seconds",
    "From the first byte read to the answer.",
    ["route"],
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 30),
    registry=_registry,
)
_limited: Final = Counter(
    "placet_rate_limited_requests", "Requests that were refused as too many (429).", registry=_registry
)


def count(method: str | None, route: str | None, status: int, seconds: float) -> None:
    """One answered request. The route is the pattern of the address, which may itself hold a secret; a method that does
    not exist is a word of whoever sent it.
    """
    route = route if route is not None else NO_ROUTE
    _requests.labels(method if method in METHODS else "other", route, str(status)).inc()
    _seconds.labels(route).observe(seconds)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        _limited.inc()


def counted() -> CollectorRegistry:
    """What all processes of this server have counted."""
    if not os.environ.get(SHARED):
        return _registry
    together = CollectorRegistry()
    MultiProcessCollector(together)  # type: ignore[no-untyped-call]
    return together
