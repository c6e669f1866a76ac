"""Links inside a text: where they lead, and what about them is not as it seems.

Nothing is repaired or opened here. A text is bound and sent as it is; whoever approves it should know where its reader
would end up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final
from urllib.parse import unquote

from common.display import visible
from common.hosts import HostRefused, ascii_host, notes_on, notes_on_local

_URL: Final = re.compile(r"(?:(?:https?|ftp):[/\\]{1,3}|\bwww\.)[^\s<>\"'`\])}|]+", re.IGNORECASE)
_BARE: Final = re.compile(
    r"(?<![\w.@/\\:%-])(?!www\.)((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}"
    r"(?:[a-z]{2,24}(?::[0-9]{1,5})?/[^\s<>\"'`\])}|]+"
    r"|(?:com|org|net|info|biz|io|co|app|dev|shop|store|online|site|xyz|top|club|live|ai|eu|uk|de|fr|nl|ch|ru|cn"
    r"|example)(?![\w@-]|\.\w)))",
)
"""Names that mail programs make links of: with a path, or an ending that is no word and no kind of file."""
_MAIL: Final = re.compile(r"(?<![\w.@])([\w.+%!=-]{1,64})@((?:[\w-]{1,63}\.){1,8}[\w-]{2,63})")
_MARKDOWN: Final = re.compile(r"\[([^\]\n]{1,300})\]{1,3}\(\s*<?([^)\s>]{1,2048})")
_REFERENCE: Final = re.compile(r"\[([^\]\n]{1,300})\](?:\[([^\]\n]{0,100})\])?(?![\[(:])")
_DEFINED: Final = re.compile(r"^ {0,3}\[([^\]\n]{1,100})\]:\s*<?(\S{1,2048})", re.MULTILINE)
_HTML: Final = re.compile(
    r"<a\b[^<>]{0,4000}?href\s*=\s*(?:[\"']([^\"'<>]{1,2048})[\"']|([^\"'>\s]{1,2048}))[^<>]{0,4000}>(.{1,1000}?)</a",
    re.IGNORECASE | re.DOTALL,
)
_RUNS: Final = re.compile(
    r"\b(?:javascript|vbscript|ms-[a-z]{2,20}|search-ms|view-source):(?=\S)|\bdata:[a-z]+/[a-z0-9.+-]+[;,]"
    r"|\b(?:file|smb|cifs|ldaps?|intent|jar|blob|filesystem):/|(?<!\S)\\\\(?=[\w.-]+\\\w)",
    re.IGNORECASE,
)
_CARRIED: Final = re.compile(r"(?:https?:[/\\]{1,3}|=[/\\]{2})([^/\\?#&\s]{3,253})", re.IGNORECASE)
_NAMED: Final = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:[a-z]{2,}|xn--[a-z0-9-]+)", re.IGNORECASE
)
_NUMERIC: Final = re.compile(r"\[.*|(?:0x[0-9a-f]+|[0-9]+)(?:\.(?:0x[0-9a-f]+|[0-9]+))*", re.IGNORECASE)
_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Trick:
    """Something about a link that is not as it seems. ``code`` is stable."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class TextLink:
    """A link in a text: its host, as a browser would take it, and what else it seems to be."""

    host: str
    tricks: tuple[Trick, ...]


def links_in(text: str) -> tuple[TextLink, ...]:
    """The links of a text, the first two hundred of them, with those that Markdown and HTML hide behind other words."""
    found: list[TextLink] = []
    for link in _links(text):
        found.append(link)
        if len(found) == _MOST:
            break
    return tuple(found)


def _links(text: str) -> Iterator[TextLink]:
    for match in _URL.finditer(text):
        yield _link(match[0] if ":" in match[0][:6] else f"http://{match[0]}")
    rest = _URL.sub(" ", text)
    for match in _BARE.finditer(rest):
        yield _link(f"http://{match[0]}")
    yield from _behind_words(text)
    for match in _MAIL.finditer(rest):
        if tricks := (*notes_on_mail(match[1]), *_host_tricks(match[2], host_in(f"//{match[2]}"))):
            yield TextLink("", tricks)
    yield from _running(text)


def _behind_words(text: str) -> Iterator[TextLink]:
    """The links behind words that name another host, and those whose target is spelled so that no host is seen."""
    for shown, target in _worded(text):
        host, trick = _host_of_target(target), _other_host(shown, target)
        if trick or (target not in text and _NAMED.fullmatch(host)):
            yield TextLink(host, (trick,) if trick else ())


