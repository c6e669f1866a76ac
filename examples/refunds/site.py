"""Which provider a tenant speaks to, and with which key. Read when it is needed, so that a new key counts at once."""

import json
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from examples.refunds.client import Provider
from workflows.authoring import CredentialRefused, Site, SourceDown


def provider_for(site: Site) -> Provider:
    """The provider of the site's tenant.

    Raises SourceDown where no address is set, and CredentialRefused where this tenant has no key.
    """
    address = str(getattr(settings, "PLACET_REFUNDS_URL", ""))
    if not address:
        raise SourceDown("PLACET_REFUNDS_URL is not set")
    key = _keys().get(site.tenant)
    if key is None:
        raise CredentialRefused("this tenant has no key for the provider")
    return Provider(address.rstrip("/"), key)


def account_of(site: Site) -> str:
    """The provider's address and whose account there, as they are set now."""
    address = urlsplit(str(getattr(settings, "PLACET_REFUNDS_URL", "")))
    host = f"{address.hostname}:{address.port}" if address.port else address.hostname
    return f"{host}, the account of {site.tenant}" if address.hostname else ""


def _keys() -> dict[str, str]:
    path = Path(str(getattr(settings, "PLACET_REFUNDS_KEYS", "")))
    try:
        return _read(path, path.stat().st_mtime_ns)
    except (OSError, ValueError) as error:
        raise CredentialRefused("the file of PLACET_REFUNDS_KEYS cannot be read") from error


@lru_cache(maxsize=4)
def _read(path: Path, _written_at: int) -> dict[str, str]:
    """``{tenant: key}``; the time of writing is part of the cache's key."""
    found = json.loads(path.read_text())
    return {str(tenant): str(key) for tenant, key in found.items()}
