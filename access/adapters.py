"""What is ours in django-allauth: who may come in, what is counted and recorded, what mails and messages say.

Nobody signs up: people are made by an admin. An account at the provider leads to a person who is here already, by one
of two ways: they linked it themselves, or (``PLACET_OIDC_MATCH_EMAIL``) the issuer has verified an address that exactly
one active person here has.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.internal.flows.password_reset import get_reset_password_from_key_url
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme

from access import mail
from access.actions_account import (
    SignInOver,
    check_password,
    link_provider,
    may_sign_in,
    note_failed_sign_in,
    note_sign_in,
    open_session,
)
from access.actors import stranger_of, user_actor
from access.clients import client_address
from access.known_browser import browser_for, remember
from access.models import User
from access.provider import Provider, is_answer_to
from access.sessions import recently_authenticated
from access.throttle import Throttled
from access.web import confirm_address
from common.clock import db_clock
from common.sealing import SecretKeyUnknown

NO_ENTRY: Final = (
    "Name and password are not correct together, or the account is not open. Check them, or ask an admin."
)
THROTTLED: Final = "throttled"
BEGUN_WITH: Final = "placet.begun_with"
"""In a session: what stands for the person's password when they began to sign in."""
_SAID: Final = {
    "account/messages/password_changed.txt": ("ok", "Your password is changed. Other sessions have ended."),
    "mfa/messages/totp_activated.txt": ("ok", "Codes from your app are asked for from now on."),
    "mfa/messages/totp_deactivated.txt": (
        "wait",
        "Codes from your app are no longer asked for. Other sessions have ended.",
    ),
    "mfa/messages/webauthn_added.txt": ("ok", "The passkey is yours to sign in with."),
    "mfa/messages/webauthn_removed.txt": (
        "wait",
        "The passkey no longer opens your account. Other sessions have ended.",
    ),
    "socialaccount/messages/account_connected.txt": ("ok", "The account is linked."),
    "socialaccount/messages/account_connected_other.txt": (
        "bad",
        "That account is linked with somebody else.",
    ),
    "socialaccount/messages/account_connected_updated.txt": ("ok", "The account is linked."),
    "socialaccount/messages/account_disconnected.txt": ("wait", "The account is no longer linked."),
}
"""What people are told after a step; allauth's other messages are not shown."""


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Passwords, sessions and mails."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": NO_ENTRY,
        "incorrect_password": "This is not your password.",
        "incorrect_code": "This code is not right, or was used before.",
        "enter_current_password": "This is not your present password.",
        THROTTLED: "There were too many tries. Wait a quarter of an hour.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """Counted in the history before and after; the answer is the same whatever was wrong."""
        try:
            return check_password(
                request=request, username=credentials["username"], password=credentials["password"],
                address=client_address(request), by=stranger_of(request), clock=db_clock,
                browser=browser_for(request, credentials["username"]),
            )  # fmt: skip
        except Throttled as refused:
            raise self.validation_error(THROTTLED) from refused

    def pre_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse | None:
        """By whichever way they came: a closed account, or one that leads nowhere, opens nothing."""
        if may_sign_in(user):
            request.session[BEGUN_WITH] = user.get_session_auth_hash()
            return None
        note_failed_sign_in(
            address=client_address(request), user=user, by=stranger_of(request), clock=db_clock
        )
        return self.turn_away(request)

    def turn_away(self, request: HttpRequest) -> HttpResponse:
        """Back to the sign-in, with the one sentence that everybody gets."""
        messages.add_message(request, messages.ERROR, NO_ENTRY, extra_tags="bad")
        return HttpResponseRedirect(reverse("account_login"))

    def login(self, request: HttpRequest, user: Any) -> None:
        """Not with a password that was changed, or a factor that was taken off, while the second step was awaited."""
        then = request.session.pop(BEGUN_WITH, "")
        records = get_authentication_records(request, user)

        def still(locked: User, factors: Mapping[int, str]) -> bool:
            same_password = constant_time_compare(then, locked.get_session_auth_hash())
            return same_password and proves(records, factors)

        try:
            open_session(
                user=user, still=still, begin=lambda: super(AccountAdapter, self).login(request, user),
                by=user_actor(request, user), clock=db_clock,
            )  # fmt: skip
        except SignInOver as over:
            raise ImmediateHttpResponse(self.turn_away(request)) from over

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse:
        records = get_authentication_records(request, user)
        methods = [str(record.get("type") or record["method"]) for record in records]
        note_sign_in(user=user, methods=methods, by=user_actor(request, user), clock=db_clock)
        response: HttpResponse = super().post_login(request, user, **kwargs)
        remember(request, response, user.get_username())
        return response

    def is_safe_url(self, url: str) -> bool:
        """A way back stays on this very site: a path, and no host."""
        return url_has_allowed_host_and_scheme(url, allowed_hosts=None)

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request)

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """Whoever has just signed in need not prove it again to look after their account."""
        return not recently_authenticated(self.request)

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """With a second factor, the password alone proves nothing more; the strongest way comes first."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        strong = [method for method in methods if method["id"] != "reauthenticate"]
        return sorted(strong or methods, key=lambda method: method["id"] != "mfa_reauthenticate:webauthn")

    def get_reset_password_from_key_url(self, key: str) -> str:
        """Under the address of this installation, not under the one that a request came with."""
        path = urlsplit(get_reset_password_from_key_url(context.request, key)).path
        return f"{settings.PLACET_BASE_URL}{path}"

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("mfa_index")

    def send_password_reset_mail(self, user: Any, email: str, context: dict[str, Any]) -> None:
        """Not for accounts that an admin made without a password: a link would give them one.

        The mail is made for everybody, so that the answer takes as long for those who get none.
        """
        message = self._mail("account/email/password_reset_key", user.email, context)
        if may_sign_in(user) and user.has_usable_password():
            mail.post(message)

    def send_notification_mail(
        self, template_prefix: str, user: Any, context: dict[str, Any] | None = None, email: str | None = None
    ) -> None:
        if user.email:
            super().send_notification_mail(template_prefix, user, context, email or user.email)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        mail.post(self._mail(template_prefix, email, context))

    def _mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> Any:
        facts = {"request": self.request, "email": email, "base_url": settings.PLACET_BASE_URL}
        return self.render_mail(template_prefix, email, facts | context)

    def add_message(
        self, request: HttpRequest, level: int, message_template: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        if kwargs.get("message"):
            messages.add_message(request, level, str(kwargs["message"]), extra_tags="bad")
        elif message_template in _SAID:
            tone, text = _SAID[message_template]
            messages.add_message(request, level, text, extra_tags=tone)


def proves(records: Sequence[Mapping[str, Any]], factors: Mapping[int, str]) -> bool:
    """Whether what was proved in a sign-in is enough for somebody with these factors, by id and type."""
    shown = [record for record in records if record["method"] == "mfa"]
    if any(kind != Authenticator.Type.RECOVERY_CODES for kind in factors.values()):
        return any(record["id"] in factors for record in shown)
    return not any(record.get("passwordless") for record in shown)


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Second factors. What they rest on is encrypted in the database, under a key from the installation's secret."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "This is not right, or was used before. Try the next one.",
    }

    def encrypt(self, text: str) -> str:
        return _vault().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """Raises SecretKeyUnknown, which a page says in words: no code is wrong for it, and none is counted."""
        try:
            return _vault().decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            raise SecretKeyUnknown from None

    def generate_authenticator_name(self, user: Any, type: Any) -> str:
        return "My passkey"

    def get_totp_label(self, user: Any) -> str:
        return str(user.get_username())


