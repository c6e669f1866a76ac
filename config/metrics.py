"""``/metrics``: numbers in Prometheus' text format, for the installation's operators and nobody else.

Labels are words of ours, names of operations and patterns of addresses: no tenant, person or text.
"""

import hmac
from collections.abc import Callable, Iterator
from typing import Final

import structlog
from django.conf import settings
from django.db import Error, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from common import away
from common.longpoll import waiters
from config import observed, request_counters
from repair.selectors import class_of

log = structlog.get_logger(__name__)
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})
_FORWARDED: Final = (
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Real-IP",
    "Via",
)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """With the token of ``PLACET_METRICS_TOKEN``, or from this very machine where none is set; else 404."""
    if not _may_read(request):
        raise Http404
    registry = CollectorRegistry()
    registry.register(Installation())
    text = generate_latest(registry) + generate_latest(request_counters.counted())
    return HttpResponse(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _may_read(request: HttpRequest) -> bool:
    """A proxy on this machine calls from here too, on behalf of anybody: what it forwards does not count as local."""
    wanted: str = settings.PLACET_METRICS_TOKEN
    if wanted:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), wanted.encode())
    local = request.META.get("REMOTE_ADDR") in _LOOPBACK
    return local and not any(name in request.headers for name in _FORWARDED)


Family = GaugeMetricFamily


def _gauge(name: str, says: str, *labels: str) -> GaugeMetricFamily:
    return Family(f"placet_{name}", says, labels=labels)


def _value(name: str, says: str, value: float) -> GaugeMetricFamily:
    return Family(f"placet_{name}", says, value=value)


class Installation(Collector):
    """What the database says about the whole installation, read when it is asked for.

    A part that cannot be read in time is left out and named, so that its alarm is not silent for that reason; where
    the database is away, that is all there is.
    """

    def collect(self) -> Iterator[Metric]:
        unreadable = _gauge("metrics_unreadable", "1 for a part that could not be read this time.", "part")
        up = 1
        try:
            with observed.reading():
                for part in PARTS:
                    yield from self._read(part, unreadable)
        except Error as error:
            log.warning("metrics_without_database", error=type(error).__name__)
            up = 0
        finally:
            away.drop_failed_connection()
        yield _value("database_up", "Whether the database answers.", up)
        yield unreadable
        yield _value("long_polls", "Requests of this process that wait for a change.", waiters.present)

    def _read(self, part: "Part", unreadable: GaugeMetricFamily) -> list[Metric]:
        name = part.__name__.lstrip("_")
        try:
            with transaction.atomic(using=observed.ALIAS):
                found = list(part())
        except Error as error:
            log.warning("metrics_unreadable", part=name, error=type(error).__name__)
            unreadable.add_metric([name], 1)
            return []
        unreadable.add_metric([name], 0)
        return found


Part = Callable[[], Iterator[Metric]]


def _waiting() -> Iterator[Metric]:
    oldest = _gauge(
        "oldest_seconds", "Age of the oldest one, since it was made or last sent.", "what", "status"
    )
    found = observed.waiting()
    for what, *_ in observed.THINGS:
        counts = _gauge(f"{what}s", f"Open {what}s by status.", "status")
        for row in found:
            if row.what == what:
                counts.add_metric([row.status], row.count)
                oldest.add_metric([what, row.status], row.age)
        yield counts
    yield oldest


def _due() -> Iterator[Metric]:
    count = _gauge("due", "What is due and nobody has claimed.", "what", "lane")
    oldest = _gauge("oldest_due_seconds", "For how long the oldest of them has been due.", "what", "lane")
    longest = 0.0
    for what, lane, number, age in observed.due():
        count.add_metric([what, lane], number)
        oldest.add_metric([what, lane], age)
        longest = max(longest, age) if what == "command" else longest
    yield count
    yield oldest
    yield _value("oldest_due_command_seconds", "The oldest due action, of any lane; 0: none is due.", longest)


def _without_worker() -> Iterator[Metric]:
    family = _gauge(
        "commands_without_worker", "Actions whose version has not moved for a minute.", "operation", "version"
    )
    for operation, version, count in observed.without_worker():
        family.add_metric([operation, str(version)], count)
    yield family


def _holds() -> Iterator[Metric]:
    family = _gauge("holds", "Freezes and open circuits in force.", "reason", "status")
    for reason, status, count in observed.holds():
        family.add_metric([reason, status], count)
    yield family


def _packets() -> Iterator[Metric]:
    counts: dict[str, int] = dict.fromkeys(("unknown", "again", "stalled", "person"), 0)
    late = 0
    for cause, count, overdue in observed.packet_causes():
        counts[class_of(cause)] += count
        late += overdue
    family = _gauge("open_packets", "What has stopped, by the class of its cause.", "class")
    for name, count in counts.items():
        family.add_metric([name], count)
    yield family
    yield _value("overdue_packets", "Open packets whose time is over.", late)


def _decisions() -> Iterator[Metric]:
    counts = _gauge("decisions_last_hour", "Votes of people and rules in the last hour.", "kind", "via")
    ages = _gauge(
        "decision_age_seconds", "How long they had waited, of the last hour.", "kind", "via", "quantile"
    )
    for kind, via, count, quantiles in observed.decisions():
        counts.add_metric([kind, via], count)
        for name, value in zip(("0.5", "0.9"), quantiles, strict=True):
            ages.add_metric([kind, via, name], value)
    yield counts
    yield ages


def _history() -> Iterator[Metric]:
    count, age = observed.unsealed()
    yield _value(
        "unsealed_events", f"Events that wait for their seal, counted up to {observed.COUNTED}.", count
    )
    yield _value("oldest_unsealed_event_seconds", "For how long the oldest of them has waited.", age)
    checked = observed.checked()
    chains = _gauge("history_chains", "Chains by what their last check found.", "found")
    for name in ("holds", "broken", "never"):
        chains.add_metric([name], getattr(checked, name))
    yield chains
    yield _value("history_check_age_seconds", "Age of the oldest last check of a chain.", checked.age)


def _signed() -> Iterator[Metric]:
    found = observed.signed()
    yield _value("history_refused", "Histories that the signer refuses to sign.", found.refused)
    yield _value("history_signed", "Histories with a checkpoint.", found.signed)
    yield _value(
        "oldest_unsigned_event_seconds",
        "For how long the oldest sealed event waits to be signed.",
        found.waiting,
    )


def _processes() -> Iterator[Metric]:
    ages = _gauge("heartbeat_age_seconds", "Since the last sign of life of this kind.", "kind")
    alive = _gauge("processes", "Processes that showed a sign of life in the last minute.", "kind")
    signs = observed.signs()
    for kind in dict.fromkeys((*observed.KINDS, *(sign.kind for sign in signs))):
        of_kind = [sign for sign in signs if sign.kind == kind]
        if kind in observed.KINDS:
            alive.add_metric([kind], sum(sign.alive for sign in of_kind))
        if of_kind:
            ages.add_metric([kind], of_kind[0].age)
    yield ages
    yield alive


def _connections() -> Iterator[Metric]:
    states, most = observed.database_connections()
    family = _gauge("database_connections", "Connections to the database by state.", "state")
    for state, count in states.items():
        family.add_metric([state], count)
    yield family
    yield _value("database_connections_limit", "How many the server takes in all.", most)


PARTS: Final[tuple[Part, ...]] = (
    _waiting, _due, _without_worker, _holds, _packets, _decisions, _history, _signed, _processes, _connections,
)  # fmt: skip
