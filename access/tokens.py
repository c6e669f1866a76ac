"""The text of a bearer token: ``plc_``, 32 random bytes in base64url, and six characters that catch a typing slip."""

import hashlib
import re
import secrets
import zlib
from base64 import b32encode

PREFIX = "plc_"
SHOWN = 12
"""How many characters of a token are stored in clear, to recognise it in lists: eight after the prefix."""
_CHECK = 6
_SHAPE = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}[a-z2-7]{{{_CHECK}}}")


def _check(body: str) -> str:
    """Six characters over the CRC-32 of the rest: for scanners of leaked secrets, not for security."""
    return b32encode(zlib.crc32(body.encode()).to_bytes(4, "big")).decode().rstrip("=").lower()[:_CHECK]


def new_token() -> str:
    """A fresh token with 256 random bits."""
    body = PREFIX + secrets.token_urlsafe(32)
    return body + _check(body)


def looks_like_token(text: str) -> bool:
    """Whether the text has a token's shape; saves the database look-up for what cannot be one."""
    if not (text.startswith(PREFIX) and text.isascii() and len(text) == len(PREFIX) + 43 + _CHECK):
        return False
    return text[-_CHECK:] == _check(text[:-_CHECK])


def find_tokens(text: str) -> list[str]:
    """The tokens in a text, such as a log or a checkout: by their prefix, and their check keeps chance away."""
    return [found for found in _SHAPE.findall(text) if looks_like_token(found)]


def fingerprint(token: str) -> str:
    """What is stored: the SHA-256. With 256 random bits behind it, no salt and no slow hash are needed."""
    return hashlib.sha256(token.encode()).hexdigest()
