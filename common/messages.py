"""Short messages between a form and the page after it, in a cookie of this very host and for one person alone.

A cookie outlives a session: without the person's id in its signature, what was said to one would be shown to whoever
signs in next in the same browser.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.messages.storage.session import SessionStorage
from django.core import signing


class OwnCookieStorage(CookieStorage):
    """Django's, under a name that browsers hold to this host, and readable in a session of the same person only."""

    @property
    def cookie_name(self) -> str:  # type: ignore[override]
        return str(settings.PLACET_MESSAGES_COOKIE_NAME)

    @property
    def signer(self) -> signing.TimestampSigner:
        """Asked for when messages are read or written: the person may have changed within the request."""
        return signing.get_cookie_signer(salt=f"{self.key_salt}:{self.request.session.get(SESSION_KEY, '')}")

    @signer.setter
    def signer(self, _: Any) -> None:
        """Django makes one too early."""


class MessageStorage(FallbackStorage):
    """What does not fit into the cookie lies in the session."""

    storage_classes = (OwnCookieStorage, SessionStorage)
