"""What every request gets: an id of ours, and for signed-in people their membership."""

from collections.abc import Callable

import structlog
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse

from access.models import User
from access.policies import only_membership
from common.dbroles import as_system, bind_tenant
from common.ids import new_id

GetResponse = Callable[[HttpRequest], HttpResponse]


class RequestIdMiddleware:
    """Gives each request an id of our own: on the request, in every log line and event, and in the answer.

    A client's ``X-Request-ID`` is not taken over: it would let an outsider write into logs and history.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.request_id = request_id = new_id().hex  # type: ignore[attr-defined]
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = self.get_response(request)
        response["X-Request-ID"] = request_id
        return response


class MembershipMiddleware:
    """Sets ``request.membership`` and ``request.tenant``; both are None for everybody who is not signed in.

    From here on the request sees the rows of that tenant, by queries and by the database's row-level security.

    Looked up on each request: whoever lost their account or membership is signed out at the next one. Nothing is
    written for it. One active membership is used, the oldest; choosing among several is not offered yet. Staff of
    Django's admin need no membership there, and are nobody on the desks.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with as_system():  # who asks, and for which tenant, is found in session, account and membership
            membership = only_membership(request.user) if isinstance(request.user, User) else None
        if membership is not None:
            bind_tenant(membership.tenant_id)
        elif not getattr(request.user, "is_staff", False):
            request.user = AnonymousUser()
        request.membership = membership  # type: ignore[attr-defined]
        request.tenant = membership.tenant if membership else None  # type: ignore[attr-defined]
        return self.get_response(request)
