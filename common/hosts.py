"""Host names: one ASCII spelling, and what another reader could take them for.

Host names are compared and shown in their ASCII form (IDNA 2008 with the mapping of UTS 46, as browsers do
it); what they read as in other scripts is an explanation beside it.
"""

from __future__ import annotations

import re
from typing import Final

import idna

from common.display import Flag, name_of, spelled_out

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

# What the most used look-alikes of other scripts read as: enough to warn, never used for a digest.
_LOOKALIKES: Final = str.maketrans(
    {
        # Cyrillic
        "а": "a", "в": "b", "г": "r", "е": "e", "з": "3", "і": "i", "ј": "j", "к": "k", "м": "m", "н": "h",
        "о": "o", "п": "n", "р": "p", "с": "c", "т": "t", "у": "y", "х": "x", "ь": "b", "ѕ": "s", "ѵ": "v",
        "ԁ": "d", "һ": "h", "ӏ": "l", "ԛ": "q", "ԝ": "w",
        # Greek
        "α": "a", "ε": "e", "ι": "i", "κ": "k", "ν": "v", "ο": "o", "ρ": "p", "τ": "t", "υ": "u", "χ": "x",
        "ω": "w",
        # Latin beyond ASCII
        "ı": "i", "ɡ": "g", "ɑ": "a", "ɩ": "i", "ʟ": "l",
    }
)  # fmt: skip


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
    shown = readable(name)
    if shown == name:
        return (), ()
    flags = [_warning("idn_host", "The host is written in letters beyond ASCII; it is shown as punycode.")]
    odd = [letter for letter in dict.fromkeys(shown) if not letter.isascii()]
    sub = [f"reads as {spelled_out(shown, odd)}: " + ", ".join(name_of(letter) for letter in odd)]
    twin = shown.translate(_LOOKALIKES)
    if twin.isascii():
        flags.append(
            _warning("lookalike_host", f"The host can be mistaken for {twin}, which is another one.")
        )
    return tuple(sub), tuple(flags)


def _warning(code: str, sentence: str) -> Flag:
    return Flag(code, sentence, acknowledge=True)
