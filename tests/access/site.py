"""A small site on the product's doors: one API for tokens, one for sessions, pages by role, sign-in and sign-out."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from ninja import NinjaAPI, Router

from access.auth import SessionAuth, TokenAuth, principal_of, require_scope
from access.enums import Role, Scope
from access.web import role_required
from common.errors import Refused
from common.models import Tenant
from common.problems import problem
from common.web import http_methods

api = NinjaAPI(urls_namespace="test-access")
tokens, sessions = Router(), Router()


@api.exception_handler(Refused)
def refused(request: HttpRequest, refusal: Refused) -> HttpResponse:
    return problem(request, refusal)


def said(request: HttpRequest) -> dict[str, Any]:
    principal = principal_of(request)
    actor = principal.actor
    return {
        "tenant": principal.tenant.slug, "kind": principal.kind, "scopes": sorted(principal.scopes),
        "performed_by": actor.performed_by, "on_behalf_of": actor.on_behalf_of, "via": str(actor.via),
        "owner": str(actor.owner), "user": str(actor.user_id), "request_id": actor.request_id,
    }  # fmt: skip


@tokens.get("who")
def who(request: HttpRequest) -> dict[str, Any]:
    return said(request)


@tokens.post("runs")
def runs(request: HttpRequest) -> dict[str, Any]:
    require_scope(request, Scope.RUNS_WRITE)
    return said(request)


@sessions.get("view")
def view(request: HttpRequest) -> dict[str, Any]:
    return said(request)


@sessions.post("decide")
def decide(request: HttpRequest) -> dict[str, Any]:
    return said(request)


api.add_router("tokens/", tokens, auth=TokenAuth())
api.add_router("sessions/", sessions, auth=SessionAuth())


@role_required(Role.REVIEWER, Role.ADMIN)
@http_methods(write=("POST",))
def review(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"for {request.tenant.slug}")  # type: ignore[attr-defined]


@role_required()
@http_methods()
def anybody(request: HttpRequest) -> HttpResponse:
    return HttpResponse("for members")


@http_methods()
def writes_in_a_read(request: HttpRequest) -> HttpResponse:
    Tenant.objects.create(slug="x", name="X")
    return HttpResponse("never")


urlpatterns = [
    path("api/routes/", api.urls),
    path("review/", review),
    path("anybody/", anybody),
    path("writes/", writes_in_a_read),
    path("", include("access.urls")),
]
