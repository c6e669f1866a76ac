"""One's own account: password, second factors, passkeys, recovery codes, sessions, linked accounts."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from allauth.account import views as account
from allauth.mfa.base.views import IndexView
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.webauthn.internal.auth import (
    begin_registration,
    get_authenticator_by_credential_id,
    parse_registration_response,
)
from allauth.mfa.webauthn.views import AddWebAuthnView, RemoveWebAuthnView
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.sessions.models import Session
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.safestring import SafeString, mark_safe
from django.views.generic import TemplateView, View

from access import actions_account as actions
from access.actors import user_actor
from access.forms import spend_code
from access.models import User
from access.sessions import SEEN, lacks_factor
from access.signing_keys import fingerprint_of
from access.views import as_json, get_providers, reads, reads_and_writes, refused, writes
from access.web import recent_authentication_required, signed_in_required
from common.clock import db_clock

mine = method_decorator(signed_in_required, name="dispatch")
confirmed = method_decorator([signed_in_required, recent_authentication_required], name="dispatch")


def change_factors(request: HttpRequest, change: Callable[[], HttpResponse]) -> HttpResponse:
    """Let allauth change the person's second factors, in one transaction with the events."""
    user: User = request.user  # type: ignore[assignment]
    return actions.change_factors(
        user=user, change=change, by=user_actor(request, user), clock=db_clock,
        keep=request.session.session_key or "",
    )  # fmt: skip


@mine
@reads
class Account(IndexView):  # type: ignore[misc]
    """What opens the account, and where it is open."""

    template_name = "mfa/index.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        request = self.request
        found = Authenticator.objects.filter(user=request.user).order_by("pk")
        codes = found.filter(type=Authenticator.Type.RECOVERY_CODES).first()
        return {
            "app": found.filter(type=Authenticator.Type.TOTP).first(),
            "passkeys": [
                {
                    "id": key.pk,
                    "name": key.wrap().name,
                    "made": key.created_at,
                    "used": key.last_used_at,
                    "line": f"user:{request.user.pk} {fingerprint_of(key)}",
                }
                for key in found.filter(type=Authenticator.Type.WEBAUTHN)
            ],
            "codes_left": len(codes.wrap().get_unused_codes()) if codes else None,
            "must_add": lacks_factor(request),
            "has_password": request.user.has_usable_password(),
            "providers": get_providers(request),
            "linked": SocialAccount.objects.filter(user=request.user).exists(),
            "session_count": len(sessions_of(request)),
        }


@mine
@reads_and_writes
class ChangePassword(account.PasswordChangeView):  # type: ignore[misc]
    """A new password, for somebody who knows the present one."""

    def form_invalid(self, form: Any) -> HttpResponse:
        return refused(super().form_invalid(form), form)


@confirmed
@reads_and_writes
class AddApp(ActivateTOTPView):  # type: ignore[misc]
    """An app that makes codes."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        secret = context["form"].secret
        spelled = " ".join(secret[start : start + 4] for start in range(0, len(secret), 4))
        return context | {"picture": _picture(context["totp_svg"]), "spelled": spelled}

    def form_valid(self, form: Any) -> HttpResponse:
        def add() -> HttpResponse:
            if Authenticator.objects.filter(user=self.request.user, type=Authenticator.Type.TOTP).exists():
                return redirect("mfa_index")  # another window was quicker
            response: HttpResponse = super(AddApp, self).form_valid(form)
            app = Authenticator.objects.get(user=self.request.user, type=Authenticator.Type.TOTP)
            spend_code(app, form.cleaned_data["code"])
            return response

        return change_factors(self.request, add)

    def form_invalid(self, form: Any) -> HttpResponse:
        return refused(super().form_invalid(form), form)


def _picture(svg: str) -> SafeString:
    """The QR code as an element of the page; it is drawn by a library from an address that we made."""
    return mark_safe(svg[svg.index("<svg") :])  # noqa: S308


@confirmed
@reads_and_writes
class RemoveApp(DeactivateTOTPView):  # type: ignore[misc]
    """No more codes from the app."""

    def form_valid(self, form: Any) -> HttpResponse:
        return change_factors(self.request, lambda: super(RemoveApp, self).form_valid(form))


@confirmed
@reads_and_writes
class AddPasskey(AddWebAuthnView):  # type: ignore[misc]
    """A passkey; needs script, as all passkeys do."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        form = kwargs.get("form") or self.get_form()
        return context | {
            "form": form,
            "options": as_json(begin_registration(self.request.user, passwordless=True)),
        }

    def form_valid(self, form: Any) -> HttpResponse:
        def add() -> HttpResponse:
            credential = parse_registration_response(form.cleaned_data["credential"])
            known = credential.response.attestation_object.auth_data.credential_data
            if get_authenticator_by_credential_id(self.request.user, known.credential_id) is not None:
                return redirect("mfa_index")  # it came twice
            response: HttpResponse = super(AddPasskey, self).form_valid(form)
            return response

        return change_factors(self.request, add)


