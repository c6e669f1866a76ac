"""How a webhook proves who sent it: over its raw bytes, in constant time, and only for a few minutes.

Two schemes. *Standard Webhooks* signs ``id.timestamp.body``. *HMAC-SHA-256* is for senders with a header of their own:
it signs ``timestamp.body``, and the body's hash stands for the id, because no other part of such a request is signed.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import TextChoices

from common.errors import InvalidInput, Refused
from common.signed_webhooks import ID_HEADER, SIGNATURE_HEADER, TIME_HEADER

TOLERANCE_S: Final = 300
MOST_SIGNATURES: Final = 8
"""More in one header are not looked at: rotation needs two."""

_ID: Final = re.compile(r"[\x21-\x2d\x2f-\x7e]{1,190}", re.ASCII)
"""Visible ASCII without the dot, which ends the id in what is signed."""
_SECONDS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_HEX: Final = re.compile(r"(?:sha256=)?([0-9a-f]{64})", re.ASCII)


class EndpointEnded(Refused):
    """This endpoint takes nothing any more."""

    code = "endpoint_ended"


class BadEndpoint(InvalidInput):
    """An endpoint needs a name of small letters, digits and hyphens, header names, and a secret of 24 to 64 bytes."""

    code = "bad_endpoint"


class Scheme(TextChoices):
    STANDARD = "standard_webhooks", "Standard Webhooks"
    HMAC = "hmac_sha256", "HMAC-SHA-256 over timestamp and body"


class NotProven(Exception):
    """The request does not prove that it comes from the sender. ``why`` is for the history, never for the answer."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Names:
    """The headers of an endpoint's scheme, in lower case."""

    scheme: Scheme = Scheme.STANDARD
    signature: str = SIGNATURE_HEADER
    timestamp: str = TIME_HEADER


@dataclass(frozen=True, slots=True)
class Message:
    """A request as it came: header names in lower case, the body unread."""

    headers: Mapping[str, str]
    body: bytes


def prove(
    message: Message, names: Names, keys: Sequence[tuple[str, bytes]], now: datetime
) -> tuple[str, str]:
    """The message's id, and the name of the key that signed it. Raises NotProven."""
    identity, signed, given = _parts(message, names)
    _check_time(message.headers.get(names.timestamp, ""), now)
    matched = ""
    for name, key in keys:  # all of them, whatever matched: how long it takes tells nothing
        ours = hmac.new(key, signed, hashlib.sha256).digest()
        for theirs in given:
            if hmac.compare_digest(ours, theirs):
                matched = matched or name
    if not matched:
        raise NotProven("signature")
    return identity, matched


def _parts(message: Message, names: Names) -> tuple[str, bytes, list[bytes]]:
    """Who it says it is, what was signed, and the signatures that came with it."""
    timestamp = message.headers.get(names.timestamp, "")
    written = message.headers.get(names.signature, "")
    if names.scheme == Scheme.HMAC:
        identity = "sha256:" + hashlib.sha256(message.body).hexdigest()
        found = _HEX.fullmatch(written.strip())
        given = [bytes.fromhex(found[1])] if found else []
        return identity, timestamp.encode() + b"." + message.body, given
    identity = message.headers.get(ID_HEADER, "")
    if not _ID.fullmatch(identity):
        raise NotProven("id")
    signed = f"{identity}.{timestamp}.".encode() + message.body
    return identity, signed, _signatures(written)


def _signatures(header: str) -> list[bytes]:
    """Those of version 1 among ``v1,<base64> v1,<base64> v1a,…``."""
    found = []
    for part in header.split(" ")[:MOST_SIGNATURES]:
        version, _, value = part.partition(",")
        if version == "v1":
            try:
                found.append(base64.b64decode(value, validate=True))
            except (binascii.Error, ValueError):
                continue
    return found


def _check_time(text: str, now: datetime) -> None:
    if not _SECONDS.fullmatch(text):
        raise NotProven("timestamp")
    if abs(now.timestamp() - int(text)) > TOLERANCE_S:
        raise NotProven("too_old_or_too_new")
