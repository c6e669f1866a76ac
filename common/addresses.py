"""Which addresses the product may call: https to public hosts, and what the operator vouches for.

A URL in a callback or a connector is input like any other. Every address a name resolves to is
checked, and the caller connects to exactly the address that was checked, so a name that changes its
answer in between gains nothing (OWASP ASVS 5.0 V1.3.6, V13.2.4, V15.3.2).
"""

import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from common.deadline import Deadline

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], "list[str]"]

PRINTABLE = re.compile(r"[\x21-\x5b\x5d-\x7e]+", re.ASCII)
"""Visible ASCII without the backslash, which parsers read differently. IDN hosts come as punycode."""

PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")
"""The only block that IANA assigns global unicast from; NAT64, mapped, ULA and link-local lie outside."""

NOT_PUBLIC = tuple(
    ipaddress.ip_network(block)
    for block in (
        "100.64.0.0/10",  # carrier NAT; also one cloud's metadata address
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "240.0.0.0/4",
        "2001::/23",  # Teredo and other protocol assignments
        "2001:db8::/32",
        "2002::/16",  # 6to4 carries any IPv4 address; Python calls it global
        "3fff::/20",
    )
)

NEVER = tuple(
    ipaddress.ip_network(block)
    for block in (
        "0.0.0.0/8",
        "169.254.0.0/16",  # link-local, where clouds serve instance credentials
        "168.63.129.16/32",  # a public address that one cloud answers from the host
        "100.100.100.200/32",
        "192.0.0.192/32",
        "224.0.0.0/4",
        "fe80::/10",
        "fd00:ec2::254/128",
        "ff00::/8",
        "::/128",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "::ffff:0:0/96",
        "2002::/16",
    )
)
"""Refused even where the operator vouches for the host: metadata services, and disguised addresses."""

LOOKUPS = threading.BoundedSemaphore(32)
"""A resolver that hangs keeps its thread; this is how many may hang at once."""


class AddressRefused(ValueError):
    """This address may not be called."""


class LookupFailed(OSError):
    """The host name could not be resolved."""


class NoLookupSlot(OSError):
    """Too many name look-ups are hanging already."""


@dataclass(frozen=True)
class Target:
    """A parsed URL that may be looked up; ``trusted`` when the operator vouches for the host and port."""

    scheme: str
    host: str
    port: int
    path: str
    trusted: bool

    @property
    def authority(self) -> str:
        """The ``Host`` header: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == default_port(self.scheme) else f"{host}:{self.port}"


@dataclass(frozen=True)
class AddressPolicy:
    """``trusted`` holds ``host:port`` in lower case; exactly these may use http and private addresses."""

    trusted: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset({443})

    @classmethod
    def trusting(cls, hosts: Iterable[str]) -> "AddressPolicy":
        return cls(trusted=frozenset(host.strip().lower() for host in hosts if host.strip()))


def parse_target(url: str, policy: AddressPolicy) -> Target:
    """Split and check ``url``; raises :class:`AddressRefused` with a sentence that names no secret."""
    scheme, host, port, path = _split(url)
    shown = f"[{host}]" if ":" in host else host
    trusted = f"{shown}:{port}" in policy.trusted
    if not trusted and scheme != "https":
        raise AddressRefused("Only https addresses may be called.")
    if not trusted and port not in policy.ports:
        raise AddressRefused(f"Port {port} may not be called.")
    return Target(scheme=scheme, host=host, port=port, path=path, trusted=trusted)


def _split(url: str) -> tuple[str, str, int, str]:
    if not PRINTABLE.fullmatch(url):
        raise AddressRefused("The address contains characters that do not belong in a URL.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise AddressRefused("The address cannot be read as a URL.") from error
    if parts.scheme not in ("https", "http") or not host:
        raise AddressRefused("The address needs https and a host name.")
    if parts.username is not None or parts.password is not None or "#" in url:
        raise AddressRefused("An address may hold neither credentials nor a fragment.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, host, default_port(parts.scheme) if port is None else port, path


def default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def is_public(address: IPAddress) -> bool:
    """Whether the address is reachable by everybody, by our own list and by Python's."""
    if address.version == 6 and address not in PUBLIC_IPV6:
        return False
    if any(address in block for block in (*NOT_PUBLIC, *NEVER) if block.version == address.version):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def check_addresses(found: Iterable[str], *, trusted: bool) -> list[IPAddress]:
    """All of ``found`` or none: one private answer among public ones refuses the host.

    Raises :class:`AddressRefused`.
    """
    addresses = [_address(text) for text in found]
    for address in addresses:
        never = any(address in block for block in NEVER if block.version == address.version)
        if never or not (trusted or is_public(address)):
            raise AddressRefused("The host resolves to an address that may not be called.")
    return addresses


def _address(text: str) -> IPAddress:
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise AddressRefused("The host resolves to an address that may not be called.") from error


def system_resolver(host: str, port: int) -> list[str]:
    """Every address the operating system knows for ``host``, without doubles, in its order of preference."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def look_up(target: Target, deadline: Deadline, resolver: Resolver = system_resolver) -> list[IPAddress]:
    """The checked addresses of ``target``.

    Raises :class:`AddressRefused`, :class:`LookupFailed`, :class:`NoLookupSlot`, or ``TimeoutError`` at the
    deadline. An address written as such needs no look-up; a name is resolved in a thread of its own, because
    ``getaddrinfo`` knows no time limit.
    """
    try:
        literal = [str(ipaddress.ip_address(target.host))]
    except ValueError:
        literal = []
    found = literal or _resolve_in_thread(target, deadline, resolver)
    return check_addresses(found, trusted=target.trusted)


def check_literal(target: Target) -> None:
    """Refuse a target whose host is written as an address that may not be called. A name is for `look_up` to check.

    Raises :class:`AddressRefused`.
    """
    try:
        literal = str(ipaddress.ip_address(target.host))
    except ValueError:
        return
    check_addresses([literal], trusted=target.trusted)


def _resolve_in_thread(target: Target, deadline: Deadline, resolver: Resolver) -> list[str]:
    if not LOOKUPS.acquire(timeout=deadline.remaining()):
        raise NoLookupSlot(NoLookupSlot.__doc__)
    found: list[str] = []
    failures: list[Exception] = []

    def resolve() -> None:
        try:
            found.extend(resolver(target.host, target.port))
        except (OSError, UnicodeError) as error:
            failures.append(error)
        finally:
            LOOKUPS.release()

    thread = threading.Thread(target=resolve, name="resolve", daemon=True)
    thread.start()
    thread.join(deadline.remaining())
    if thread.is_alive():
        raise TimeoutError("The name look-up did not end in time.")
    if failures or not found:
        raise LookupFailed("The host name could not be resolved.") from (failures[0] if failures else None)
    return found
