"""Second factors for tests: codes of an app, a session that is as old as one likes, mails."""

import time
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client

from access import mail
from access.models import User
from access.sessions import OPENED, SEEN
from audit.models import Event

AUTHENTICATIONS = "account_authentication_methods"
PERIOD = 30


def add_app(user: User) -> str:
    """The secret of a new app of this person."""
    secret = generate_totp_secret()
    TOTP.activate(user, secret)
    return secret


def add_codes(user: User) -> list[str]:
    """Recovery codes of this person."""
    codes: list[str] = RecoveryCodes.activate(user).generate_codes()
    return codes


def code(secret: str, steps: int = 0) -> str:
    """The app's code now, or ``steps`` half-minutes from now."""
    forget_used()
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // PERIOD + steps)))


def forget_used() -> None:
    """What allauth remembers of used codes lies in a cache of this process; other processes do not have it."""
    cache.clear()


def age(client: Client, *, opened: float = 0, seen: float = 0) -> None:
    """Make the client's session older, by so many seconds since sign-in and since its last use."""
    session = client.session
    session[OPENED] -= opened
    session[SEEN] -= seen
    for record in session.get(AUTHENTICATIONS, []):
        record["at"] -= opened
    session.save()


def key_of(client: Client) -> str:
    return str(client.cookies[settings.SESSION_COOKIE_NAME].value)


def is_stored(key: str) -> bool:
    return Session.objects.filter(session_key=key).exists()


def happened(kind: str, **fields: Any) -> list[Event]:
    return list(Event.objects.filter(kind=kind, **fields).order_by("at", "id"))


def mails() -> list[Any]:
    """Everything that was sent so far."""
    from django.core import mail as outbox

    mail.wait_until_posted()
    return list(outbox.outbox)


def factors_of(user: User) -> list[str]:
    return sorted(Authenticator.objects.filter(user=user).values_list("type", flat=True))


def age_of_browser(page: Any, seconds: float) -> None:
    """Make the session of a browser older."""
    key = next(c["value"] for c in page.context.cookies() if c["name"] == settings.SESSION_COOKIE_NAME)
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = key
    age(client, opened=seconds)
