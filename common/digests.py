"""Every digest and key of the contract, each under a name of its own so that none can stand for another.

Plain digests are 64 lower-case hexadecimal digits. `hmac:…` values are keyed per tenant and purpose, so that
they can be compared and not guessed. Concatenations are length-prefixed: ("ab", "c") is not ("a", "bc").
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import lru_cache
from typing import Any, Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from common.strictjson import canonicalize

CONTRACT_DOMAIN: Final = b"placet.contract.v1\n"
VIEW_DOMAIN: Final = b"placet.view.v1\n"
LIST_DOMAIN: Final = b"placet.bulk-list.v1\n"
APPROVAL_DOMAIN: Final = b"placet.approval.v1\n"
KEY_DOMAIN: Final = b"placet.key.v1"
TENANT_KEY_DOMAIN: Final = b"placet.tenant-key.v1"


def contract_digest(canonical: bytes) -> str:
    """SHA-256 over the domain line and the contract's canonical bytes: what an approval binds to."""
    return hashlib.sha256(CONTRACT_DOMAIN + canonical).hexdigest()


def view_digest(canonical: bytes) -> str:
    """SHA-256 over the domain line and the view document's canonical bytes: what the reviewer was shown."""
    return hashlib.sha256(VIEW_DOMAIN + canonical).hexdigest()


def approval_challenge(canonical: bytes) -> bytes:
    """SHA-256 over the domain line and a decision's canonical bytes: the challenge that a passkey signs."""
    return hashlib.sha256(APPROVAL_DOMAIN + canonical).digest()


def bulk_list_digest(rows: list[list[str]]) -> str:
    """SHA-256 over the domain line and the canonical rows: what a list showed from which several were decided."""
    return hashlib.sha256(LIST_DOMAIN + canonicalize(rows)).hexdigest()


def content_hash(source: Any) -> str:
    """The `sha256:…` of a declaration (schema, display, policy rule), kept beside its version number."""
    return "sha256:" + hashlib.sha256(canonicalize(source)).hexdigest()


def evidence_digest(salt: bytes, content: bytes) -> str:
    """`sha256:…` of a piece of evidence; the 32 random bytes of salt make it useless once they are erased."""
    if len(salt) != 32:
        raise ValueError("The salt of a piece of evidence has 32 bytes.")
    return "sha256:" + hashlib.sha256(salt + content).hexdigest()


def tenant_hmac(tenant_id: object, purpose: str, content: bytes) -> str:
    """`hmac:…` under the tenant's key for this purpose; two tenants get two values for one content."""
    key = _tenant_key(_secret(), str(tenant_id), purpose)
    return "hmac:" + hmac.new(key, content, hashlib.sha256).hexdigest()


def material_digest(
    tenant_id: object, *, operation: str, version: int, target: str, arguments: dict[str, Any]
) -> str:
    """What the action is, without when, by whom and why: equal for two requests of one thing."""
    bound = {"operation": operation, "version": version, "target": target, "arguments": arguments}
    return tenant_hmac(tenant_id, "material", canonicalize(bound))


def business_key(tenant_id: object, operation: str, parts: list[str]) -> str:
    """The stored form of the key that an operation declares, such as ["refund", "order:1042"]."""
    return tenant_hmac(tenant_id, "business-key", canonicalize({"operation": operation, "parts": parts}))


def secret_fingerprint(tenant_id: object, value: bytes) -> str:
    """What stands in a contract for a secret value."""
    return tenant_hmac(tenant_id, "secret", value)


def idempotency_key(tenant: object, run_id: object, step: str, generation: int) -> str:
    """The key of one logical action: 52 characters of base32, the same for every attempt at it.

    `run_id` is the original run's, also in its replays. The derivation never changes between releases.
    """
    if generation < 0:
        raise ValueError("A generation is counted from zero.")
    parts = (str(tenant), str(run_id), step, str(generation))
    return base64.b32encode(hashlib.sha256(KEY_DOMAIN + _joined(parts)).digest()).decode().rstrip("=")


def same(left: str, right: str) -> bool:
    """Compare two digests or keys in constant time; either may be whatever a client sent."""
    return hmac.compare_digest(left.encode(errors="surrogatepass"), right.encode(errors="surrogatepass"))


def _joined(parts: tuple[str, ...]) -> bytes:
    """Each part in UTF-8 behind its length in four bytes, so that the parts can be told apart."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


def _secret() -> str:
    return str(getattr(settings, "PLACET_SECRET_KEY", None) or settings.SECRET_KEY)


@lru_cache(maxsize=1024)
def _tenant_key(secret: str, tenant_id: str, purpose: str) -> bytes:
    """HKDF (RFC 5869) from the installation's secret; the keys stay in memory while the process lives."""
    info = _joined((tenant_id, purpose))
    return HKDF(algorithm=SHA256(), length=32, salt=TENANT_KEY_DOMAIN, info=info).derive(secret.encode())