def notes_on_mail(local: str) -> tuple[Trick, ...]:
    """What is odd about the part of a mail address before its @."""
    return tuple(Trick(flag.code, flag.sentence) for flag in notes_on_local(local))


def _running(text: str) -> Iterator[TextLink]:
    """Links that run or open something, also where entities or line ends inside a target hide that."""
    found = [match[0] for match in _RUNS.finditer(text)]
    found += [match[0] for _, target in _worded(text) if (match := _RUNS.match(target))]
    for begins in dict.fromkeys(found):
        sentence = f"A link that begins with {visible(begins)} runs or opens something; it leads to no page."
        yield TextLink("", (Trick("link_scheme", sentence),))


def _worded(text: str) -> Iterator[tuple[str, str]]:
    """The links that stand behind words, as (words, target): of Markdown, at once or by reference, and of HTML."""
    yield from ((words, _as_read(to)) for words, to in _MARKDOWN.findall(text))
    yield from ((words, _as_read(quoted or bare)) for quoted, bare, words in _HTML.findall(text))
    if defined := {label.casefold(): target for label, target in _DEFINED.findall(text)}:
        for words, label in _REFERENCE.findall(text):
            if target := defined.get((label or words).casefold()):
                yield words, _as_read(target)


def _as_read(target: str) -> str:
    """A target as a browser reads it: entities are letters, and tabs and line ends inside count for nothing."""
    return re.sub(r"[\t\r\n]", "", unescape(target)).strip()


def host_in(url: str) -> str:
    """The host that a browser would go to; empty where there is none."""
    name = unquote(_without_port(_authority(url))).rstrip(".").lower()
    try:
        return ascii_host(name)
    except HostRefused:
        return name


def _without_port(authority: str) -> str:
    place = authority.rpartition("@")[2]
    if place.startswith("["):
        return f"{place.partition(']')[0]}]"
    return re.sub(r":[0-9]*$", "", place)


def _authority(url: str) -> str:
    # Browsers take backslashes for slashes, however many of them there are; a link may do without its scheme.
    rest = url if url.startswith(("/", "\\")) else url.partition(":")[2]
    return re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0]


def _link(url: str) -> TextLink:
    authority, host = _authority(url), host_in(url)
    tricks = []
    if "@" in authority:
        before = authority.rpartition("@")[0]
        tricks.append(
            Trick(
                "link_userinfo", f"The host is {host}; {before}, which stands before the @, is only a name."
            )
        )
    bare = _without_port(authority)
    if _NUMERIC.fullmatch(bare.rstrip(".")):
        tricks.append(Trick("link_ip_literal", f"The link leads to the address {bare}, not to a named host."))
    elif bare.endswith("."):
        tricks.append(
            Trick("link_trailing_dot", f"The host ends with a dot: {bare} is not compared as {host}.")
        )
    if "%" in bare:
        tricks.append(
            Trick("link_host_encoding", f"The host {bare} is percent-encoded; it is {visible(host)}.")
        )
    return TextLink(host, (*tricks, *_carried(url, host), *_host_tricks(bare, host)))


def _carried(url: str, host: str) -> tuple[Trick, ...]:
    other = carried_host(url)
    if not other:
        return ()
    return (Trick("link_carries_another", f"The link to {host} carries another one, to {other}."),)


def carried_host(url: str) -> str:
    """The host of another link inside this one, where its page may lead on to; empty where there is none."""
    own, inside = host_in(url), unquote(unquote(url.partition(":")[2].lstrip("/\\")))
    hosts = (host_in(f"//{match[1]}") for match in _CARRIED.finditer(inside))
    return next((visible(host) for host in hosts if "." in host and host != own), "")


def _host_tricks(named: str, host: str) -> tuple[Trick, ...]:
    """What is odd about a host by itself, as in an argument that names one; or that it is none at all."""
    try:
        flags = notes_on(ascii_host(host))[1]
    except HostRefused:
        if host.isascii():
            return ()
        return (
            Trick("link_no_host", f"A link names {visible(named)}, which looks like a host and is none."),
        )
    return tuple(Trick(flag.code, f"{host}: {flag.sentence}") for flag in flags)


def _other_host(shown: str, target: str) -> Trick | None:
    """Where the words of a link name a host, and the link leads to another."""
    host = _host_of_target(target)
    named = [name.lower() for name in _NAMED.findall(shown)]
    if not host or not named or any(host == name or host.endswith(f".{name}") for name in named):
        return None
    return Trick("link_other_host", f"A link that reads as {named[0]} leads to {host}.")


def _host_of_target(target: str) -> str:
    return host_in(target) if ":" in target or target.startswith(("//", "\\", "/\\")) else ""
