"""The repair desk, to read: what stopped, and what is known and not known about each stop."""

from typing import Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from access.enums import Role
from access.models import Membership
from access.policies import can_role
from access.web import role_required
from common.clock import db_clock
from common.errors import NotFound
from common.web import http_methods
from repair.choices.case import REPAIRERS
from repair.choices.offering import bulk_links
from repair.detail import packet_screen
from repair.filters import PacketFilter
from repair.following import after_effects
from repair.incidents.acting import READERS
from repair.incidents.ways import alike_run
from repair.listing import base_packets, rows_of, stopped
from repair.returning import learned
from repair.selectors import get_packet, packets_of_run

ANY_ROLE: Final = tuple(Role)


@http_methods(read=("GET", "HEAD"))
@role_required(*ANY_ROLE)
@never_cache
def packets(request: HttpRequest) -> HttpResponse:
    """Everything that stopped and is not settled, in its sections."""
    tenant_id, now = membership_of(request).tenant_id, db_clock()
    filters = PacketFilter(request.GET, queryset=base_packets(tenant_id), tenant_id=tenant_id)
    context = {
        "stopped": stopped(tenant_id, filters, request.GET, now), "filter": filters, "now": now,
        "bulk": bulk_links(membership_of(request), request.GET),
        "incidents": can_role(membership_of(request), *READERS),
    }  # fmt: skip
    fragment = asks_for(request, "stopped")
    template = "repair/includes/list.html" if fragment else "repair/packets.html"
    return render(request, template, context | {"fragment": fragment})


@http_methods(read=("GET", "HEAD"))
@role_required(*ANY_ROLE)
@never_cache
def packet(request: HttpRequest, packet_id: UUID) -> HttpResponse:
    """One packet."""
    membership = membership_of(request)
    try:
        found = get_packet(membership.tenant_id, packet_id)
    except NotFound as missing:
        raise Http404 from missing
    now = db_clock()
    return render(
        request, "repair/packet.html", {"packet": packet_screen(found, membership, now), "now": now}
    )


@http_methods(read=("GET", "HEAD"))
@role_required(*ANY_ROLE)
@never_cache
def of_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The packets of one run and what may follow its effects, as a fragment that the page of the run includes by this
    address.
    """
    now = db_clock()
    membership = membership_of(request)
    rows = rows_of(packets_of_run(membership.tenant_id, run_id), now)
    context = {
        "rows": rows,
        "after": after_effects(run_id, membership),
        "now": now,
        "alike_href": alike_run(run_id, membership, now),
    }
    return render(request, "repair/includes/of_run.html", context)


@http_methods(read=("GET", "HEAD"))
@role_required(*ANY_ROLE)
@never_cache
def causes(request: HttpRequest) -> HttpResponse:
    """What keeps coming back."""
    membership = membership_of(request)
    told = learned(membership.tenant_id, request.GET.get("days", ""), db_clock())
    context = {"learned": told, "may_act": can_role(membership, *REPAIRERS)}
    return render(request, "repair/causes.html", context)


def membership_of(request: HttpRequest) -> Membership:
    membership: Membership = request.membership  # type: ignore[attr-defined]
    return membership


def asks_for(request: HttpRequest, target: str) -> bool:
    """Whether htmx asks for what goes into ``target``, rather than for the whole page of a history entry."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and htmx.target == target and not htmx.history_restore_request
