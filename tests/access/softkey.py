"""A passkey in software: it signs what a real one would, and what a real one never would."""

import hashlib
import json
import os
import struct
from base64 import urlsafe_b64encode
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from django.test import Client
from fido2 import cbor
from fido2.cose import ES256

ORIGIN = "https://testserver"
_PRESENT, _VERIFIED, _WITH_KEY = 1, 4, 64


def b64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


class SoftKey:
    """``counts``: whether it counts its signatures, as keys in hardware do."""

    def __init__(self, *, counts: bool = False) -> None:
        self.id, self.key = os.urandom(16), ec.generate_private_key(ec.SECP256R1())
        self.counts, self.count = counts, 0

    def made(self, options: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request to make a passkey."""
        attested = b"\0" * 16 + struct.pack(">H", len(self.id)) + self.id + self.public()
        data = self._data(_PRESENT | _VERIFIED | _WITH_KEY) + attested
        statement = cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
        said = self._said("webauthn.create", options)
        return self._credential({"clientDataJSON": b64(said), "attestationObject": b64(statement)})

    def public(self) -> bytes:
        """As COSE."""
        return cbor.encode(dict(ES256.from_cryptography_key(self.key.public_key())))

    def signed(
        self, options: dict[str, Any], user_handle: str = "", *, verified: bool = True, origin: str = ORIGIN
    ) -> dict[str, Any]:
        """The answer to a request to sign."""
        data = self._data(_PRESENT | (_VERIFIED if verified else 0))
        said = self._said("webauthn.get", options, origin)
        signature = self.key.sign(data + hashlib.sha256(said).digest(), ec.ECDSA(SHA256()))
        answer = {"clientDataJSON": b64(said), "authenticatorData": b64(data), "signature": b64(signature)}
        return self._credential(answer | ({"userHandle": user_handle} if user_handle else {}))

    def _data(self, flags: int) -> bytes:
        self.count += self.counts
        return hashlib.sha256(b"testserver").digest() + bytes([flags]) + struct.pack(">I", self.count)

    def _said(self, kind: str, options: dict[str, Any], origin: str = ORIGIN) -> bytes:
        challenge = options["publicKey"]["challenge"]
        return json.dumps({"type": kind, "challenge": challenge, "origin": origin}).encode()

    def _credential(self, response: dict[str, Any]) -> dict[str, Any]:
        name = b64(self.id)
        return {
            "id": name, "rawId": name, "type": "public-key", "response": response,
            "clientExtensionResults": {"credProps": {"rk": True}},
        }  # fmt: skip


def add_key(client: Client, key: SoftKey) -> dict[str, Any]:
    """Make the key one of whoever is signed in; what was sent."""
    page = client.get("/account/passkeys/", secure=True)
    made = key.made(json.loads(page.context["options"]))
    answer = client.post("/account/passkeys/", {"credential": json.dumps(made)}, secure=True)
    assert answer.status_code == 302, answer.content.decode()[-800:]
    return made


def options_to_sign_in(client: Client) -> dict[str, Any]:
    answer = client.get("/sign-in/passkey/", headers={"X-Requested-With": "XMLHttpRequest"}, secure=True)
    found: dict[str, Any] = answer.json()["request_options"]
    return found


def sign_in_with(client: Client, credential: dict[str, Any]) -> bool:
    """Whether it opens the account."""
    client.post("/sign-in/passkey/", {"credential": json.dumps(credential)}, secure=True)
    return client.get("/account/", secure=True).status_code == 200
