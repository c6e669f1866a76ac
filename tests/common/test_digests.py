"""Golden values: a release that changes one of them would break every stored approval and key."""

import pytest

from common.digests import (
    business_key,
    content_hash,
    contract_digest,
    evidence_digest,
    idempotency_key,
    material_digest,
    same,
    secret_fingerprint,
    tenant_hmac,
    view_digest,
)

EMPTY = b"{}"


def test_contract_and_view_digests_are_golden_and_apart() -> None:
    # printf 'placet.contract.v1\n{}' | sha256sum
    assert contract_digest(EMPTY) == "a31d21e342b78a907575716801044c53a3e1ad42befab23f711cb611ab411454"
    assert view_digest(EMPTY) == "17ed00710b9a5a7a34f5b46c115254ed6292959c840f29c067e054b21ebdd881"


def test_idempotency_key_is_golden() -> None:
    key = idempotency_key("7b0e4a6c-0000-7000-8000-000000000001", "run-1", "refund", 0)

    assert key == "RD2QK5SQR5J4AGTDI3HOVUNGX73ATIKNJLYXEM27UL72K7RVT22Q"
    assert len(key) == 52


def test_idempotency_keys_tell_their_parts_apart() -> None:
    keys = {
        idempotency_key("t", "run", "refund", 0),
        idempotency_key("t", "run", "refund", 1),
        idempotency_key("t", "run", "refund~2", 0),
        idempotency_key("t", "runr", "efund", 0),
        idempotency_key("tr", "un", "refund", 0),
        idempotency_key("t", "run", "refund1", 0),
    }

    assert len(keys) == 6


def test_a_generation_is_never_negative() -> None:
    with pytest.raises(ValueError, match="counted from zero"):
        idempotency_key("t", "run", "refund", -1)


def test_evidence_is_salted() -> None:
    salt = bytes(range(32))

    assert (
        evidence_digest(salt, b"x")
        == "sha256:6c990015c9cf9eda2664115bb8e389a7bd2ce87cec6699095c1ea5a7e7aebad0"
    )
    assert evidence_digest(bytes(32), b"x") != evidence_digest(salt, b"x")
    with pytest.raises(ValueError, match="32 bytes"):
        evidence_digest(b"short", b"x")


def test_keyed_digests_differ_by_tenant_purpose_and_content() -> None:
    values = {
        tenant_hmac("a", "input", b"x"),
        tenant_hmac("b", "input", b"x"),
        tenant_hmac("a", "other", b"x"),
        tenant_hmac("a", "input", b"y"),
        secret_fingerprint("a", b"x"),
    }

    assert len(values) == 5
    assert all(value.startswith("hmac:") and len(value) == 69 for value in values)
    assert tenant_hmac("a", "input", b"x") == tenant_hmac("a", "input", b"x")


def test_keyed_digests_need_the_installations_secret(settings: object) -> None:
    before = tenant_hmac("a", "input", b"x")

    settings.SECRET_KEY = "another secret"  # type: ignore[attr-defined]

    assert tenant_hmac("a", "input", b"x") != before


def test_material_digest_covers_operation_version_target_and_arguments_only() -> None:
    base = {"operation": "refunds.issue", "version": 2, "target": "order:1", "arguments": {"a": "1"}}
    changed = [{"operation": "x"}, {"version": 3}, {"target": "order:2"}, {"arguments": {"a": "2"}}]

    digests = {material_digest("t", **{**base, **change}) for change in [{}, *changed]}  # type: ignore[arg-type]

    assert len(digests) == 5
    assert material_digest("t", **{**base, "arguments": {"a": "1"}}) in digests  # type: ignore[arg-type]


def test_business_keys_tell_their_parts_apart() -> None:
    assert business_key("t", "refunds.issue", ["a", "b"]) != business_key("t", "refunds.issue", ["a,b"])
    assert business_key("t", "refunds.issue", ["a"]) == business_key("t", "refunds.issue", ["a"])


def test_content_hash_ignores_the_order_of_members() -> None:
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    assert content_hash({"a": 1}) != content_hash({"a": 2})


def test_same() -> None:
    assert same("ab", "ab")
    assert not same("ab", "ac")
    assert not same("ab", "é")
    assert not same("ab", "\ud800")
