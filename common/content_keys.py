"""The keys that content is encrypted under: one for each run, wrapped by a key of the installation.

A run's key lies in `common.models.ContentKey`, wrapped. To destroy it is to erase everything that was sealed under it,
wherever that lies. Changing the wrapping key wraps the runs' keys anew and touches no content.

Wrapping keys come from ``PLACET_CONTENT_KEYS``, or the file that ``PLACET_CONTENT_KEYS_FILE`` names: 32 bytes in
base64 each, separated by commas or white space. The first one wraps, all of them unwrap. Where none is set, they are
derived from the secret key.
"""

import hashlib
import os
import stat
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from common.errors import Refused

_SALT: Final = b"placet.content-key.v1"
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_ID_BYTES: Final = 8


class SealBroken(Refused):
    """What is stored here is damaged, or is not what was sealed. Nothing was changed. A backup may have it whole."""

    code = "content_damaged"


class KeyUnknown(Refused):
    """This server was not given the key that this content lies under (PLACET_CONTENT_KEYS). Nothing was changed."""

    code = "content_key_missing"
    http_status = 503


def encrypt(key: AESGCM, place: bytes, plain: bytes) -> bytes:
    """Nonce and ciphertext; ``place`` is authenticated, so that it opens nowhere else."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + key.encrypt(nonce, plain, place)


def decrypt(key: AESGCM, place: bytes, sealed: bytes) -> bytes:
    """Raises SealBroken."""
    try:
        return key.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place)
    except (InvalidTag, ValueError):
        raise SealBroken from None


@dataclass(frozen=True)
class RunKey:
    """The key of one run's content, as it is stored. ``wrapped`` is None once it was destroyed."""

    tenant_id: UUID
    run_id: UUID
    wrapped: bytes | None

    @property
    def erased(self) -> bool:
        return self.wrapped is None

    @cached_property
    def cipher(self) -> AESGCM:
        """Unwrapped, in memory only. Raises KeyUnknown and SealBroken."""
        assert self.wrapped is not None
        return AESGCM(unwrap(self.tenant_id, self.run_id, self.wrapped))


def new_key(tenant_id: UUID, run_id: UUID) -> RunKey:
    """A fresh key, wrapped by the current wrapping key."""
    return RunKey(tenant_id, run_id, wrap(tenant_id, run_id, os.urandom(_KEY_BYTES)))


def wrap(tenant_id: UUID, run_id: UUID, key: bytes) -> bytes:
    name, ring = _ring()
    return name + encrypt(ring[name], _place(tenant_id, run_id), key)


def unwrap(tenant_id: UUID, run_id: UUID, wrapped: bytes) -> bytes:
    _, ring = _ring()
    wrapping = ring.get(wrapped[:_ID_BYTES])
    if wrapping is None:
        raise KeyUnknown
    return decrypt(wrapping, _place(tenant_id, run_id), wrapped[_ID_BYTES:])


def rewrapped(tenant_id: UUID, run_id: UUID, wrapped: bytes) -> bytes:
    """The same key under the current wrapping key."""
    return wrap(tenant_id, run_id, unwrap(tenant_id, run_id, wrapped))


def wrapped_with(wrapped: bytes) -> str:
    """The name of the wrapping key: 16 hexadecimal digits of its hash."""
    return wrapped[:_ID_BYTES].hex()


def current_name() -> str:
    return _ring()[0].hex()


def known_names() -> list[str]:
    """Of the wrapping keys that this process has."""
    return sorted(name.hex() for name in _ring()[1])


def names_or_none() -> list[str]:
    """The same; none where what was given is no key, or cannot be read."""
    try:
        return known_names()
    except (ImproperlyConfigured, OSError):
        return []


def locked(row: str, run: str = "run_id") -> str:
    """SQL: the key of this row's run is wrapped by none of ``%(keys)s``, see `known_names`.

    Such work is left to processes that have it: who took it could neither do it nor say what stands in its way.
    """
    return (
        "EXISTS (SELECT FROM common_contentkey k"
        f" WHERE k.tenant_id = {row}.tenant_id AND k.run_id = {row}.{run}"
        f" AND encode(substr(k.wrapped, 1, {_ID_BYTES}), 'hex') <> ALL(%(keys)s))"
    )


def are_own() -> bool:
    """Whether wrapping keys were given, and are not derived from the secret key."""
    return bool(_given())


def file_is_open() -> bool:
    """Whether somebody else than its owner may use the file of keys."""
    path = settings.PLACET_CONTENT_KEYS_FILE
    return bool(path) and bool(os.stat(path).st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _place(tenant_id: UUID, run_id: UUID) -> bytes:
    return b"placet.run-key.v1|%s|%s" % (str(tenant_id).encode(), str(run_id).encode())


def _given() -> tuple[str, ...]:
    given: str = settings.PLACET_CONTENT_KEYS
    if settings.PLACET_CONTENT_KEYS_FILE:
        given = f"{given} {Path(settings.PLACET_CONTENT_KEYS_FILE).read_text()}"
    return tuple(given.replace(",", " ").split())


def _ring() -> tuple[bytes, Mapping[bytes, AESGCM]]:
    return _made(
        str(settings.PLACET_CONTENT_KEYS), str(settings.PLACET_CONTENT_KEYS_FILE),
        (str(settings.SECRET_KEY), *map(str, settings.SECRET_KEY_FALLBACKS)),
    )  # fmt: skip


@lru_cache(maxsize=8)
def _made(_given_text: str, _file: str, secrets: tuple[str, ...]) -> tuple[bytes, Mapping[bytes, AESGCM]]:
    """The current key's name and all of them. Derived ones stay good for unwrapping when own ones are given later.

    The file is read once in a process: a new key counts after a restart, as all settings do.
    """
    keys = [*map(_decoded, _given()), *map(_derived, secrets)]
    ring = {hashlib.sha256(key).digest()[:_ID_BYTES]: AESGCM(key) for key in keys}
    return next(iter(ring)), ring


def _decoded(text: str) -> bytes:
    try:
        key = b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ImproperlyConfigured("Each key of PLACET_CONTENT_KEYS is 32 random bytes in base64.")
    return key


def _derived(secret: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=_SALT, info=b"wrapping").derive(secret.encode())
