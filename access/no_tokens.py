"""No token on the pages: what changes something there is done by a signed-in person, and by nothing else."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from access.auth import TokenCannotDecide
from common.problems import API_ROOT, problem

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class NoTokenOnPagesMiddleware:
    """Refuses every change on a page that comes with an ``Authorization`` header, with a session beside it or not.

    A program that holds a person's session and a token would else be the proposer's side and the decider in one. The
    API decides by itself what each of its routes takes.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        changes = request.method not in SAFE and not request.path.startswith(API_ROOT)
        if changes and "Authorization" in request.headers:
            return problem(request, TokenCannotDecide())
        return self.get_response(request)
