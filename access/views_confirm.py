"""Confirming that it is you, before something that matters.

Whoever comes with the digest of an action gets a proof for that action alone, good for one decision
(`access.sessions`). Whoever comes without is taken to have proved it for their account, for PLACET_REAUTH_S.
"""

import re
from typing import Any, Final
from urllib.parse import urlencode

from allauth.account.adapter import get_adapter
from allauth.account.views import ReauthenticateView
from allauth.mfa.base import views as mfa
from allauth.mfa.webauthn.views import ReauthenticateWebAuthnView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.generic import View

from access.actions_account import note_confirmed
from access.actors import user_actor
from access.sessions import add_proof
from access.views import as_json, reads, reads_and_writes, refused
from access.views_account import mine
from common.clock import db_clock

DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def digest_of(request: HttpRequest) -> str:
    """The digest that the page was asked for with; empty where there is none."""
    digest = request.POST.get("digest", "") or request.GET.get("digest", "")
    return digest if DIGEST.fullmatch(digest) else ""


def way_of(request: HttpRequest) -> dict[str, str]:
    """Where to go on afterwards, and for which action; both checked."""
    back = request.POST.get("next", "") or request.GET.get("next", "")
    way = {"next": back if get_adapter().is_safe_url(back) else "", "digest": digest_of(request)}
    return {name: value for name, value in way.items() if value}


def with_way(request: HttpRequest, address: str) -> str:
    way = way_of(request)
    return f"{address}?{urlencode(way)}" if way else address


@mine
@reads
class Confirm(View):
    """Leads to the strongest way that this person has."""

    def get(self, request: HttpRequest) -> HttpResponse:
        methods = get_adapter().get_reauthentication_methods(request.user)
        if not methods:
            return render(request, "account/reauthenticate_none.html", {"way": way_of(request)})
        return HttpResponseRedirect(with_way(request, methods[0]["url"]))


class _ConfirmMixin:
    """A page of one way to confirm. The proof is written down before anything goes on."""

    request: HttpRequest

    def form_valid(self, form: Any) -> HttpResponse:
        digest, user = digest_of(self.request), self.request.user
        response: HttpResponse = super().form_valid(form)  # type: ignore[misc]
        if digest:
            add_proof(self.request, digest)
        note_confirmed(
            user=user, method=self.method_of(form), digest=digest, by=user_actor(self.request, user),  # type: ignore[arg-type]
            clock=db_clock,
        )  # fmt: skip
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        page = super().form_invalid  # type: ignore[misc]
        return refused(page(form), form)

    def method_of(self, form: Any) -> str:
        return str(form.authenticator.type)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)  # type: ignore[misc]
        methods = get_adapter().get_reauthentication_methods(self.request.user)
        others = [
            {"text": method["description"], "href": with_way(self.request, method["url"])}
            for method in methods if method["url"] != self.request.path
        ]  # fmt: skip
        return context | {"others": others, "way": way_of(self.request)} | kwargs


@mine
@reads_and_writes
class ConfirmPassword(_ConfirmMixin, ReauthenticateView):  # type: ignore[misc]
    """By password, for people without a second factor."""

    def method_of(self, form: Any) -> str:
        return "password"


@mine
@reads_and_writes
class ConfirmCode(_ConfirmMixin, mfa.ReauthenticateView):  # type: ignore[misc]
    """By a code of the app, or a recovery code."""


@mine
@reads_and_writes
class ConfirmPasskey(_ConfirmMixin, ReauthenticateWebAuthnView):  # type: ignore[misc]
    """By passkey."""

    def method_of(self, form: Any) -> str:
        return "webauthn"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        return context | {"options": as_json(context["js_data"]["request_options"])}

    def form_invalid(self, form: Any) -> HttpResponse:
        return refused(self.render_to_response(self.get_context_data(form=form)), form)
