"""What is taken out of the history to be kept or checked elsewhere.

A bundle is asked for with POST, because it is written down who took it. A receipt changes nothing.
"""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache

from audit import receipts
from audit.bundle import Scope
from audit.exporting import export, file_response
from audit.finding import as_uuid
from audit.models import Event
from audit.readers import for_history_readers, for_members, may_take_contents, reader_actor
from common.clock import db_clock
from common.errors import NotFound
from common.rates import RateLimited
from common.strictjson import canonicalize
from common.web import http_methods


@http_methods(read=(), write=("POST",))
@for_history_readers
@never_cache
def bundle(request: HttpRequest) -> HttpResponseBase:
    """Of the whole tenant, or of the run that the form names."""
    named = request.POST.get("run_id", "")
    run_id = as_uuid(named)
    if named and run_id is None:
        raise Http404
    return _answer(request, run_id)


def _answer(request: HttpRequest, run_id: UUID | None) -> HttpResponseBase:
    tenant = request.tenant  # type: ignore[attr-defined]
    contents = may_take_contents(request.membership)  # type: ignore[attr-defined]
    scope = Scope(tenant.pk, run_id, contracts=contents, views=contents)
    try:
        return file_response(export(tenant, scope, by=reader_actor(request)))
    except NotFound as missing:
        raise Http404 from missing
    except RateLimited as refused:
        wait = refused.details.get("retry_after", 60)
        messages.error(
            request, f"Too many exports in a short time. The next one can be made in {wait} s.", "wait"
        )
        return redirect("audit:history")


@http_methods(read=("GET", "HEAD"))
@for_history_readers
@never_cache
def event_receipt(request: HttpRequest, event_id: UUID) -> HttpResponse:
    """A signed receipt of any event, to be kept elsewhere."""
    return _receipt(lambda tenant_id: receipts.get_event(tenant_id, event_id, None), request)


@http_methods(read=("GET", "HEAD"))
@for_members
@never_cache
def decision_receipt(request: HttpRequest, proposal_id: UUID, decision_id: UUID) -> HttpResponse:
    """The same of a decision, for everybody who sees it on the page of its proposal."""
    return _receipt(
        lambda tenant_id: receipts.event_of_decision(tenant_id, proposal_id, decision_id), request
    )


def _receipt(find: Callable[[UUID], Event], request: HttpRequest) -> HttpResponse:
    try:
        made = receipts.receipt(find(request.tenant.pk), db_clock)  # type: ignore[attr-defined]
    except NotFound as missing:
        raise Http404 from missing
    except RateLimited as refused:
        return HttpResponse(
            refused.message, status=refused.http_status, content_type="text/plain; charset=utf-8"
        )
    headers = {"Content-Disposition": f'attachment; filename="receipt-{made["event_id"]}.json"'}
    return HttpResponse(canonicalize(made), content_type="application/json", headers=headers)
