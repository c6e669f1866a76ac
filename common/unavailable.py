"""What a request is answered while the database is away: 503, with the stable code or as a page, never a 500.

Errors of views come by `UnavailableMiddleware`, those of other middleware by `server_error`, Django's last resort:
both lead to `answer`.
"""

import sys
from collections.abc import Callable
from typing import Final

import structlog
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views import defaults
from ninja.utils import check_csrf

from common import away
from common.problems import API_ROOT, Unavailable, problem

log = structlog.get_logger("placet.unavailable")

RETRY_AFTER_S: Final = 5
_WORDS: Final = ("reason", "note", "comment", "text", "message")


def answer(request: HttpRequest, error: BaseException) -> HttpResponse:
    """The answer to a request that met this error. What a person had written is given back with it."""
    away.note(error)
    away.drop_failed_connection()
    sqlstate = getattr(error.__cause__, "sqlstate", None)
    log.warning("database unavailable", error=type(error).__name__, sqlstate=sqlstate)
    if request.path.startswith(API_ROOT):
        return problem(request, Unavailable(retry_after=RETRY_AFTER_S))
    # Without the request: what pages show around their content would have to be read from the database.
    page = HttpResponse(render_to_string("503.html", {"written": written_by(request)}), status=503)
    page["Retry-After"] = str(RETRY_AFTER_S)
    return page


def written_by(request: HttpRequest) -> list[str]:
    """What a person wrote into a form of ours, which has proved that it is; nothing of anybody else's."""
    if request.method != "POST" or not _is_ours(request):
        return []
    written = (str(text) for name, text in request.POST.items() if name.endswith(_WORDS))
    return [text for text in written if text.strip()]


def _is_ours(request: HttpRequest) -> bool:
    """Whether the form has its token. Asked here where the database was away before Django came to ask it itself."""
    return bool(getattr(request, "csrf_processing_done", False)) or check_csrf(request) is None


def server_error(request: HttpRequest) -> HttpResponse:
    """``handler500``: what no view and no middleware caught."""
    error = sys.exception()
    if error is not None and away.is_away(error):
        return answer(request, error)
    return defaults.server_error(request)


class UnavailableMiddleware:
    """Answers for views that met a database that is away."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return answer(request, error) if away.is_away(error) else None
