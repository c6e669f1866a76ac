"""Runs of an invented history whose approvals passkeys sign, always the same to the byte: no key has chance in it."""

import base64
import hashlib
import struct
from typing import Any, Final

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fido2 import cbor

from tests.audit import making
from tests.audit.making import ADA, BEN, EVE, TENANT, Life, Made, b64

HOST: Final = "placet.example"


class Passkey:
    """Ed25519, because its signatures hold no chance."""

    def __init__(self, name: str) -> None:
        self.key = Ed25519PrivateKey.from_private_bytes(
            hashlib.sha256(f"placet fixture: the passkey of {name}".encode()).digest()
        )
        self.id = base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest()[:16]).decode().rstrip("=")
        raw = self.key.public_key().public_bytes_raw()
        self.public = cbor.encode({1: 1, 3: -8, -1: 6, -2: raw})

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.public).hexdigest()

    def facts(self) -> dict[str, str]:
        return {"credential_id": self.id, "public_key": b64(self.public)}

    def signed(
        self, document: dict[str, Any], *, flags: int = 5, host: str = HOST, **said: Any
    ) -> dict[str, Any]:
        """The evidence of a signature over this document."""
        challenge = hashlib.sha256(b"placet.approval.v1\n" + rfc8785.dumps(document)).digest()
        text = base64.urlsafe_b64encode(challenge).decode().rstrip("=")
        words = {"type": "webauthn.get", "challenge": text, "origin": f"https://{HOST}", "crossOrigin": False}
        client = rfc8785.dumps(words | said)
        data = hashlib.sha256(host.encode()).digest() + bytes([flags]) + struct.pack(">I", 0)
        signature = self.key.sign(data + hashlib.sha256(client).digest())
        return {
            "document": document, **self.facts(), "authenticator_data": b64(data), "client_data": b64(client),
            "signature": b64(signature),
        }  # fmt: skip


KEYS: Final = {ADA: Passkey("ada"), BEN: Passkey("ben"), EVE: Passkey("eve")}


def register(made: Made, person: str, key: Passkey | None = None) -> None:
    body = {"factor": "webauthn", **(key or KEYS[person]).facts()}
    made.tell("user.mfa_added", person, **making.person(person), body=body)


def propose(made: Made, number: str, needed: int = 1) -> Life:
    """A run up to a proposal of which each approval must be signed."""
    return making.propose(made, number, needed, approval="passkey")


def document_of(life: Life, approver: str = ADA) -> dict[str, Any]:
    return {
        "v": 1, "tenant": str(TENANT), "proposal": life.proposal, "version": 1, "digest": life.digest,
        "view_digest": life.view, "decision": "approve", "approver": approver.removeprefix("user:"),
        "nonce": life.proposal.replace("-", ""), "asked_at": "2026-11-02T08:00:00.000000Z", "rp_id": HOST,
    }  # fmt: skip


def sign(made: Made, life: Life, evidence: dict[str, Any], by: str = ADA) -> None:
    """The event and the row of a signature of the newest decision."""
    decision = life.decisions[-1]
    made.tell(
        "proposal.signed", f"proposal:{life.proposal}", run=life.run, digest=life.digest, **making.person(by),
        body={"decision_id": decision, **evidence},
    )  # fmt: skip
    document = rfc8785.dumps(evidence["document"]).decode()
    made.row("signature", decision, **(evidence | {"document": document}))


def approve(made: Made, life: Life, by: str = ADA) -> None:
    making.vote(made, life, by)
    sign(made, life, KEYS[by].signed(document_of(life, by)), by)


def whole_life(made: Made, number: str) -> Life:
    """Registered, proposed, signed, done."""
    register(made, ADA)
    life = propose(made, number)
    approve(made, life)
    making.order(made, life)
    making.execute(made, life)
    return life
