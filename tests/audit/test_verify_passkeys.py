"""What `verify_history.py` reads of passkeys by itself: COSE keys, answers of browsers, and bytes that are neither."""

import hashlib
import os
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fido2 import cbor
from fido2.cose import ES256, ES384, ES512, PS256, RS256, CoseKey, EdDSA

import verify_history
from tests.audit.making import ADA, Life
from tests.audit.signed import KEYS, document_of

DATA = b"what was signed"
SHA = hashes.SHA256()
RSA = rsa.generate_private_key(65537, 2048)


def made(kind: type[CoseKey]) -> tuple[bytes, bytes]:
    """A COSE key of this kind and its signature over DATA, made by other code than that which reads it."""
    if kind is EdDSA:
        key = Ed25519PrivateKey.generate()
        return cbor.encode(dict(kind.from_cryptography_key(key.public_key()))), key.sign(DATA)
    if kind in (RS256, PS256):
        pad = padding.PKCS1v15() if kind is RS256 else padding.PSS(padding.MGF1(SHA), SHA.digest_size)
        return cbor.encode(dict(kind.from_cryptography_key(RSA.public_key()))), RSA.sign(DATA, pad, SHA)
    curve, digest = {
        ES256: (ec.SECP256R1(), SHA), ES384: (ec.SECP384R1(), hashes.SHA384()),
        ES512: (ec.SECP521R1(), hashes.SHA512()),
    }[kind]  # fmt: skip
    one = ec.generate_private_key(curve)
    return cbor.encode(dict(kind.from_cryptography_key(one.public_key()))), one.sign(DATA, ec.ECDSA(digest))


@pytest.mark.parametrize("kind", [ES256, ES384, ES512, EdDSA, RS256, PS256])
def test_each_kind_of_key(kind: type[CoseKey]) -> None:
    key, signature = made(kind)
    assert verify_history.signed_by_cose(key, signature, DATA) is True
    assert verify_history.signed_by_cose(key, signature, DATA + b".") is False
    assert verify_history.signed_by_cose(key + b"\0", signature, DATA) is None


@pytest.mark.parametrize("raw", [
    b"", b"\xa0", b"\x5f", b"\xff", b"\xbf", b"\xa1\x01", b"\x9b" + b"\xff" * 8, b"\xbb" + b"\xff" * 8, b"\x81" * 99,
    b"\x5b" + b"\xff" * 8, b"\xa2\x81\x01\x02\x03\x04", cbor.encode({1: 2, 3: -7, -1: 1, -2: b"x", -3: b"y"}),
    cbor.encode({1: 1, 3: -8, -1: 6, -2: "text"}), cbor.encode({1: 3, 3: -257, -1: b"", -2: b""}),
    cbor.encode({1: 2, 3: -7, -1: 2, -2: b"x" * 32, -3: b"y" * 32}),
], ids=range(15))  # fmt: skip
def test_what_is_no_key_signs_nothing(raw: bytes) -> None:
    assert not verify_history.signed_by_cose(raw, b"s" * 64, DATA)


def test_bytes_by_chance_are_no_key() -> None:
    for _ in range(2000):
        assert not verify_history.signed_by_cose(os.urandom(40), b"s", DATA)


def evidence(**how: Any) -> dict[str, Any]:
    life = Life("r", "s", "p", ["d"], "", hashlib.sha256(b"c").hexdigest(), hashlib.sha256(b"v").hexdigest())
    return KEYS[ADA].signed(document_of(life), **how)


def test_a_signature_holds() -> None:
    assert verify_history.passkey_problem(evidence()) == ""
    assert verify_history.passkey_problem(evidence(origin="https://desk.placet.example")) == ""


@pytest.mark.parametrize(("how", "why"), [
    ({"flags": 1}, "recognised"), ({"flags": 4}, "recognised"), ({"host": "evil.example"}, "another site"),
    ({"origin": "https://evil.example"}, "another site"), ({"origin": "http://placet.example"}, "another site"),
    ({"origin": "https://evilplacet.example"}, "another site"), ({"origin": None}, "another site"),
    ({"crossOrigin": True}, "to this site"), ({"type": "webauthn.create"}, "to this site"),
    ({"challenge": "AAAA"}, "something else"),
])  # fmt: skip
def test_why_one_does_not(how: dict[str, Any], why: str) -> None:
    assert why in verify_history.passkey_problem(evidence(**how))


@pytest.mark.parametrize("name", ["document", "public_key", "authenticator_data", "client_data", "signature"])
@pytest.mark.parametrize("value", [None, 5, "", "AAAA", {}, "%"])
def test_a_part_of_another_shape_is_a_problem(name: str, value: Any) -> None:
    assert verify_history.passkey_problem(evidence() | {name: value})


@pytest.mark.parametrize("word", ["tenant", "proposal", "version", "digest", "approver", "nonce"])
def test_another_word_in_the_document_is_another_challenge(word: str) -> None:
    said = evidence()
    said["document"] = said["document"] | {word: "other"}
    assert "something else" in verify_history.passkey_problem(said)
