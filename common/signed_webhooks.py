"""How a call of ours proves who made it: *Standard Webhooks*, ``id.timestamp.body`` under a secret both sides have."""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Final

SECRET_BYTES: Final = 32
SECRET_PREFIX: Final = "whsec_"  # noqa: S105
ID_HEADER, TIME_HEADER, SIGNATURE_HEADER = "webhook-id", "webhook-timestamp", "webhook-signature"


def new_secret() -> str:
    """A fresh secret of 256 random bits, as both sides write it."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """The bytes of the key; ValueError unless they are 24 to 64. Without the prefix the text itself is the key."""
    if secret.startswith(SECRET_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        except binascii.Error as error:
            raise ValueError("The secret is not base64.") from error
    else:
        key = secret.encode()
    if not 24 <= len(key) <= 64:
        raise ValueError("A secret has 24 to 64 bytes.")
    return key


def sign(key: bytes, *, identity: str, timestamp: int, body: bytes) -> str:
    """The value of ``webhook-signature`` (Standard Webhooks, version 1)."""
    signed = f"{identity}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def signed_headers(keys: Sequence[bytes], *, identity: str, body: bytes, now: datetime) -> dict[str, str]:
    """The three headers of a call at ``now``, with a signature for each key; without keys the id and the time alone."""
    stamp = int(now.timestamp())
    headers = {ID_HEADER: identity, TIME_HEADER: str(stamp)}
    if keys:
        headers[SIGNATURE_HEADER] = " ".join(
            sign(key, identity=identity, timestamp=stamp, body=body) for key in keys
        )
    return headers
