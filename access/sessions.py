"""How long a session lasts, how fresh its person's proof is, and who must have a second factor.

Two stamps lie in the session itself: when the person signed in, and when they last did something. Pages that refresh
themselves are not something that a person does.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from allauth.account.internal.flows.login import get_authentication_records
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from access.signed_in import PROOFS
from common.errors import Refused
from common.problems import API_ROOT, problem

OPENED: Final = "placet.opened"
SEEN: Final = "placet.seen"
PROOF_LIFE_S: Final = 300
_MOST_PROOFS: Final = 8
_GRAINS: Final = 10
"""A person's activity is written down ten times within the idle time at most."""
_POLLED: Final = frozenset({"", "run", "progress", "decide"})
"""Which parts of a page ask again by themselves (``hx-trigger="every …"``); the others are asked for by people."""

GetResponse = Callable[[HttpRequest], HttpResponseBase]


class ReauthRequired(Refused):
    """Confirm that it is you first: it is a while since you proved it."""

    code = "reauth_required"
    http_status = 403


class MfaRequired(Refused):
    """Your role needs a second factor. Add one to your account first."""

    code = "mfa_required"
    http_status = 403


def begin(request: HttpRequest) -> None:
    """Stamp a session that a person has just opened."""
    request.session[OPENED] = request.session[SEEN] = int(time.time())
    request.session.pop(PROOFS, None)
    request.session.set_expiry(None)


def keep_briefly(request: HttpRequest) -> None:
    """A stranger's session, which holds a challenge or a way back, is over when a sign-in would be."""
    if not request.user.is_authenticated:
        request.session.set_expiry(settings.ACCOUNT_LOGIN_TIMEOUT)


def recently_signed_in(request: HttpRequest) -> bool:
    """Whether the sign-in is no older than PLACET_REAUTH_S."""
    limit: int = settings.PLACET_REAUTH_S
    return _age(request, OPENED) < limit


def recently_authenticated(request: HttpRequest) -> bool:
    """Whether the person has signed in, or confirmed that it is them, within PLACET_REAUTH_S."""
    if not request.user.is_authenticated:
        return False
    records = get_authentication_records(request, request.user)
    confirmed = [record["at"] for record in records if record.get("reauthenticated")]
    fresh = bool(confirmed) and time.time() - max(confirmed) < settings.PLACET_REAUTH_S
    return fresh or recently_signed_in(request)


def add_proof(request: HttpRequest, digest: str) -> None:
    """The person has just confirmed that it is them, for the action with this digest, once."""
    proofs = _live_proofs(request) | {digest: time.time()}
    request.session[PROOFS] = dict(sorted(proofs.items(), key=lambda proof: proof[1])[-_MOST_PROOFS:])


def has_proof(request: HttpRequest, digest: str) -> bool:
    """Whether there is an unused proof for exactly this digest."""
    return digest in _live_proofs(request)


def spend_proof(request: HttpRequest, digest: str) -> None:
    """The proof was used: it is worth nothing from now on."""
    if digest in request.session.get(PROOFS, {}):
        request.session[PROOFS] = {
            other: at for other, at in _live_proofs(request).items() if other != digest
        }


def confirmed_for(request: HttpRequest) -> Callable[[str], bool]:
    """Whether an action of high risk may be approved in this session: by a digest's own proof, or a recent sign-in.

    Confirming for one's account, or for another action, does not count.
    """
    return lambda digest: recently_signed_in(request) or has_proof(request, digest)


def _live_proofs(request: HttpRequest) -> dict[str, float]:
    now, proofs = time.time(), request.session.get(PROOFS, {})
    return {digest: at for digest, at in proofs.items() if now - at < PROOF_LIFE_S}


def _age(request: HttpRequest, stamp: str) -> float:
    """Seconds since the stamp; endless where there is none."""
    stamped: float = request.session.get(stamp, float("-inf"))
    return time.time() - stamped


def session_left(request: HttpRequest) -> float:
    """Seconds until the session ends if nothing is done in it."""
    whole: float = settings.PLACET_SESSION_MAX_S - _age(request, OPENED)
    idle: float = settings.PLACET_SESSION_IDLE_S - _age(request, SEEN)
    return max(0.0, min(whole, idle))


class SessionLimitsMiddleware:
    """Ends a session that is too old, or that nobody has used for too long. Stands before whatever looks at the person.

    ``PLACET_SESSION_MAX_S`` counts from sign-in, whatever is done; ``PLACET_SESSION_IDLE_S`` from what was done last.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.user.is_authenticated:
            idle = _age(request, SEEN)
            if (
                _age(request, OPENED) >= settings.PLACET_SESSION_MAX_S
                or idle >= settings.PLACET_SESSION_IDLE_S
            ):
                logout(request)
            elif idle > settings.PLACET_SESSION_IDLE_S / _GRAINS and not _is_poll(request):
                request.session[SEEN] = int(time.time())
        return self.get_response(request)


def _is_poll(request: HttpRequest) -> bool:
    by_script = request.headers.get("HX-Request") == "true" and request.method == "GET"
    return by_script and request.headers.get("HX-Target", "") in _POLLED


class RequireMfaMiddleware:
    """Leads people whose role needs a second factor, and who have none, to the page where they add one.

    Off where ``PLACET_REQUIRE_MFA`` names no role.
    """

    def __init__(self, get_response: GetResponse) -> None:
        if not settings.PLACET_REQUIRE_MFA:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        if not _needs_factor(request):
            return None
        if request.path.startswith(API_ROOT):
            return problem(request, MfaRequired())
        return leave_for(request, reverse("mfa_index"))


def _needs_factor(request: HttpRequest) -> bool:
    """Whether this request must wait until its person has a second factor."""
    if isinstance(request.user, AnonymousUser) or request.path.startswith(("/account/", "/sign-out/")):
        return False
    return lacks_factor(request)


def lacks_factor(request: HttpRequest) -> bool:
    """Whether the person's role needs a second factor and they have none."""
    wanted, membership = set(settings.PLACET_REQUIRE_MFA), getattr(request, "membership", None)
    if not wanted or not request.user.is_authenticated:
        return False
    concerned = "all" in wanted or membership is None or bool(wanted & set(membership.roles))
    factors = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
    return concerned and not Authenticator.objects.filter(user_id=request.user.pk, type__in=factors).exists()


def leave_for(request: HttpRequest, address: str) -> HttpResponse:
    """Lead there; htmx is told to leave the page."""
    if request.headers.get("HX-Request") == "true":
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address)
