"""Limits on who asks how often, and on how much one request may carry, before anything is done for it.

The rates are counted by ids that we gave out. ``X-Forwarded-For`` and its like are not looked at, so nobody gets a new
bucket by writing another one.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string

from access import auth
from common.charsets import ENCODING
from common.errors import Refused
from common.problems import API_ROOT, BadRequest, BodyTooLarge, check_length, problem
from common.rates import Rate, RateLimited, check_caller, check_rate
from common.unavailable import written_by

DECIDING: Final = frozenset({"approvals:decide", "approvals:alike", "api-v1:decide", "api-v1:say"})
"""The views by which a person decides or attests."""
IN_A_LIST: Final = "chosen"
"""The field of a form that decides several at once: each of them counts."""
FORM_BYTES: Final = 4 * 1024 * 1024
"""What is no JSON has no evidence in it, and is read by people's browsers before anybody is asked who they are."""
OF_THEIR_OWN: Final = 4
"""A person's requests that may change something, as a multiple of their decisions: opening a part is one too."""


class TokenAuth(auth.TokenAuth):
    """A bearer token, and the rates of the token and of its tenant. Raises RateLimited (429)."""

    def __call__(self, request: HttpRequest) -> Any:
        principal = super().__call__(request)
        if principal.token is not None:
            check_caller(f"token:{principal.token.pk}", principal.tenant.pk)
        return principal


class BodyLimitMiddleware:
    """Refuses bodies that are too long, and whatever is not in UTF-8, before anything reads them.

    Files in forms are included.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            is_json = request.content_type == "application/json"
            check_length(request, settings.DATA_UPLOAD_MAX_MEMORY_SIZE if is_json else FORM_BYTES)
        except BodyTooLarge as refused:
            return answer(request, refused)
        if ENCODING in request.META:
            return answer(request, BadRequest())
        return self.get_response(request)


class PeopleRateMiddleware:
    """Refuses people who are quicker than people are; after the check that their form was ours."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        membership = getattr(request, "membership", None)
        if request.method != "POST" or membership is None:
            return None
        try:
            _check_person(request, membership.user_id)
        except RateLimited as refused:
            return answer(request, refused)
        return None


def _check_person(request: HttpRequest, user_id: UUID) -> None:
    a_minute: float = settings.PLACET_DECISIONS_PER_MINUTE
    check_rate(f"person:{user_id}", Rate.of(a_minute * OF_THEIR_OWN))
    match = request.resolver_match
    if match is not None and match.view_name in DECIDING:
        count = max(1, len(request.POST.getlist(IN_A_LIST)))
        check_rate(f"decides:{user_id}", Rate.of(a_minute, burst_minutes=2), count=count)


def answer(request: HttpRequest, refused: Refused) -> HttpResponse:
    """The refusal as a problem document, or as a page that gives back what was written."""
    if request.path.startswith(API_ROOT):
        return problem(request, refused)
    if refused.http_status == HTTPStatus.BAD_REQUEST:
        return HttpResponse(render_to_string("400.html"), status=refused.http_status)
    wait = refused.details.get("retry_after")
    written = written_by(request) if refused.http_status == HTTPStatus.TOO_MANY_REQUESTS else []
    page = render_to_string("limit.html", {"refused": refused, "wait": wait, "written": written})
    response = HttpResponse(page, status=refused.http_status)
    if wait:
        response["Retry-After"] = str(wait)
    return response
