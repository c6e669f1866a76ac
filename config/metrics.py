"""``/metrics``: a few numbers in Prometheus' text format, for the installation's operators and nobody else."""

import hmac
from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.db import connection
from django.db.models import Count, Model
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from approvals.enums import ProposalStatus
from approvals.models import Proposal
from common.longpoll import waiters
from repair.enums import PacketStatus
from repair.models import RepairPacket
from workflows.enums import CommandStatus, RunStatus
from workflows.models import Command, Run

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})
_FORWARDED: Final = (
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Real-IP",
    "Via",
)
# What has ended is left out: it only grows, and counting it would take longer every day.
_LIVE: Final[tuple[tuple[str, type[Model], tuple[str, ...]], ...]] = (
    ("runs", Run, tuple(status for status in RunStatus.values if status not in RunStatus.final_states)),
    ("proposals", Proposal, ProposalStatus.open_states),
    ("commands", Command, CommandStatus.live_states),
    ("packets", RepairPacket, PacketStatus.open_states),
)
_OLDEST: Final = """
    SELECT COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - MIN(due_at)), 0)
    FROM workflows_command WHERE status IN ('ready', 'retry_wait') AND due_at <= clock_timestamp()
"""


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """With the token of ``PLACET_METRICS_TOKEN``, or from this very machine where none is set; else 404."""
    if not _may_read(request):
        raise Http404
    return HttpResponse("\n".join(_lines()) + "\n", content_type=MEDIA_TYPE)


def _may_read(request: HttpRequest) -> bool:
    """A proxy on this machine calls from here too, on behalf of anybody: what it forwards does not count as local."""
    wanted: str = settings.PLACET_METRICS_TOKEN
    if wanted:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), wanted.encode())
    local = request.META.get("REMOTE_ADDR") in _LOOPBACK
    return local and not any(name in request.headers for name in _FORWARDED)


def _lines() -> Iterator[str]:
    for name, model, states in _LIVE:
        yield f"# TYPE placet_{name} gauge"
        found = model._default_manager.filter(status__in=states).values_list("status").order_by("status")
        counts = dict(found.annotate(Count("pk")))
        yield from (f'placet_{name}{{status="{state}"}} {counts.get(state, 0)}' for state in states)
    yield "# TYPE placet_oldest_due_command_seconds gauge"
    yield f"placet_oldest_due_command_seconds {_oldest_due():.3f}"
    yield "# TYPE placet_long_polls gauge"
    yield f"placet_long_polls {waiters.present}"


def _oldest_due() -> float:
    with connection.cursor() as cursor:
        cursor.execute(_OLDEST)
        row = cursor.fetchone()
    return float(row[0])
