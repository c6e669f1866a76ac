"""Pages about content that was erased, is damaged, or whose key this server was not given: said in words, never a 500.

The API says the same by the refusals themselves, see `common.problems`.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string

from common.content_errors import ContentErased
from common.content_keys import KeyUnknown, SealBroken
from common.unavailable import written_by


class UnreadableMiddleware:
    """Answers for views that met content which cannot be read."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, ContentErased | SealBroken | KeyUnknown):
            return None
        context = {
            "says": error.message, "code": error.code, "status": error.http_status,
            "request_id": getattr(request, "request_id", ""), "written": written_by(request),
        }  # fmt: skip
        return HttpResponse(render_to_string("unreadable.html", context), status=error.http_status)
