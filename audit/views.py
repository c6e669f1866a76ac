"""The history: events with filters, one event in full, and whether the chain holds.

Reading changes nothing. Checking the whole chain is a POST, because what it finds is written down.
"""

from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.db.models import F
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from audit.checks import check_chain
from audit.detail import event_detail
from audit.filters import TABS, HistoryFilter
from audit.models import Event
from audit.names import said_in
from audit.panel import chain_panel
from audit.proof_panel import proof_panel
from audit.readers import for_history_readers, may_read_history, reader_actor
from audit.selectors import events
from audit.tables import event_rows
from audit.taking import LIMIT
from audit.through import said_through
from common import cursors
from common.clock import db_clock
from common.cursors import BadCursor
from common.links import same_list
from common.web import http_methods

TARGET: Final = "events"
SAID: Final = {"actor": said_in, "through": said_through}
"""What is asked for by an id and said by a name."""
EXACT: Final = (
    "since",
    "until",
    "actor",
    "run",
    "subject",
    "digest",
    "operation",
    "target",
    "kinds",
    "through",
)


@http_methods(read=("GET", "HEAD"))
@never_cache
def history(request: HttpRequest) -> HttpResponse:
    """Events, newest first. Whoever may not read the history has a search on the runs instead."""
    membership = getattr(request, "membership", None)
    if membership is not None and not may_read_history(membership) and request.GET.get("q"):
        return redirect(f"/runs/?{urlencode({'q': request.GET['q']})}")
    return _history(request)


@for_history_readers
def _history(request: HttpRequest) -> HttpResponse:
    tenant_id, now = request.tenant.pk, db_clock()  # type: ignore[attr-defined]
    form = HistoryFilter(request.GET)
    rows, older, first = _page(request, form, tenant_id, now)
    context: dict[str, Any] = {
        "form": form, "rows": rows, "older": _address(request, cursor=older) if older else "",
        "newest": "" if first else _address(request),
        "tokens": [
            {"word": word, "value": SAID[name](tenant_id, value) if name in SAID else value,
             "without": _address(request, **{name: ""})}
            for name, word, value in form.tokens()
        ],
        "tabs": [
            {"word": word, "href": _address(request, **_asking(kinds)), "current": _is_asked(request, kinds)}
            for kinds, word in TABS.items()
        ],
        "more": any(value for name in EXACT if (value := request.GET.get(name, "")) not in TABS),
        "asked": form.asked_again, "limit": LIMIT,
    }  # fmt: skip
    if _asks_for(request, TARGET):
        return render(request, "audit/includes/list.html", context)
    may_send = request.membership.has_role("admin")  # type: ignore[attr-defined]
    panels = {
        "chain": chain_panel(tenant_id, now),
        "proof": proof_panel(tenant_id, now),
        "may_send": may_send,
    }
    return render(request, "audit/history.html", context | panels)


@http_methods(read=("GET", "HEAD"))
@for_history_readers
@never_cache
def event(request: HttpRequest, event_id: UUID) -> HttpResponse:
    """One event: as a page, or as its row of the list, open or (``?open=no``) closed again."""
    found = events(request.tenant.pk).filter(pk=event_id).first()  # type: ignore[attr-defined]
    if found is None:
        raise Http404
    if not _asks_for(request, f"e-{event_id}"):
        return render(request, "audit/event.html", {"event": event_detail(found)})
    if request.GET.get("open") == "no":
        [row] = event_rows([found])
        return render(request, "audit/includes/row.html", {"row": row, "event": None})
    detail = event_detail(found)
    return render(request, "audit/includes/row.html", {"row": detail.row, "event": detail})


@http_methods(read=(), write=("POST",))
@for_history_readers
@never_cache
def check(request: HttpRequest) -> HttpResponse:
    """Recompute the whole chain now, and write down what was found."""
    verdict = check_chain(request.tenant.pk, by=reader_actor(request))  # type: ignore[attr-defined]
    if verdict.holds:
        messages.success(
            request, f"All {verdict.sealed:,} sealed events were recomputed. The chain holds.", "ok"
        )
    else:
        messages.error(request, f"The chain does not hold. {verdict.meaning}", "bad")
    return redirect("audit:history")


def _page(
    request: HttpRequest, form: HistoryFilter, tenant_id: UUID, now: Any
) -> tuple[list[Any], str, bool]:
    """The rows, the cursor of the next page, and whether this is the first one. A strange cursor begins anew."""
    found = events(tenant_id, form.filters(now)).filter(form.words(tenant_id)).annotate(created_at=F("at"))
    cursor = request.GET.get("cursor", "")
    try:
        page: cursors.Page[Event] = cursors.page(found, list_name="events", cursor=cursor)
    except BadCursor:
        cursor, page = "", cursors.page(found, list_name="events")
    return event_rows(page.rows), page.next_cursor, not cursor


def _asking(kinds: str) -> dict[str, str]:
    return {"kind": "", "kinds": kinds} if " " in kinds else {"kind": kinds, "kinds": ""}


def _is_asked(request: HttpRequest, kinds: str) -> bool:
    return all(request.GET.get(name, "") == value for name, value in _asking(kinds).items())


def _address(request: HttpRequest, **changed: str) -> str:
    return same_list(reverse("audit:history"), request.GET, **changed)


def _asks_for(request: HttpRequest, target: str) -> bool:
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and htmx.target == target and not htmx.history_restore_request
