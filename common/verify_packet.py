"""Is this packet, or report of an incident, what the installation signed? Offline, without database and settings.

    ./placet verify_packet packet.json --pubkey KEY

KEY is a file with the public key: the 32 bytes in base64 on one line, a PEM, or the answer of ``GET
/api/v1/receipts/keys``. Keep a copy of your own: a packet proves nothing against a key that came along with it.
Exit status 0: it holds. 1: it does not. 2: something cannot be read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from common.signing import verify
from common.strictjson import JsonRefused, Limits, canonicalize, parse

FORMAT: Final = "placet.packet.v1"
DOMAIN: Final = b"placet.packet.v1\n"
INCIDENT: Final = "placet.incident.v1"
DOMAINS: Final = {FORMAT: DOMAIN, INCIDENT: b"placet.incident.v1\n"}
LIMITS: Final = Limits(max_bytes=16_000_000, max_nodes=400_000, max_string=1_000_000)
HOLDS, DOES_NOT, UNREADABLE = 0, 1, 2


class Unreadable(Exception):
    """A file that is no packet, or no public key."""


def check(packet: bytes, keys: dict[str, bytes]) -> tuple[bool, str]:
    """Whether the signature is over this very document, by one of these keys (by their id); and why, in words."""
    try:
        document = parse(packet, LIMITS)
    except JsonRefused as refused:
        raise Unreadable("The packet is no JSON that can be signed.") from refused
    domain = DOMAINS.get(str(document.get("format"))) if isinstance(document, dict) else None
    if not isinstance(document, dict) or domain is None:
        raise Unreadable(f"This is no document of the format {FORMAT} or {INCIDENT}.")
    signature = document.pop("signature", None)
    if not isinstance(signature, dict) or signature.get("alg") != "Ed25519":
        return False, "It carries no signature."
    public = keys.get(str(signature.get("key_id")))
    if public is None:
        return False, "It was signed with another key than the one that was given."
    if not verify(domain, canonicalize(document), str(signature.get("value", "")), public):
        return (
            False,
            "The signature does not fit: it was changed after it was signed, or signed by somebody else.",
        )
    return True, "It is what the installation signed."


def read_keys(text: bytes) -> dict[str, bytes]:
    """The public keys in a file, by their id. Raises Unreadable."""
    found = _pem(text) or _listed(text) or _plain(text)
    if not found:
        raise Unreadable("The key is neither base64 of 32 bytes, nor a PEM, nor the list of keys of the API.")
    return {hashlib.sha256(key).hexdigest()[:16]: key for key in found}


def _pem(text: bytes) -> list[bytes]:
    if not text.lstrip().startswith(b"-----BEGIN"):
        return []
    try:
        key = load_pem_public_key(text)
    except ValueError:
        return []
    return [key.public_bytes_raw()] if isinstance(key, Ed25519PublicKey) else []


def _listed(text: bytes) -> list[bytes]:
    try:
        listed: Any = parse(text)
    except JsonRefused:
        return []
    rows = listed.get("keys", []) if isinstance(listed, dict) else []
    return [
        key for row in rows if isinstance(row, dict) for key in _plain(str(row.get("public_key")).encode())
    ]


def _plain(text: bytes) -> list[bytes]:
    try:
        key = b64decode(text.strip(), validate=True)
    except ValueError:
        return []
    return [key] if len(key) == 32 else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="verify_packet", description="Check a signed repair packet, offline."
    )
    parser.add_argument("packet", type=Path, help="the file that the desk gave: packet.json")
    parser.add_argument(
        "--pubkey", type=Path, required=True, help="the installation's public key, from your own copy"
    )
    options = parser.parse_args(arguments)
    try:
        holds, says = check(options.packet.read_bytes(), read_keys(options.pubkey.read_bytes()))
    except (Unreadable, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return UNREADABLE
    sys.stdout.write(json.dumps({"holds": holds, "says": says}) + "\n")
    return HOLDS if holds else DOES_NOT


if __name__ == "__main__":
    sys.exit(main())
