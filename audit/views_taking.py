"""The list of events as a file. Who took which part of the history along is an event itself, so this is a POST."""

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache

from audit.filters import HistoryFilter
from audit.readers import for_history_readers, reader_actor
from audit.selectors import events
from audit.taking import EVENT_COLUMNS, TYPES, TooMany, Wanted, event_lines, take_along
from common.clock import db_clock
from common.links import same_list
from common.rates import RateLimited
from common.web import http_methods


@http_methods(read=(), write=("POST",))
@for_history_readers
@never_cache
def take(request: HttpRequest) -> HttpResponseBase:
    """The events that the same filters show on the page, all pages of them."""
    tenant_id = request.tenant.pk  # type: ignore[attr-defined]
    form, kind = HistoryFilter(request.POST), wanted_form(request)
    found = events(tenant_id, form.filters(db_clock())).filter(form.words(tenant_id))
    wanted = Wanted(tenant_id, "history", kind, [(name, value) for name, _, value in form.tokens()])
    try:
        return take_along(wanted, EVENT_COLUMNS, event_lines(found, kind), by=reader_actor(request))
    except (TooMany, RateLimited) as refused:
        return refuse(request, refused, reverse("audit:history"))


def wanted_form(request: HttpRequest) -> str:
    asked = request.POST.get("as", "")
    return asked if asked in TYPES else "csv"


def refuse(request: HttpRequest, refused: TooMany | RateLimited, page: str) -> HttpResponseBase:
    """Back to the list as it was, with why there is no file."""
    messages.error(request, refused.message, "wait")
    asked = request.POST.copy()
    for name in ("csrfmiddlewaretoken", "as"):
        asked.pop(name, None)
    return redirect(same_list(page, asked))
