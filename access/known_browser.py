"""A browser in which a person has signed in before counts its own tries at their password, and nobody else's.

So strangers who know a name can hold up strangers only. The cookie opens nothing: whoever has it may guess ten times in
a quarter of an hour, as everybody may.
"""

import secrets
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse

from access.throttle import pseudonym

LIFE: Final = timedelta(days=180)
_SALT: Final = "placet.known-browser"


def browser_for(request: HttpRequest, username: str) -> str:
    """The id of this browser, if it is one in which the person of this name has signed in; else empty."""
    try:
        whose, browser = signing.loads(
            request.COOKIES.get(settings.PLACET_BROWSER_COOKIE_NAME, ""), salt=_SALT, max_age=LIFE
        )
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    return str(browser) if whose == _mark(username) else ""


def remember(request: HttpRequest, response: HttpResponse, username: str) -> None:
    """The person has signed in here. One browser knows one person, the last."""
    browser = browser_for(request, username) or secrets.token_urlsafe(16)
    response.set_cookie(
        settings.PLACET_BROWSER_COOKIE_NAME, signing.dumps([_mark(username), browser], salt=_SALT), max_age=LIFE,
        secure=settings.SESSION_COOKIE_SECURE, httponly=True, samesite="Lax",
    )  # fmt: skip


def _mark(username: str) -> str:
    """Of the name: the cookie tells nobody who it is."""
    return pseudonym("known-browser", username.casefold()).hex
