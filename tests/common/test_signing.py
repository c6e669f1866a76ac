"""Signatures that hold for exactly one document, under exactly one key."""

from base64 import b64encode
from typing import Any

import pytest

from common import signing

DOMAIN = b"placet.receipt.v1\n"


def test_a_signature_holds_for_its_bytes_and_its_kind_only() -> None:
    signature = signing.sign(DOMAIN, b"{}")
    public = signing.public_key()
    assert signing.verify(DOMAIN, b"{}", signature.value, public)
    assert not signing.verify(DOMAIN, b"[]", signature.value, public)
    assert not signing.verify(b"placet.other.v1\n", b"{}", signature.value, public)
    assert not signing.verify(DOMAIN, b"{}", "AAAA", public)
    assert signature == signing.sign(DOMAIN, b"{}")


def test_the_key_may_be_given(settings: Any) -> None:
    derived = signing.key_id()
    settings.PLACET_SIGNING_KEY = b64encode(bytes(range(32))).decode()
    # RFC 8032 gives the public key of this seed by computation; it must never change between releases.
    assert signing.public_key().hex() == "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
    assert signing.key_id() != derived
    assert signing.sign(DOMAIN, b"{}").key_id == signing.key_id()


def test_another_secret_is_another_key(settings: Any) -> None:
    before = signing.public_key()
    settings.SECRET_KEY = "another secret key, as long as the first one was, or nearly so"
    assert signing.public_key() != before


def test_a_key_that_is_none_is_refused(settings: Any) -> None:
    settings.PLACET_SIGNING_KEY = "not base64!"
    with pytest.raises(ValueError, match=r"base64|Invalid|Only"):
        signing.sign(DOMAIN, b"{}")
