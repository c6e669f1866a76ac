"""Authentication of the API: bearer tokens on most routes, signed-in people on those that decide, never both.

django-ninja stops at the first authenticator that raises, so each router takes one of these, not a list.
Both raise `Refused`; the API turns that into a problem document. Neither writes anything.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja.security import HttpBearer
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from access import tokens
from access.enums import Scope
from access.models import Agent, ApiToken, Membership
from access.policies import NotAMember, check_agent_usable
from access.token_rows import TokenRow, usable
from access.usage import usage
from audit.actors import Actor, Owner, Via
from audit.principals import NotSignedIn, ScopeMissing, principal_of, require_scope
from audit.principals import Principal as BasePrincipal
from audit.through import through_session
from common.dbroles import as_system, bind_tenant
from common.errors import Refused
from common.longpoll import wait_until

__all__ = [
    "CsrfFailed", "NotSignedIn", "Principal", "ScopeMissing", "SessionAuth", "TokenAuth", "TokenCannotDecide",
    "agent_actor", "person_actor", "person_of", "principal_of", "require_scope", "session_principal",
    "wait_as",
]  # fmt: skip


class TokenCannotDecide(Refused):
    """No token decides. A person signs in and decides on what they are shown."""

    code = "token_cannot_decide"
    http_status = 403


class CsrfFailed(Refused):
    """The request does not prove that it comes from our own page."""

    code = "csrf_failed"
    http_status = 403


@dataclass(frozen=True, slots=True)
class Principal(BasePrincipal):
    """Who asks: an automation by one of its tokens, or a signed-in person in one tenant."""

    agent: Agent | None = None
    token: ApiToken | None = None
    membership: Membership | None = None
    behind: tuple[UUID, ...] = ()
    """The people behind it, all their accounts: whom it acts for, who answers for it, who was shown the token."""


def agent_actor(agent: Agent, *, through: str, request_id: str = "") -> Actor:
    """The actor of what an automation does, by which of its tokens or endpoints."""
    return Actor(
        performed_by=str(agent),
        on_behalf_of=on_behalf_of(agent),
        via=Via.TOKEN,
        owner=Owner.AUTOMATION,
        request_id=request_id,
        through=through,
    )


def on_behalf_of(agent: Agent) -> str:
    """Whom an automation acts for: a person, a system of this name, or nobody."""
    if agent.acts_for_id:
        return f"user:{agent.acts_for_id}"
    return f"system:{agent.acts_for_system}" if agent.acts_for_system else ""


def person_actor(membership: Membership, *, request_id: str = "", through: str = "") -> Actor:
    """The actor of what a signed-in person does."""
    user_id = membership.user_id
    return Actor(
        performed_by=f"user:{user_id}",
        via=Via.SESSION,
        owner=Owner.PERSON,
        request_id=request_id,
        user_id=user_id,
        through=through,
    )


def person_of(request: HttpRequest) -> Actor:
    """The signed-in person of a request, in their organisation and in this session."""
    membership: Membership = request.membership  # type: ignore[attr-defined]
    return person_actor(membership, request_id=request_id_of(request), through=through_session(request))


def session_principal(request: HttpRequest) -> Principal:
    """The signed-in person of a request, as `access.middleware` found them; NotSignedIn where there is none."""
    membership: Membership | None = getattr(request, "membership", None)
    if membership is None:
        raise NotSignedIn
    return Principal(
        tenant=membership.tenant,
        actor=person_of(request),
        kind="session",
        membership=membership,
    )


def request_id_of(request: HttpRequest) -> str:
    return str(getattr(request, "request_id", ""))


class TokenAuth(HttpBearer):
    """A bearer token, valid on the database's clock; sets ``request.principal``. Cookies are not looked at."""

    def __call__(self, request: HttpRequest) -> Any:
        principal = super().__call__(request)
        if principal is None:
            raise NotSignedIn
        return principal

    def authenticate(self, request: HttpRequest, token: str) -> Principal | None:
        found = _valid(token)
        if found is None:
            return None
        row = found.token
        bind_tenant(row.tenant_id)
        # A GET changes nothing, and no request waits for this: it is collected, and written beside all requests.
        usage.note(row.tenant_id, row.id)
        principal = Principal(
            tenant=row.tenant,
            actor=agent_actor(row.agent, through=row.word, request_id=request_id_of(request)),
            kind="token",
            scopes=frozenset(Scope(scope) for scope in row.scopes),
            agent=row.agent,
            token=row,
            behind=found.behind,
        )
        request.principal = principal  # type: ignore[attr-defined]
        return principal


def wait_as(request: HttpRequest, changed: Callable[[], bool], seconds: float) -> None:
    """Wait for a change on behalf of who asked. Raises NotSignedIn for a token that ended while it waited."""
    wait_until(changed, seconds)
    token = getattr(principal_of(request), "token", None)
    if token is not None and _usable("id", token.pk) is None:
        raise NotSignedIn


@as_system()
def _valid(text: str) -> TokenRow | None:
    """By the system role: the token says which tenant it is."""
    return _usable("sha256", tokens.fingerprint(text)) if tokens.looks_like_token(text) else None


def _usable(by: Literal["sha256", "id"], value: str | UUID) -> TokenRow | None:
    """The row of a token that is neither expired nor revoked and whose automation may work."""
    row = usable(by, value)
    if row is None:
        return None
    try:
        check_agent_usable(row.token.agent)
    except NotAMember:
        return None
    return row


class SessionAuth(AuthBase):
    """A signed-in person, with the CSRF check; sets ``request.principal``. Any Authorization header is refused."""

    openapi_type = "apiKey"
    openapi_in = "cookie"
    openapi_name = "session"

    def __call__(self, request: HttpRequest) -> Principal:
        if "Authorization" in request.headers:
            raise TokenCannotDecide
        principal = session_principal(request)
        if check_csrf(request) is not None:
            raise CsrfFailed
        request.principal = principal  # type: ignore[attr-defined]
        return principal
