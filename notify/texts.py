"""Texts as they leave: one line, nothing hidden, nothing that a mail program or a chat system takes for its own.

Whatever stands in a summary was put there by code, from values that somebody else chose.
"""

import re
import textwrap
from typing import Final

from common.display import hidden_kind

LONGEST: Final = 200
_SCHEME: Final = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,20}):(?=//|[^\s:])")
_LINKING: Final = frozenset(
    {"http", "https", "ftp", "mailto", "javascript", "data", "file", "tel", "sms", "vbscript"}
)
_WWW: Final = re.compile(r"(?i)\bwww\.")


def one_line(text: str, longest: int = LONGEST) -> str:
    """Without line ends and control characters; what hides or deceives stands there as its code point."""
    flat = " ".join("".join(map(_shown, text)).split())
    return textwrap.shorten(flat, longest, placeholder=" …") if len(flat) > longest else flat


def _shown(character: str) -> str:
    if character in "\n\t\r":
        return " "
    return f"⟦U+{ord(character):04X}⟧" if hidden_kind(character) else character


def unlinked(text: str) -> str:
    """``https://x`` as ``https[:]//x``: programs that make links of texts make none of this one."""
    text = _SCHEME.sub(lambda found: _shut(found[0], found[1]), text)
    return _WWW.sub("www[.]", text)


def _shut(whole: str, scheme: str) -> str:
    return f"{scheme}[:]" if scheme.lower() in _LINKING or "//" in whole else whole


def for_mail(text: str) -> str:
    return unlinked(one_line(text))


def for_chat(text: str) -> str:
    """Chat systems have a language of their own: ``<…>`` and ``&`` are shut out by its rules, ``@all`` by ours."""
    plain = unlinked(one_line(text)).replace("@", "[at]")
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def grouped(digest: str) -> str:
    """The first 16 hex digits of a digest in groups of four, as people compare them; empty for none."""
    short = digest.rpartition(":")[2][:16]
    return " ".join(short[start : start + 4] for start in range(0, len(short), 4))
