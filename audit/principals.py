"""Who asks, as the routes of every app see it. `access` makes the principals; this layer only reads them."""

from dataclasses import dataclass
from typing import Literal

from django.http import HttpRequest

from audit.actors import Actor
from common.errors import Refused
from common.models import Tenant

Kind = Literal["token", "session"]


class NotSignedIn(Refused):
    """This needs a valid bearer token, or a signed-in person where the route takes one."""

    code = "not_authenticated"
    http_status = 401


class ScopeMissing(Refused):
    """This token may not do that."""

    code = "scope_missing"
    http_status = 403


@dataclass(frozen=True, slots=True)
class Principal:
    """The tenant it may see, the actor its actions are recorded under, and what a token was given."""

    tenant: Tenant
    actor: Actor
    kind: Kind
    scopes: frozenset[str] = frozenset()


def principal_of(request: HttpRequest) -> Principal:
    """The principal that the route's authentication put on the request, or NotSignedIn."""
    principal = getattr(request, "principal", None)
    if not isinstance(principal, Principal):
        raise NotSignedIn
    return principal


def require_scope(request: HttpRequest, scope: str) -> Principal:
    """The principal if its token has the scope, else ScopeMissing. A session has no scopes: roles say what it may."""
    principal = principal_of(request)
    if scope not in principal.scopes:
        raise ScopeMissing(scope=str(scope))
    return principal
