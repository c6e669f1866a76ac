"""Coming in and going out: sign-in with its second step, passkeys, a forgotten password, sign-out.

The flows are allauth's. Here stand the methods that each page answers, and what is counted and recorded.
"""

import json
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

import structlog
from allauth.account import views as account
from allauth.account.adapter import get_adapter
from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.webauthn.views import LoginWebAuthnView
from allauth.socialaccount.adapter import get_adapter as get_social_adapter
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.conf import settings
from django.contrib import messages
from django.core.serializers.json import DjangoJSONEncoder
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import RedirectView

from access.actions import note_sign_out
from access.actions_account import ResetOver, note_failed_sign_in
from access.actors import stranger_of
from access.auth import person_of
from access.clients import client_address
from access.forms import is_throttled
from access.provider import Adapter
from access.sessions import keep_briefly
from access.throttle import WINDOW
from common.clock import db_clock
from common.web import http_methods

log = structlog.get_logger(__name__)
reads = method_decorator([http_methods(), never_cache], name="dispatch")
reads_and_writes = method_decorator([http_methods(write=("POST",)), never_cache], name="dispatch")
writes = method_decorator([http_methods(read=(), write=("POST",)), never_cache], name="dispatch")


def as_json(options: Any) -> str:
    """What the script of passkeys reads from its form."""
    return json.dumps(options, cls=DjangoJSONEncoder)


def refused(response: HttpResponse, form: Any) -> HttpResponse:
    """The page of a form that was not accepted; 429 where there were too many tries."""
    if is_throttled(form):
        response.status_code = HTTPStatus.TOO_MANY_REQUESTS
        response["Retry-After"] = str(int(WINDOW.total_seconds()))
    return response


@reads_and_writes
class SignIn(account.LoginView):  # type: ignore[misc]
    """Opens a session, or leads to the second step. Each try is an event; the name that was typed is in none."""

    def form_invalid(self, form: Any) -> HttpResponse:
        return refused(super().form_invalid(form), form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        back = context["redirect_field_value"]
        way = {"next": back} if back else {}
        return context | {"providers": get_providers(self.request), "passkey_way": way}


@reads_and_writes
class SecondStep(AuthenticateView):  # type: ignore[misc]
    """A code or a passkey after the password."""

    def form_invalid(self, form: Any) -> HttpResponse:
        return refused(super().form_invalid(form), form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        return context | {
            "passkeys": bool(context["js_data"]["request_options"]["publicKey"].get("allowCredentials"))
        }


@reads_and_writes
class PasskeySignIn(LoginWebAuthnView):  # type: ignore[misc]
    """A passkey alone: it has asked for a PIN, a finger or a face. GET hands out the challenge, for script."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        keep_briefly(request)
        response: HttpResponse = super().get(request, *args, **kwargs)
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        note_failed_sign_in(
            address=client_address(self.request), by=stranger_of(self.request), clock=db_clock
        )
        messages.error(self.request, "This passkey opens no account here.", extra_tags="bad")
        return HttpResponseRedirect(reverse("account_login"))

    def form_valid(self, form: Any) -> HttpResponse:
        response: HttpResponse = super().form_valid(form)
        way_back = self.request.POST.get("next", "")
        if self.request.user.is_authenticated and way_back and get_adapter().is_safe_url(way_back):
            return HttpResponseRedirect(way_back)
        return response


@writes
class SignOut(account.LogoutView):  # type: ignore[misc]
    """Ends the session."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        membership = getattr(request, "membership", None)
        if membership is not None:
            actor = person_of(request)
            note_sign_out(membership=membership, by=actor, clock=db_clock)
        response: HttpResponse = super().post(request, *args, **kwargs)
        return response


@reads_and_writes
class Forgot(account.PasswordResetView):  # type: ignore[misc]
    """Asks for a mail with a link. The answer, and how long it takes, are the same for everybody."""

    def form_invalid(self, form: Any) -> HttpResponse:
        return refused(super().form_invalid(form), form)


@reads
class ForgotSent(account.PasswordResetDoneView):  # type: ignore[misc]
    """What happens next."""


@reads_and_writes
class NewPassword(account.PasswordResetFromKeyView):  # type: ignore[misc]
    """The link of the mail, and the new password. The key leaves the address for the session at once."""

    def form_valid(self, form: Any) -> HttpResponse:
        try:
            response: HttpResponse = super().form_valid(form)
        except ResetOver:
            response = self.render_to_response(self.get_context_data(token_fail=True))
        return response


@reads
class NewPasswordDone(account.PasswordResetFromKeyDoneView):  # type: ignore[misc]
    """Sign in now."""


@reads
class AdminSignIn(RedirectView):
    """Django's admin has no sign-in of its own: it would pass by everything above."""

    def get_redirect_url(self, *args: Any, **kwargs: Any) -> str:
        return f"{reverse('account_login')}?next={reverse('admin:index')}"


def with_provider(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """There is no such address where the environment names no provider."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not get_providers(request):
            raise Http404
        return view(request, *args, **kwargs)

    return guarded


@with_provider
@http_methods(read=(), write=("POST",))
@never_cache
def provider_sign_in(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Leads to the provider. A form of ours only: a link elsewhere must not sign people in."""
    keep_briefly(request)
    try:
        response = _answer(OAuth2LoginView, request, provider_id)
    except (OAuth2Error, OSError) as error:  # it is not what was configured, or is away
        log.warning("provider_unusable", error=type(error).__name__, says=str(error)[:200])
        provider = get_social_adapter().get_provider(request, provider_id)
        response = render_authentication_error(request, provider, exception=error)
    return response


def _answer(view: Any, request: HttpRequest, provider_id: str) -> HttpResponse:
    try:
        response: HttpResponse = view.adapter_view(Adapter(request, provider_id))(request)
    except SocialApp.DoesNotExist as error:
        raise Http404 from error
    return response


@with_provider
@http_methods(read=(), write=("GET",))
@never_cache
def provider_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Comes back from the provider, by its redirect: a GET that opens a session, against the state of this session."""
    return _answer(OAuth2CallbackView, request, provider_id)


def get_providers(request: HttpRequest) -> list[tuple[str, str]]:
    """Name and address of each provider of the environment."""
    apps = [app for one in settings.SOCIALACCOUNT_PROVIDERS.values() for app in one["APPS"]]
    return [(app["name"], reverse("openid_connect_login", args=[app["provider_id"]])) for app in apps]


def not_offered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    """Addresses that allauth knows and that we do not have."""
    raise Http404
