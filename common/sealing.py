"""Small secrets at rest: encrypted under keys that come from the installation's secret, one for each place.

A value that was sealed for one row opens for that row only, so a row's ciphertext is of no use in another's. When
``PLACET_SECRET_KEY`` changes, the old one goes into ``PLACET_SECRET_KEY_FALLBACKS`` until everything is sealed anew.
What is sealed names the secret that it lies under: who was not given that one leaves it to who was.
"""

import base64
from functools import lru_cache
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db.models import F, Func, Q, TextField
from django.db.models.lookups import In

from common.content_keys import KeyUnknown

_SALT: Final = b"placet.sealing.v1"
_MARK: Final = b"\x02"
"""Before the name of a secret; what was sealed before there were names begins with a letter."""
_NAME_BYTES: Final = 8


class CannotOpen(ValueError):
    """The value was sealed for another place, or is damaged."""


class SecretKeyUnknown(KeyUnknown):
    """This server was not given the secret that this lies under (PLACET_SECRET_KEY). Nothing was changed."""

    code = "secret_key_missing"


def seal(place: str, value: bytes) -> bytes:
    """The value encrypted for ``place``, such as ``endpoint:<id>``."""
    secret = _secrets()[0]
    return _MARK + _name(secret) + _one(secret, place).encrypt(value)


def unseal(place: str, sealed: bytes | memoryview) -> bytes:
    """What was sealed for this very place. Raises CannotOpen, and SecretKeyUnknown."""
    raw, secrets = bytes(sealed), _secrets()
    if raw.startswith(_MARK):
        named, raw = raw[1 : 1 + _NAME_BYTES], raw[1 + _NAME_BYTES :]
        secrets = [secret for secret in secrets if _name(secret) == named]
        if not secrets:
            raise SecretKeyUnknown
    for secret in secrets:
        try:
            return _one(secret, place).decrypt(raw)
        except InvalidToken:
            continue
    raise CannotOpen(CannotOpen.__doc__)


class _NameOf(Func):
    """SQL: the name of the secret that a column's value lies under; empty where it names none."""

    template = (
        f"(CASE WHEN substr(%(expressions)s, 1, 1) = '\\x{_MARK.hex()}'::bytea"
        f" THEN encode(substr(%(expressions)s, 2, {_NAME_BYTES}), 'hex') ELSE '' END)"
    )
    output_field = TextField()


def can_open(column: str) -> Q:
    """Rows whose sealed ``column`` lies under a secret that this process has, or names none.

    Others are left to processes that have it: who took them could neither do them nor say what stands in the way.
    """
    names = ["", *(_name(secret).hex() for secret in _secrets())]
    return Q(In(_NameOf(F(column)), names))


def _secrets() -> list[str]:
    return [str(secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]


@lru_cache(maxsize=64)
def _name(secret: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=_NAME_BYTES, salt=_SALT, info=b"name").derive(secret.encode())


@lru_cache(maxsize=1024)
def _one(secret: str, place: str) -> Fernet:
    key = HKDF(algorithm=SHA256(), length=32, salt=_SALT, info=place.encode()).derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(key))
