"""What a passkey answers, read as something that anybody may have written; good for once, and never from a copy."""

import hashlib
import struct
from collections.abc import Callable
from typing import Any, Final, TypeVar

from allauth.account.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.internal import auth
from django import forms
from django.core.exceptions import ValidationError

from common.strictjson import JsonRefused, parse

T = TypeVar("T")
SPENT: Final = "spent"
COUNT: Final = "sign_count"
_MOST_SPENT: Final = 16
ODD: Final = (
    AssertionError, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError, struct.error,
)  # fmt: skip
"""What libraries raise over a credential of another shape."""


class CredentialField(forms.JSONField):
    """JSON of limited size and depth, and an object."""

    def to_python(self, value: Any) -> Any:
        if self.disabled or value in self.empty_values:
            return None if value in self.empty_values else value
        try:
            found = parse(str(value).encode(errors="surrogatepass"))
        except (JsonRefused, RecursionError) as error:
            raise wrong() from error
        if not isinstance(found, dict):
            raise wrong()
        return found

    def bound_data(self, data: Any, initial: Any) -> Any:
        """A credential that was not accepted is not shown again: it is asked for anew."""
        return None


def credential_field() -> CredentialField:
    return CredentialField(required=True, widget=forms.HiddenInput)


def wrong() -> ValidationError:
    error: ValidationError = get_adapter().validation_error("incorrect_code")
    return error


def readable(read: Callable[[], T]) -> T:
    """What ``read`` returns of a credential; the one refusal for whatever cannot be read."""
    try:
        return read()
    except ValidationError:
        raise
    except ODD as error:
        raise wrong() from error


def spend(read: Callable[[], Authenticator], credential: dict[str, Any]) -> Authenticator:
    """The passkey that ``read`` finds to have signed: locked, its answer used up. Inside a transaction.

    A challenge lies in the session, which many requests at once read alike, so what was answered is kept with the
    passkey. A passkey that counts its signatures (most do not) must have counted on: a copy of it lags behind.
    """
    state: dict[str, Any] = auth.get_state() or {}
    found = readable(read)
    row = Authenticator.objects.select_for_update().filter(pk=found.pk).first()
    if row is None:  # taken off in this very moment
        raise wrong()
    spent: list[str] = row.data.get(SPENT, [])
    name = hashlib.sha256(str(state.get("challenge")).encode()).hexdigest()[:32]
    answered = auth.parse_authentication_response(credential).response.authenticator_data
    before = row.data.get(COUNT, row.wrap().authenticator_data.counter)
    if name in spent or ((answered.counter or before) and answered.counter <= before):
        raise wrong()
    row.data |= {SPENT: [*spent, name][-_MOST_SPENT:], COUNT: answered.counter}
    row.save(update_fields=["data"])
    return used(row)


def used(authenticator: Authenticator) -> Authenticator:
    """Says when it was used, while it is locked; allauth would say so afterwards, when it may be gone."""
    authenticator.record_usage()
    authenticator.record_usage = lambda: None
    return authenticator
