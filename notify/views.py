"""What a person was told: their list, and the links in their mails.

A GET changes nothing, however often a mail scanner follows a link: what was read is what somebody said by a form.
"""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from access.screens.asking import actor_of, reader_of
from access.web import role_required
from common import cursors
from common.clock import db_clock
from common.cursors import BadCursor
from common.links import same_list
from common.web import http_methods
from notify.actions.reading import mark_all_read, mark_read
from notify.actions.refusing import note_refused
from notify.links import is_signed
from notify.models import Notice
from notify.screens.notices import rows_of
from notify.selectors import notices as notices_of
from notify.selectors import preference_of

LIST = "notices"


@http_methods(read=("GET", "HEAD"))
@role_required()
@never_cache
def notices(request: HttpRequest) -> HttpResponse:
    """The newest first; by default those that are unread."""
    reader, now = reader_of(request), db_clock()
    everything = request.GET.get("all") == "yes"
    found = notices_of(reader.tenant_id, reader.accounts, unread=not everything)
    try:
        page = cursors.page(found, list_name=LIST, cursor=request.GET.get("cursor", ""), size=30)
    except BadCursor as error:
        raise Http404 from error
    here = reverse("notify:notices")
    context = {
        "rows": rows_of(page.rows, now), "everything": everything, "now": now,
        "zone": preference_of(reader.tenant_id, reader.user_id).zone,
        "newer": same_list(here, request.GET) if request.GET.get("cursor") else "",
        "older": same_list(here, request.GET, cursor=page.next_cursor) if page.next_cursor else "",
    }  # fmt: skip
    return render(request, "notify/notices.html", context)


@http_methods(read=(), write=("POST",))
@role_required()
@never_cache
def read_all(request: HttpRequest) -> HttpResponse:
    """Everything is read."""
    reader = reader_of(request)
    count = mark_all_read(tenant_id=reader.tenant_id, accounts=reader.accounts, clock=db_clock)
    messages.info(request, f"{count} marked as read." if count else "Nothing was unread.", "ok")
    return redirect("notify:notices")


@http_methods(read=(), write=("POST",))
@role_required()
@never_cache
def read(request: HttpRequest, notice_id: UUID) -> HttpResponse:
    """One is read; the list goes on."""
    _read(request, notice_id)
    return redirect("notify:notices")


@http_methods(read=(), write=("POST",))
@role_required()
@never_cache
def go(request: HttpRequest, notice_id: UUID) -> HttpResponse:
    """One is read, and its page opened."""
    return redirect(_read(request, notice_id).message.href)


def _read(request: HttpRequest, notice_id: UUID) -> Notice:
    reader = reader_of(request)
    found = mark_read(
        tenant_id=reader.tenant_id, accounts=reader.accounts, notice_id=notice_id, clock=db_clock
    )
    if found is None:
        raise Http404
    return found


@http_methods(read=("HEAD",), write=("GET",))
@role_required()
@never_cache
def link(request: HttpRequest, notice_id: UUID, signature: str) -> HttpResponse:
    """From a mail to the page, for the person who was sent it and is signed in. It is no way in, and decides nothing.

    Somebody else who is signed in gets 403, which is the one thing that is written down here, once: a link was passed
    on.
    Once nothing is asked any more, the link is dead and says how it ended.
    """
    reader = reader_of(request)
    found = Notice.objects.filter(tenant_id=reader.tenant_id, pk=notice_id).select_related("message").first()
    if found is None or not is_signed(found.pk, found.user_id, signature):
        raise Http404
    if found.user_id not in reader.accounts:
        if request.method == "GET":
            note_refused(notice=found, by=actor_of(request))
        return _without_referrer(render(request, "notify/not_yours.html", status=403))
    [row] = rows_of([found], db_clock())
    if not row.ended:
        return _without_referrer(redirect(row.href))
    context = {"row": row, "zone": preference_of(reader.tenant_id, reader.user_id).zone}
    return _without_referrer(render(request, "notify/over.html", context, status=410))


def _without_referrer(response: HttpResponse) -> HttpResponse:
    response["Referrer-Policy"] = "no-referrer"
    return response
