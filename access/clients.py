"""Where a request comes from."""

import ipaddress
from typing import Final

from django.conf import settings
from django.http import HttpRequest

UNKNOWN: Final = "0.0.0.0"  # noqa: S104
_COUNTED_PREFIX: Final = 64
"""Of an IPv6 address so many bits are one client: each has the rest to itself."""


def client_address(request: HttpRequest) -> str:
    """The client's IP address; `UNKNOWN` where there is none, as over a Unix socket.

    ``X-Forwarded-For`` is a client's own word, and not read. Behind a proxy of ours (PLACET_BEHIND_PROXY) its last
    entry is the one that the proxy wrote.
    """
    text = request.META.get("REMOTE_ADDR", "")
    if settings.PLACET_BEHIND_PROXY:
        text = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip() or text
    try:
        parsed = ipaddress.ip_address(_bare(text))
    except ValueError:
        return UNKNOWN
    # A socket for both kinds writes IPv4 clients as ::ffff:192.0.2.1: they would all be of one IPv6 network.
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def _bare(text: str) -> str:
    """The address without the port that some proxies write behind it, and without the name of a link (``%eth0``)."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    return text.partition("%")[0]


def counted_address(address: str) -> str:
    """What counts as one client: an IPv4 address, or the network of an IPv6 one."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((parsed, _COUNTED_PREFIX), strict=False))
    return str(parsed)