def _vault() -> MultiFernet:
    """The secret of today encrypts; the ones before it (SECRET_KEY_FALLBACKS) still decrypt."""
    return MultiFernet([_key(secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _key(secret: str) -> Fernet:
    key = HKDF(algorithm=SHA256(), length=32, salt=b"placet.mfa.v1", info=b"fernet").derive(secret.encode())
    return Fernet(urlsafe_b64encode(key))


class ProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Sign-in with the provider of the environment. It makes no account, and keeps nothing but the subject's id."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return False

    def list_apps(self, request: HttpRequest, provider: Any = None, client_id: Any = None) -> list[Any]:
        """The environment's alone, whatever stands in the database."""
        apps = super().list_apps(request, provider=provider, client_id=client_id)
        return [app for app in apps if app.pk is None]

    def get_provider(self, request: HttpRequest, provider: Any, client_id: Any = None) -> Provider:
        """Ours, which is stricter."""
        return Provider(request, app=super().get_provider(request, provider, client_id).app)

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Find the person: linked already, or the only one with the address that the issuer has verified."""
        if not is_answer_to(sociallogin):
            raise OAuth2Error("The ID token was made for another try.")
        if sociallogin.is_existing:
            return
        if sociallogin.state.get("process") == "connect":
            self._link(request, sociallogin)
            return
        user = _the_only_one_with(sociallogin) if settings.PLACET_OIDC.match_email else None
        if user is None:
            note_failed_sign_in(address=client_address(request), by=stranger_of(request), clock=db_clock)
            raise ImmediateHttpResponse(AccountAdapter().turn_away(request))
        link_provider(
            user=user, link=lambda: sociallogin.connect(request, user),
            provider=sociallogin.account.provider, by=user_actor(request, user), clock=db_clock,
        )  # fmt: skip

    def _link(self, request: HttpRequest, sociallogin: Any) -> None:
        """For the person in this session, if they have just proved who they are; allauth then finds it linked."""
        if not recently_authenticated(request):
            way = confirm_address(back=reverse("socialaccount_connections"))
            raise ImmediateHttpResponse(HttpResponseRedirect(way))
        user: User = request.user  # type: ignore[assignment]
        link_provider(
            user=user, link=lambda: sociallogin.connect(request, user),
            provider=sociallogin.account.provider, by=user_actor(request, user), clock=db_clock,
        )  # fmt: skip

    def get_requests_session(self) -> Any:
        """Straight to the provider: no proxy of the environment, and no redirect."""
        session = super().get_requests_session()
        session.trust_env, session.max_redirects = False, 0
        return session


def _the_only_one_with(sociallogin: Any) -> User | None:
    """The one active person with an address that the issuer says is verified; None where there are several.

    None, too, where this person has an account at the provider already: an address may be given to somebody else, who
    is another subject there.
    """
    verified = [address.email for address in sociallogin.email_addresses if address.verified]
    if len(verified) != 1:
        return None
    found = list(User.objects.filter(email__iexact=verified[0], is_active=True)[:2])
    if len(found) != 1 or not _same_address(found[0].email, sociallogin.address) or not may_sign_in(found[0]):
        return None
    linked = SocialAccount.objects.filter(user=found[0], provider=sociallogin.account.provider)
    return None if linked.exists() else found[0]


def _same_address(one: str, other: str) -> bool:
    """Whatever the case of A to Z: to a database K (the sign of kelvin) is a k too, and to a mail server it is not."""
    return one.encode(errors="surrogatepass").lower() == other.encode(errors="surrogatepass").lower()
