"""Signatures that others can check without trusting the server: Ed25519 (RFC 8032), one key per installation.

The key comes from ``PLACET_SIGNING_KEY`` (32 bytes in base64), or, where that is not set, from the installation's
secret by HKDF. The same document always gets the same signature.
"""

import hashlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

ALGORITHM: Final = "Ed25519"
_SALT: Final = b"placet.signing-key.v1"
_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Signature:
    """``key_id`` names the public key: the first 16 hexadecimal digits of its SHA-256. ``value`` is base64."""

    alg: str
    key_id: str
    value: str


def sign(domain: bytes, canonical: bytes) -> Signature:
    """Sign the domain line and the canonical bytes of a document, so that no signature can stand for another kind."""
    value = _private_key(_seed()).sign(domain + canonical)
    return Signature(ALGORITHM, key_id(), b64encode(value).decode())


def verify(domain: bytes, canonical: bytes, value: str, public: bytes) -> bool:
    """Whether the signature (base64) is over exactly these bytes, by the key with these 32 public bytes."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(b64decode(value), domain + canonical)
    except (InvalidSignature, ValueError):
        return False
    return True


def public_key() -> bytes:
    """The 32 bytes of the public key."""
    return _private_key(_seed()).public_key().public_bytes_raw()


def key_id() -> str:
    return hashlib.sha256(public_key()).hexdigest()[:16]


def _seed() -> bytes:
    given: str = settings.PLACET_SIGNING_KEY
    if given:
        return b64decode(given, validate=True)
    derived = HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=_SALT, info=b"receipts")
    return derived.derive(str(settings.SECRET_KEY).encode())


@lru_cache(maxsize=4)
def _private_key(seed: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(seed)
