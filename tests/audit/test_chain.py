"""What is hashed: RFC 8785 bytes, fixed for good."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.chain import GENESIS, MEMBERS, Content, canonical_link, link_hash
from common.strictjson import canonicalize

AT = "2026-09-19T17:52:08.000005Z"
EVENT: dict[str, str | None] = {
    "id": "0190b7a6-0000-7000-8000-000000000001",
    "tenant": "0190b7a6-0000-7000-8000-000000000002",
    "kind": "proposal.approved",
    "subject": "proposal:0190b7a6-0000-7000-8000-000000000003",
    "run": None,
    "from": "pending",
    "to": "approved",
    "performed_by": "user:7",
    "on_behalf_of": "",
    "via": "session",
    "owner": "person",
    "reason": "fits; „genau“",
    "request_id": "r1",
    "digest": "ab",
}
CONTENT = Content(AT, '{"votes": 2, "amount": 1.50, "ä": null}', EVENT)


def test_the_hash_is_that_of_the_canonical_document() -> None:
    body = {"votes": 2, "amount": 1.5, "ä": None}
    document = {"v": 1, "seq": 1, "previous": GENESIS, "at": AT, "body": body, **EVENT}
    expected = hashlib.sha256(b"placet.event.v1\n" + canonicalize(document)).hexdigest()
    assert link_hash(1, GENESIS, CONTENT) == expected


def test_golden_hash_across_releases() -> None:
    """Changing this value would make every stored chain unverifiable."""
    golden = "b7220943bd42fb8735113c45c6dc1c3d9fe6dc1127ccc9ebd0af9eebba517678"
    assert link_hash(1, GENESIS, CONTENT) == golden


def test_an_event_that_says_through_what_it_came_is_of_version_2() -> None:
    members = EVENT | {"through": "token:0190b7a6-0000-7000-8000-000000000009"}
    document = {"v": 2, "seq": 1, "previous": GENESIS, "at": AT, "body": {}, **members}
    assert canonical_link(1, GENESIS, Content(AT, "{}", members)) == canonicalize(document)
    golden = "8a032cc3919f5c97651f1760a9cfe67b603ef3fc82b26b4319f2f0968c0e1af0"
    assert link_hash(1, GENESIS, Content(AT, "{}", members)) == golden


def test_an_event_of_before_is_hashed_as_it_was() -> None:
    golden = "b7220943bd42fb8735113c45c6dc1c3d9fe6dc1127ccc9ebd0af9eebba517678"
    assert link_hash(1, GENESIS, CONTENT._replace(members=EVENT | {"through": None})) == golden


def test_that_it_came_through_nothing_is_said_too() -> None:
    said, unsaid = (CONTENT._replace(members=EVENT | {"through": word}) for word in ("", None))
    assert canonical_link(1, GENESIS, said).endswith(b'"through":"","to":"approved","v":2,"via":"session"}')
    assert link_hash(1, GENESIS, said) != link_hash(1, GENESIS, unsaid)


def test_at_and_body_sort_before_all_other_members() -> None:
    assert max("at", "body") < min({"v", "seq", "previous", *MEMBERS})


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts, texts, st.integers(1, 2**53 - 1), st.dictionaries(texts, values, max_size=3), st.booleans())
def test_the_quick_encoder_gives_rfc_8785(
    reason: str, actor: str, seq: int, body: dict[str, Any], escaped: bool
) -> None:
    members = EVENT | {"reason": reason, "performed_by": actor}
    document = {"v": 1, "seq": seq, "previous": GENESIS, "at": AT, "body": body, **members}
    content = Content(AT, json.dumps(body, ensure_ascii=escaped), members)
    assert canonical_link(seq, GENESIS, content) == canonicalize(document)


NO_CANONICAL_FORM = ['{"n": 123456789012345678901234567890}', '{"n": 1e999}', '{"n": NaN}', "[" * 100_000]


@pytest.mark.parametrize("body", NO_CANONICAL_FORM)
def test_a_body_without_a_canonical_form_is_taken_as_its_text(body: str) -> None:
    document = {"v": 1, "seq": 1, "previous": GENESIS, "at": AT, "body": body, **EVENT}
    assert canonical_link(1, GENESIS, CONTENT._replace(body=body)) == canonicalize(document)
