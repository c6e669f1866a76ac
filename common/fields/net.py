"""Links and mail addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from common.display import Flag, hidden_kind
from common.fields.base import ArgumentType, Rendered, need_text, refuse
from common.hosts import HostRefused, ascii_host, notes_on, notes_on_local
from common.textlinks import carried_host

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_PORTS: Final = {"https": 443, "http": 80}
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_REST: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?#-]|%[0-9A-Fa-f]{2})*", re.ASCII)
_CODED_CONTROL: Final = re.compile(r"%(?:[01][0-9A-Fa-f]|7[fF])", re.ASCII)
_CODED_DOT: Final = re.compile(r"%2e", re.ASCII | re.IGNORECASE)
_LOCAL: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.ASCII)


@dataclass(frozen=True)
class UrlType(ArgumentType):
    """An absolute link to a public host.

    Scheme and host are lower-cased, the host becomes punycode and a default port goes; the path stays as it
    is, and what an HTTP client would change in it after the approval is refused.
    """

    name: ClassVar[str] = "url"
    max_length: int = 2_048

    def normalize(self, value: Any) -> str:
        text = need_text(value)
        if len(text) > self.max_length:
            refuse("url_length", f"A link has at most {self.max_length} characters.")
        if any(c in " \\\n\t" or hidden_kind(c) for c in text):
            refuse("url_forbidden_char", "A link has no spaces, backslashes, control or hidden characters.")
        scheme, authority, rest = _split(text)
        host, port = _host_and_port(authority, scheme)
        return f"{scheme}://{host}{port}{_checked_rest(rest)}"

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "uri", "maxLength": self.max_length}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        scheme, authority, _ = _split(value)
        sub, flags = notes_on(authority.partition(":")[0])
        return Rendered(value, sub, (*flags, *_carried(value)), strong=(0, len(f"{scheme}://{authority}")))

    def parse(self, text: str) -> str:
        return text


def _split(text: str) -> tuple[str, str, str]:
    """Scheme in lower case, authority, and the rest from path to fragment."""
    found = _SCHEME.match(text)
    if found is None:
        refuse("url_not_absolute", "A link begins with https:// and a host.")
    scheme = found[1].lower()
    if scheme not in _PORTS:
        refuse("url_scheme", "Only https and http links are accepted.")
    after = text[found.end() :]
    if not after.startswith("//"):
        refuse("url_not_absolute", "A link begins with https:// and a host.")
    authority = re.match(r"[^/?#]*", after[2:])[0]  # type: ignore[index]  # the pattern matches everything
    return scheme, authority, after[2 + len(authority) :]


def _host_and_port(authority: str, scheme: str) -> tuple[str, str]:
    if "@" in authority:
        refuse("url_userinfo", "A link must not name a user before its host.")
    if authority.startswith("["):
        refuse("url_ip_literal", "The host is an IP address.")
    name, colon, port = authority.partition(":")
    try:
        host = ascii_host(name)
    except HostRefused as refused:
        refuse(f"url_{refused.code}", refused.message)
    if colon and not (_PORT.fullmatch(port) and int(port) <= 65_535):
        refuse("url_port", "The port of a link is a number from 1 to 65535.")
    return host, f":{port}" if colon and int(port) != _PORTS[scheme] else ""


def _checked_rest(rest: str) -> str:
    if not _REST.fullmatch(rest) or _CODED_CONTROL.search(rest):
        refuse(
            "url_forbidden_char",
            "Path and query are ASCII, percent-encoded where needed, no controls.",
        )
    path = re.split(r"[?#]", rest, maxsplit=1)[0]
    if any(_CODED_DOT.sub(".", segment) in (".", "..") for segment in path.split("/")):
        refuse("url_dot_segment", "The path holds a dot segment, which programs resolve in different ways.")
    return rest


def _carried(url: str) -> tuple[Flag, ...]:
    other = carried_host(url)
    sentence = f"The link carries another one, to {other}; its page may lead on there."
    return (Flag("link_carries_another", sentence, acknowledge=True),) if other else ()


@dataclass(frozen=True)
class EmailType(ArgumentType):
    """One mail address in ASCII. The domain is lower-cased, what stands before the @ stays as it is."""

    name: ClassVar[str] = "email"

    def normalize(self, value: Any) -> str:
        text = need_text(value)
        local, _, domain = text.rpartition("@")
        if len(text) > 254 or len(local) > 64 or not text.isascii() or not _LOCAL.fullmatch(local):
            refuse("email_format", "A mail address looks like name@example.com; one address, without a name.")
        try:
            return f"{local}@{ascii_host(domain)}"
        except HostRefused as refused:
            refuse("email_format", refused.message)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "email", "maxLength": 254}

    def render(self, value: str, siblings: Mapping[str, Any]) -> Rendered:
        local, _, domain = value.rpartition("@")
        sub, flags = notes_on(domain)
        return Rendered(value, sub, (*flags, *notes_on_local(local)), strong=(len(local) + 1, len(value)))

    def parse(self, text: str) -> str:
        return text


Url = Annotated[str, UrlType()]
Email = Annotated[str, EmailType()]