@confirmed
@reads_and_writes
class RemovePasskey(RemoveWebAuthnView):  # type: ignore[misc]
    """One passkey less."""

    success_url = reverse_lazy("mfa_index")

    def form_valid(self, form: Any) -> HttpResponse:
        return change_factors(self.request, lambda: super(RemovePasskey, self).form_valid(form))


@confirmed
@reads
class RecoveryCodes(TemplateView):
    """The codes that are left, to be written down."""

    template_name = "mfa/recovery_codes/index.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = Authenticator.objects.filter(
            user_id=self.request.user.pk, type=Authenticator.Type.RECOVERY_CODES
        )
        codes = found.first()
        if codes is None:
            raise Http404
        return {"codes": codes.wrap().get_unused_codes()}


@confirmed
@reads_and_writes
class NewRecoveryCodes(GenerateRecoveryCodesView):  # type: ignore[misc]
    """New codes; the old ones are worth nothing from then on."""

    def form_valid(self, form: Any) -> HttpResponse:
        return change_factors(self.request, lambda: super(NewRecoveryCodes, self).form_valid(form))


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session of the person that would still be accepted."""

    id: int
    agent: str
    address: str
    opened: datetime
    seen: datetime
    current: bool


def sessions_of(request: HttpRequest) -> list[OpenSession]:
    """Newest first."""
    known = {row.session_key: row for row in UserSession.objects.filter(user_id=request.user.pk)}
    alive = Session.objects.filter(session_key__in=known, expire_date__gt=timezone.now())
    return sorted(
        (_open_session(known[stored.session_key], stored, request) for stored in alive),
        key=lambda session: session.opened, reverse=True,
    )  # fmt: skip


def _open_session(row: UserSession, stored: Session, request: HttpRequest) -> OpenSession:
    seen = stored.get_decoded().get(SEEN, 0)
    return OpenSession(
        id=row.pk, agent=row.user_agent, address=row.ip, opened=row.created_at,
        seen=datetime.fromtimestamp(seen, UTC), current=row.session_key == request.session.session_key,
    )  # fmt: skip


@mine
@reads
class Sessions(TemplateView):
    """Where the account is open."""

    template_name = "usersessions/usersession_list.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {"sessions": sessions_of(self.request)}


@mine
@writes
class EndSession(View):
    """One session, or all but this one, is over."""

    def post(self, request: HttpRequest, session_id: int | None = None) -> HttpResponse:
        user: User = request.user  # type: ignore[assignment]
        key, by = request.session.session_key or "", user_actor(request, user)
        if session_id is None:
            actions.revoke_other_sessions(user=user, keep=key, by=by, clock=db_clock)
        elif not actions.revoke_session(user=user, session_id=session_id, by=by, clock=db_clock):
            raise Http404
        messages.success(request, "The session has ended.", extra_tags="ok")
        return HttpResponseRedirect(reverse("usersessions_list"))


@confirmed
@reads_and_writes
class Linked(TemplateView):
    """Accounts at the provider with which this person signs in."""

    template_name = "socialaccount/connections.html"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not get_providers(request):
            raise Http404
        return super().dispatch(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        accounts = SocialAccount.objects.filter(user_id=self.request.user.pk)
        return {"accounts": accounts.order_by("pk"), "providers": get_providers(self.request)}

    def post(self, request: HttpRequest) -> HttpResponse:
        """Takes one away."""
        user: User = request.user  # type: ignore[assignment]
        wanted = request.POST.get("account", "")
        accounts = SocialAccount.objects.filter(user=user, pk=wanted if wanted.isdecimal() else 0)
        found = accounts.first()
        if found is None:
            raise Http404
        actions.unlink_provider(
            user=user, unlink=found.delete, provider=found.provider, by=user_actor(request, user), clock=db_clock
        )  # fmt: skip
        messages.success(request, "The account is no longer linked.", extra_tags="wait")
        return redirect("socialaccount_connections")
