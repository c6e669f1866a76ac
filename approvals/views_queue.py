"""The queue of the review desk, and what tells an open page that it has changed. A GET changes nothing."""

from datetime import datetime
from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from access.sessions import session_left
from access.web import role_required
from approvals import actions_claims
from approvals.enums import ProposalStatus
from approvals.filters import QueueFilter
from approvals.models import Proposal
from approvals.policies import can_decide
from approvals.pulse.listener import listener
from approvals.pulse.memory import memory
from approvals.pulse.middleware import answer
from approvals.pulse.reading import session
from approvals.refusals import DecisionRefused
from approvals.screens.claims import holder_of
from approvals.screens.queue import arrived, queue_screen, waiting
from approvals.tables import QueueTable
from approvals.views import actor_of, membership_of, proposal_of, swaps_into
from common.clock import db_clock
from common.web import http_methods

CHECKED_S: Final = 120.0
"""A session that only asks for the pulse is looked at as a whole so often; meanwhile `check_sessions` looks at it."""


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def queue(request: HttpRequest) -> HttpResponse:
    """The waiting proposals, the most urgent first, or in the order and of the kind that the address says."""
    membership = membership_of(request)
    now = db_clock()
    filters = _filters(request, membership.tenant_id, now)
    screen = queue_screen(filters=filters, membership=membership, query=request.GET, now=now)
    tables = [{"word": group.word, "table": QueueTable(group.rows)} for group in screen.groups]
    fragment = swaps_into(request, "queue")
    template = "approvals/includes/queue.html" if fragment else "approvals/queue.html"
    context = {"queue": screen, "tables": tables, "filter": filters, "now": now, "htmx": fragment}
    return render(request, template, context)


def _filters(request: HttpRequest, tenant_id: UUID, now: datetime) -> QueueFilter:
    return QueueFilter(request.GET, queryset=waiting(tenant_id, now), tenant_id=tenant_id)


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def arrivals(request: HttpRequest) -> HttpResponse:
    """How many have come into this list since it was made; 204 while there are none. Rows never move by themselves."""
    membership, now = membership_of(request), db_clock()
    since = instant(request.GET.get("since", ""))
    filters = _filters(request, membership.tenant_id, now)
    if since is None:
        return HttpResponse(status=204)
    count, address = arrived(filters=filters, membership=membership, query=request.GET, since=since, now=now)
    if not count:
        return HttpResponse(status=204)
    return render(request, "approvals/includes/arrivals.html", {"count": count, "address": address})


@http_methods(read=("GET", "HEAD"))
@role_required()
def pulse(request: HttpRequest) -> HttpResponse:
    """What has happened since a place; 204 while that is nothing. From here on it is answered by `PulseMiddleware`."""
    membership = membership_of(request)
    groups = list(membership.groups.values_list("id", flat=True))
    key, ends = request.session.session_key or "", memory.clock() + min(CHECKED_S, session_left(request))
    memory.enter(session(key, membership, membership.user.password, groups, ends))
    listener.attend()
    if not memory.is_fresh:
        return HttpResponse(status=503)
    present = memory.present(key)
    return answer(request, present) if present else HttpResponse(status=503)


@http_methods(read=("GET", "HEAD"), write=("POST",))
@role_required()
@never_cache
def hold(request: HttpRequest, proposal_id: UUID) -> HttpResponse:
    """Who reads a proposal; and to hold it, to give it back, to take it over, to hold it for longer."""
    row = proposal_of(request, proposal_id)
    if request.method != "POST":
        return held(request, row)
    asked, by = request.POST.get("act", ""), actor_of(request)
    refusal = None
    try:
        if asked in ("hold", "take_over"):
            take_over = asked == "take_over"
            actions_claims.hold(
                tenant_id=row.tenant_id, proposal_id=row.pk, take_over=take_over, by=by, clock=db_clock
            )
        elif asked in ("release", "renew"):
            act = getattr(actions_claims, asked)
            act(tenant_id=row.tenant_id, proposal_id=row.pk, by=by, clock=db_clock)
    except DecisionRefused as refused:
        refusal = refused
    if request.htmx or refusal:  # type: ignore[attr-defined]
        return held(request, row, refusal)
    return redirect("approvals:proposal", row.pk)


def held(request: HttpRequest, row: Proposal, refusal: DecisionRefused | None = None) -> HttpResponse:
    """The line that says who reads it, with its button; nothing about what no longer waits."""
    now, by = db_clock(), actor_of(request)
    if refusal is None and (row.status != ProposalStatus.PENDING or now >= row.decide_by):
        return HttpResponse('<div id="hold" hidden></div>')
    context = {
        "proposal": row, "holder": holder_of(row.tenant_id, row.pk, membership_of(request).user_id, now),
        "may": can_decide(row, by), "refusal": refusal, "now": now,
    }  # fmt: skip
    whole = refusal is not None and not request.htmx  # type: ignore[attr-defined]
    template = "approvals/hold.html" if whole else "approvals/includes/hold.html"
    return render(request, template, context, status=refusal.http_status if refusal else 200)


def instant(text: str) -> datetime | None:
    """An aware instant as an address of ours carries it, or None for anything else."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None
