"""Sign-in with an OpenID Connect provider, from the environment; without an issuer there is none."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

PROVIDER_ID = "oidc"


@dataclass(frozen=True)
class OpenIdConnect:
    """What allauth is given, and the origins that a form's answer may lead to."""

    providers: dict[str, Any] = field(default_factory=dict)
    origins: tuple[str, ...] = ()
    match_email: bool = False
    """Whether an address that the issuer has verified leads to the one person here who has it."""


def openid_connect(env: environ.Env) -> OpenIdConnect:
    """Reads PLACET_OIDC_ISSUER, _CLIENT_ID, _CLIENT_SECRET, _NAME, _ORIGINS and _MATCH_EMAIL."""
    issuer = env.str("PLACET_OIDC_ISSUER", default="").rstrip("/")
    if not issuer:
        return OpenIdConnect()
    parts = urlsplit(issuer)
    if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1"):
        raise ImproperlyConfigured(
            "PLACET_OIDC_ISSUER must begin with https://: what it says is believed for its TLS."
        )
    app = {
        "provider_id": PROVIDER_ID,
        "name": env.str("PLACET_OIDC_NAME", default="") or urlsplit(issuer).netloc,
        "client_id": env.str("PLACET_OIDC_CLIENT_ID", default=""),
        "secret": env.str("PLACET_OIDC_CLIENT_SECRET", default=""),
        "settings": {"server_url": issuer, "oauth_pkce_enabled": True},
    }
    # Chrome holds redirects after a form to `form-action` too; some issuers sign in elsewhere.
    origins = {f"{parts.scheme}://{parts.netloc}", *env.list("PLACET_OIDC_ORIGINS", default=[])}
    return OpenIdConnect(
        providers={"openid_connect": {"APPS": [app]}},
        origins=tuple(sorted(origins)),
        match_email=env.bool("PLACET_OIDC_MATCH_EMAIL", default=False),
    )
