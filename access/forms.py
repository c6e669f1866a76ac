"""Forms of signing in and of one's own account: allauth's, with every try counted and a code good for once."""

from typing import Any, Final
from unicodedata import normalize

from allauth.account import forms as account
from allauth.account.adapter import get_adapter
from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from allauth.mfa.utils import decrypt
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from django import forms
from django.contrib.auth.tokens import PasswordResetTokenGenerator

from access import actions_account as actions
from access.actors import stranger_of, user_actor
from access.clients import client_address
from access.models import User
from access.passkeys import credential_field, readable, spend, used
from access.throttle import Throttled
from common.clock import db_clock

THROTTLED: Final = "throttled"
LAST_COUNTER: Final = "last_counter"


def is_throttled(form: forms.Form) -> bool:
    """Whether the form was refused because there were too many tries."""
    return any(error.code == THROTTLED for errors in form.errors.as_data().values() for error in errors)


class SignInForm(account.LoginForm):  # type: ignore[misc]
    """Name and password; the field of the name is called ``username``."""

    def add_prefix(self, field_name: str) -> str:
        return str(super().add_prefix("username" if field_name == "login" else field_name))

    def clean_login(self) -> str:
        """In the one form (NFKC) in which Django keeps names."""
        return normalize("NFKC", super().clean_login())


def counted(form: Any, check: Any) -> Any:
    """What ``check`` returns; a wrong code or passkey is counted for the form's person, too many are refused."""
    try:
        return actions.check_factor(
            user=form.user, check=check, by=user_actor(context.request, form.user), clock=db_clock
        )
    except Throttled as refused:
        raise get_adapter().validation_error(THROTTLED) from refused


def spend_code(authenticator: Authenticator, code: str) -> bool:
    """Whether a code of the app was never used: neither it, nor a later one. Marks it as used, in the database.

    Inside a transaction. A code lives through three half-minutes; RFC 6238 wants it accepted once (section 5.2).
    """
    row = Authenticator.objects.select_for_update().filter(pk=authenticator.pk).first()
    if row is None:
        return False  # taken off in this very moment
    secret = decrypt(row.data["secret"])
    typed, last = code.replace(" ", "").replace("-", ""), row.data.get(LAST_COUNTER, -1)
    fresh = [
        counter for counter in yield_hotp_counters_from_time()
        if counter > last and format_hotp_value(hotp_value(secret, counter)) == typed
    ]  # fmt: skip
    if fresh:
        row.data[LAST_COUNTER] = authenticator.data[LAST_COUNTER] = fresh[0]
        row.save(update_fields=["data"])
    return bool(fresh)


class _OnceMixin:
    """A code of an app or a recovery code, good for once."""

    def clean_code(self) -> str:
        return str(counted(self, self._checked_code))

    def _checked_code(self) -> str:
        code = str(super().clean_code())  # type: ignore[misc]
        authenticator: Authenticator = self.authenticator  # type: ignore[attr-defined]
        if authenticator.type == Authenticator.Type.TOTP and not spend_code(authenticator, code):
            raise get_adapter().validation_error("incorrect_code")
        used(authenticator)
        return code


class CodeForm(_OnceMixin, AuthenticateForm):  # type: ignore[misc]
    """The second step of signing in."""


class ConfirmCodeForm(_OnceMixin, ReauthenticateForm):  # type: ignore[misc]
    """Confirming with a code that it is you."""


class _PasskeyMixin:
    """A passkey's answer, good for once."""

    def _checked_credential(self) -> Authenticator:
        read = super().clean_credential  # type: ignore[misc]
        return spend(read, self.cleaned_data["credential"])  # type: ignore[attr-defined]


class PasskeySignInForm(_PasskeyMixin, LoginWebAuthnForm):  # type: ignore[misc]
    """Signing in by passkey alone. Tries are not counted for the person: whoever it names, anybody may have written."""

    credential = credential_field()

    def clean_credential(self) -> Authenticator:
        return actions.use_passkey(
            check=self._checked_credential, by=stranger_of(context.request), clock=db_clock
        )


class PasskeyForm(_PasskeyMixin, AuthenticateWebAuthnForm):  # type: ignore[misc]
    """The second step of signing in, by passkey."""

    credential = credential_field()

    def clean_credential(self) -> Authenticator:
        found: Authenticator = counted(self, self._checked_credential)
        return found


class ConfirmPasskeyForm(_PasskeyMixin, ReauthenticateWebAuthnForm):  # type: ignore[misc]
    """Confirming with a passkey that it is you."""

    credential = credential_field()

    def clean_credential(self) -> Authenticator:
        found: Authenticator = counted(self, self._checked_credential)
        return found


class AddAppForm(ActivateTOTPForm):  # type: ignore[misc]
    """Adding an app that makes codes; the code that proves it is used up by that."""

    def clean_code(self) -> str:
        return str(counted(self, super().clean_code))


class AddPasskeyForm(AddWebAuthnForm):  # type: ignore[misc]
    """Adding a passkey: always one that signs in by itself, with a PIN, a finger or a face."""

    name = forms.CharField(label="Name", max_length=100, required=False)
    credential = credential_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["passwordless"]

    def clean(self) -> dict[str, Any]:
        self.cleaned_data["passwordless"] = True
        cleaned: dict[str, Any] = readable(super().clean)
        return cleaned


class ChangePasswordForm(account.ChangePasswordForm):  # type: ignore[misc]
    """The old password counts as a try at signing in: a stolen session must not find it by trying."""

    def clean_oldpassword(self) -> str:
        adapter = get_adapter()
        if not adapter.reauthenticate(self.user, self.cleaned_data.get("oldpassword", "")):
            raise adapter.validation_error("enter_current_password")
        return str(self.cleaned_data["oldpassword"])

    def save(self) -> None:
        request = context.request
        actions.change_password(
            user=self.user, password=self.cleaned_data["password1"], keep=request.session.session_key or "",
            by=user_actor(request, self.user), clock=db_clock,
        )  # fmt: skip


class ForgotForm(account.ResetPasswordForm):  # type: ignore[misc]
    """Asking for a mail; the answer is the same whether there is such a person or not."""

    def clean_email(self) -> str:
        email, request = str(super().clean_email()), context.request
        # However the admin wrote it; the mail goes to the address that is stored, not to the one that was typed.
        found = list(User.objects.filter(email__iexact=email, is_active=True))
        try:
            actions.ask_for_reset(
                email=email, address=client_address(request), users=found, by=stranger_of(request), clock=db_clock
            )  # fmt: skip
        except Throttled as refused:
            raise get_adapter().validation_error(THROTTLED) from refused
        # Where nobody is meant, a mail to nobody is made all the same: it takes as long, and is dropped.
        self.users = found or [User(username="nobody", email=email)]
        return email


class ResetKeyForm(account.UserTokenForm):  # type: ignore[misc]
    """The link of the mail."""

    token_generator = PasswordResetTokenGenerator()


class NewPasswordForm(account.ResetPasswordKeyForm):  # type: ignore[misc]
    """The new password after the link."""

    def save(self) -> None:
        actions.reset_password(
            user=self.user, password=self.cleaned_data["password1"],
            still_valid=lambda user: PasswordResetTokenGenerator().check_token(user, self.temp_key),
            by=user_actor(context.request, self.user), clock=db_clock,
        )  # fmt: skip
