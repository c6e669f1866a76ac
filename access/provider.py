"""Sign-in with the provider of the environment, held to what OpenID Connect Core says: more strictly than allauth does.

The issuer is the one that was configured, and says so of itself. There is an ID token, made for this very try
(``nonce``), and what the issuer says of a person besides (userinfo) is of the same subject. Whatever else comes is an
answer that is refused, never an error of ours.
"""

import hashlib
import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from urllib.parse import urlsplit

from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from common.digests import same

T = TypeVar("T")
_PROCESSES = ("login", "connect")
_NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")


def subject_id(issuer: str, subject: str) -> str:
    """What is kept of an account at the provider: the same name means somebody else at another issuer."""
    return hashlib.sha256(f"{issuer.rstrip('/')}\n{subject}".encode(errors="surrogatepass")).hexdigest()


def refusing(ask: Callable[..., T]) -> Callable[..., T]:
    """An answer of another shape than the protocol's is a refusal, as every other one."""

    @wraps(ask)
    def asked(*args: Any, **kwargs: Any) -> T:
        try:
            return ask(*args, **kwargs)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise OAuth2Error(f"The provider's answer cannot be read: {type(error).__name__}") from error

    return asked


class Adapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """Asks the issuer."""

    @property
    def openid_config(self) -> dict[str, Any]:
        """What the issuer says of itself. Raises OAuth2Error and requests' own errors."""
        if not hasattr(self, "_openid_config"):
            self._openid_config = self._checked()
        return self._openid_config

    @refusing
    def _checked(self) -> dict[str, Any]:
        said: dict[str, Any] = super().openid_config
        configured = urlsplit(self.get_provider().app.settings["server_url"])
        named = urlsplit(said["issuer"])
        if (named.scheme, named.netloc, named.path.rstrip("/")) != (
            configured.scheme, configured.netloc, configured.path.rstrip("/"),
        ):  # fmt: skip
            raise OAuth2Error("The provider names another issuer.")
        for name in (*_NEEDED, *({"userinfo_endpoint"} & said.keys())):
            if urlsplit(said[name]).scheme != "https" and configured.scheme == "https":
                raise OAuth2Error("The provider names an address without TLS.")
        return said

    def get_callback_url(self, request: HttpRequest, app: Any) -> str:
        """Under the address of this installation, not under the one that a request came with."""
        way = reverse("openid_connect_callback", args=[self.provider_id])
        return f"{settings.PLACET_BASE_URL}{way}"

    @refusing
    def get_access_token_data(self, *args: Any, **kwargs: Any) -> Any:
        return super().get_access_token_data(*args, **kwargs)

    @refusing
    def parse_token(self, data: Any) -> Any:
        return super().parse_token(data)

    @refusing
    def complete_login(self, request: HttpRequest, app: Any, token: Any, **kwargs: Any) -> Any:
        """The person at the provider, with what its ID token says as ``id_token`` and their address as it was written.

        Nothing of it is kept.
        """
        said: dict[str, Any] = self._decode_id_token(app, kwargs["response"]["id_token"])
        subject, data = said["sub"], {"id_token": said}
        if not (isinstance(subject, str) and subject):
            raise OAuth2Error("The ID token names nobody.")
        if "userinfo_endpoint" in self.openid_config:
            data["userinfo"] = self._fetch_user_info(token.token)
            if data["userinfo"]["sub"] != subject:
                raise OAuth2Error("What the provider says is of somebody else than its ID token.")
        login = self.get_provider().sociallogin_from_response(request, data)
        login.account.extra_data = {}  # before it is looked up, which stores it
        login.id_token, login.address = said, data.get("userinfo", said).get("email")
        return login


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    """The way there: its parameters are ours, and none is taken from the address of a request."""

    oauth2_adapter_class = Adapter

    def extract_uid(self, data: dict[str, Any]) -> str:
        return subject_id(self.app.settings["server_url"], data["id_token"]["sub"])

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        nonce = secrets.token_urlsafe(24)
        kwargs: dict[str, Any] = super().get_redirect_from_request_kwargs(request)
        process = kwargs["process"] if kwargs["process"] in _PROCESSES else _PROCESSES[0]
        mine = {"process": process, "scope": self.get_scope(), "nonce": nonce}
        return kwargs | mine | {"auth_params": self.get_auth_params() | {"nonce": nonce}}


def is_answer_to(login: Any) -> bool:
    """Whether the ID token was made for this try: it repeats the number that the way there bore."""
    asked, said = login.state.get("nonce"), login.id_token.get("nonce")
    return isinstance(asked, str) and isinstance(said, str) and same(asked, said)
