"""Host names: one ASCII spelling, and what another reader could take them for.

Host names are compared and shown in their ASCII form (IDNA 2008 with the mapping of UTS 46, as browsers do
it); what they read as in other scripts is an explanation beside it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import idna

from common.display import Flag, hidden_kind, name_of, spelled_out, visible
from common.lookalikes import ALIKE

_LABEL: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_NUMERIC: Final = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*", re.ASCII)
_INTERNAL: Final = frozenset(
    (
        "localhost",
        "local",
        "localdomain",
        "internal",
        "intranet",
        "lan",
        "home",
        "corp",
        "private",
        "onion",
        "arpa",
    )
)


class HostRefused(ValueError):
    """The host is not one that an approved action may name. `code` is stable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def ascii_host(host: str) -> str:
    """The lower-case ASCII form of a public host name, or HostRefused."""
    if "%" in host:
        raise HostRefused("host_encoding", "The host is percent-encoded.")
    if host.startswith("["):
        raise HostRefused("ip_literal", "The host is an IP address.")
    name = host.lower() if host.isascii() else _from_unicode(host)
    labels = name.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        raise HostRefused("ip_literal", "The host is an IP address, or would be read as one.")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise HostRefused("host", "The host is not a valid host name.")
    if len(labels) == 1 or labels[-1] in _INTERNAL:
        raise HostRefused("internal_name", "The host is a name of an internal network.")
    readable(name)
    return name


def _from_unicode(host: str) -> str:
    try:
        return idna.encode(host, uts46=True).decode("ascii").lower()
    except idna.IDNAError as error:
        raise HostRefused("host", "The host is not a valid internationalized name.") from error


def readable(name: str) -> str:
    """An ASCII host name in the scripts it stands for; HostRefused where it stands for nothing."""
    if "xn--" not in name:
        return name
    try:
        return idna.decode(name)
    except idna.IDNAError as error:
        raise HostRefused("host", "The host is not a valid internationalized name.") from error


def notes_on(name: str) -> tuple[tuple[str, ...], tuple[Flag, ...]]:
    """Explanations and flags of an ASCII host name; both empty for an ordinary one."""
    front = _in_front(name)
    flags = (
        [
            _warning(
                "host_in_front", f"The host begins like {front}, and is another one: it ends in {_end(name)}."
            )
        ]
        if front
        else []
    )
    shown = readable(name)
    if shown == name:
        return (), tuple(flags)
    flags.append(
        _warning("idn_host", "The host is written in letters beyond ASCII; it is shown as punycode.")
    )
    odd = [letter for letter in dict.fromkeys(shown) if not letter.isascii()]
    sub = [f"reads as {spelled_out(shown, odd)}: " + ", ".join(name_of(letter) for letter in odd)]
    twin = shown.translate(ALIKE)
    if twin.isascii():
        flags.append(
            _warning("lookalike_host", f"The host can be mistaken for {twin}, which is another one.")
        )
    return tuple(sub), tuple(flags)


_ENDINGS: Final = frozenset({"com", "org", "net", "gov", "edu", "mil"})
_ROUTED: Final = re.compile(r"[%!]|=[^=]*\.[A-Za-z]{2,}$")


def notes_on_local(local: str) -> tuple[Flag, ...]:
    """Flags of what stands before the @ of a mail address: it may name a host that the mail does not go to."""
    labels = local.lower().split(".")
    if not _ROUTED.search(local) and not (len(labels) > 1 and labels[-1] in _ENDINGS):
        return ()
    sentence = (
        f"{visible(local)}, which stands before the @, reads like an address of its own; it is only a name."
    )
    return (_warning("mail_local_host", sentence),)


def fronts_of(name: str) -> tuple[str, ...]:
    """What a host begins with that could be another whole host: bank.de of bank.de.evil.example."""
    labels = name.split(".")
    return tuple(".".join(labels[:count]) for count in range(2, len(labels)))


def _in_front(name: str) -> str:
    """What looks like a whole host at the beginning of another: bank.com of bank.com.evil.example.

    The last two names are left out: they are the owner's, or an ending such as com.au.
    """
    labels = name.split(".")
    at = next((i for i in range(1, len(labels) - 2) if labels[i] in _ENDINGS), 0)
    return ".".join(labels[: at + 1]) if at else ""


def _end(name: str) -> str:
    return ".".join(name.split(".")[-2:])


def _warning(code: str, sentence: str) -> Flag:
    return Flag(code, sentence, acknowledge=True)


_ALIKE: Final = str.maketrans(
    {"0": "o", "1": "l", "i": "l", "|": "l", "5": "s", "$": "s", "2": "z", "8": "b", "_": "-"}
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u02bc\u02b9\u2032\ua78c`\u00b4", "'")
)


def likeness(text: str) -> str:
    """What a hurried reader takes a name for: two texts with one likeness are easily mistaken for each other.

    Case, spaces, marks and invisible characters fall away; letters and digits that look alike become one. It is for
    comparing only, never for a digest.
    """
    name = text.removesuffix(".")
    shown = readable_or_same(name) if "xn--" in name else name
    # Capitals of other scripts have other twins than their small letters: Ν is N, and ν is v.
    plain = unicodedata.normalize("NFKD", shown.translate(ALIKE).casefold()).translate(ALIKE)
    letters = "".join(c for c in plain if not (c.isspace() or unicodedata.combining(c) or hidden_kind(c)))
    return letters.translate(_ALIKE).replace("rn", "m").replace("vv", "w").replace("cl", "d")


def readable_or_same(name: str) -> str:
    """An ASCII host name in the scripts it stands for, or as it is where it stands for nothing."""
    try:
        return readable(name)
    except HostRefused:
        return name
