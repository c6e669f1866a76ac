"""Taking a packet along, and the runbook of a workflow."""

from typing import Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from access.auth import person_of
from access.web import role_required
from audit.actors import Actor
from common.clock import db_clock
from common.errors import NotFound
from common.web import http_methods
from repair.actions_export import JSON, export_packet
from repair.packet.runbook import runbook_of
from repair.views import ANY_ROLE, membership_of
from workflows import registry

TYPES: Final = {JSON: "application/json", "md": "text/markdown; charset=utf-8"}


@http_methods(read=(), write=("POST",))
@role_required(*ANY_ROLE)
@never_cache
def export(request: HttpRequest, packet_id: UUID, kind: str) -> HttpResponse:
    """The packet as a file. It is written down who took it, so it is asked for with POST."""
    membership = membership_of(request)
    try:
        made = export_packet(
            tenant_id=membership.tenant_id, packet_id=packet_id, kind=kind, by=person(request), clock=db_clock
        )  # fmt: skip
    except NotFound as missing:
        raise Http404 from missing
    name = f"packet-{packet_id}.{kind}"
    return HttpResponse(
        made, content_type=TYPES[kind], headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


@http_methods(read=("GET", "HEAD"))
@role_required(*ANY_ROLE)
@never_cache
def runbook(request: HttpRequest, name: str) -> HttpResponse:
    """What its author wrote for whoever has to act, beside what its contract promises."""
    flow = registry.installed(name)
    if flow is None:
        raise Http404
    context = {"flow": flow, "contract": flow.contract, "sections": runbook_of(name)}
    return render(request, "repair/runbook.html", context)


def person(request: HttpRequest) -> Actor:
    return person_of(request)
