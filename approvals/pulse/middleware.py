"""Answers the pulse of pages whose session this process has checked, before anything else of a request is done."""

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

from approvals.pulse.listener import listener
from approvals.pulse.memory import Present, memory

PATH: Final = "/review/pulse/"
CURSOR: Final = "X-Placet-Pulse"
"""Where the next question begins, also where there is nothing to tell."""


class PulseMiddleware:
    """From memory, without a statement. Whoever is not known there takes the way of every other request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path == PATH and request.method == "GET" and memory.is_fresh:
            present = memory.present(request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""))
            if present is not None:
                return answer(request, present)
        return self.get_response(request)


def answer(request: HttpRequest, present: Present) -> HttpResponse:
    """What this page does not know yet: 204 with a new cursor where that is nothing."""
    listener.attend()
    cursor = request.GET.get("since", "")
    told = memory.told(present.tenant_id, cursor)
    if told.stale:
        listener.reach_back(cursor)
        told = memory.told(present.tenant_id, cursor)
    rights = request.GET.get("rights", "")
    changed = bool(rights) and rights != present.rights
    asked, unread = request.GET.get("unread", ""), memory.unread.get(present.key)
    more = bool(asked) and unread is not None and str(unread) != asked
    response: HttpResponse
    if told.is_news or changed or more:
        body = {"waiting": told.waiting, "changes": told.changes, "stale": told.stale, "rights": changed}
        body |= {"unread": unread} if unread is not None else {}
        response = JsonResponse(body)
    else:
        response = HttpResponse(status=204)
    response[CURSOR], response["Vary"] = told.cursor, "Cookie"
    return response
