"""What the strict reader refuses, with which code and where; and that its output reads back as itself."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.strictjson import MAX_INTEGER, JsonRefused, Limits, canonicalize, parse, strict


def refusal(raw: bytes | str, limits: Limits | None = None) -> JsonRefused:
    with pytest.raises(JsonRefused) as caught:
        parse(raw.encode() if isinstance(raw, str) else raw, limits or Limits())
    return caught.value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"a":1}', 1),
        ('{"a":1.0}', 1),
        ('{"a":10E-1}', 1),
        ('{"a":-0}', 0),
        ('{"a":-0.0}', 0),
        ('{"a":0e99999999999999999999}', 0),
        ('{"a":9007199254740991}', MAX_INTEGER),
        ('{"a":-9007199254740991}', -MAX_INTEGER),
        ('{"a":0.1}', 0.1),
        ('{"a":1e-7}', 1e-7),
        ('{"a":"\\ud83d\\ude02"}', "😂"),
        ('{"a":"\\u0001\\/"}', "\x01/"),
        (' { "a" : [ ] } ', []),
    ],
)
def test_values(raw: str, value: Any) -> None:
    found = parse(raw.encode())

    assert isinstance(found, dict)
    assert found["a"] == value
    assert type(found["a"]) is type(value)


@pytest.mark.parametrize(
    ("raw", "code", "path"),
    [
        (b"\xef\xbb\xbf{}", "bom", ""),
        (b'{"a":"\xed\xa0\x80"}', "invalid_utf8", ""),
        ('{"a":1}'.encode("utf-16"), "invalid_utf8", ""),
        ('{"a":"\\ud800"}', "lone_surrogate", "/a"),
        ('{"a":"\\ud800\\u0041"}', "lone_surrogate", "/a"),
        ('{"a":"\\udc00x"}', "lone_surrogate", "/a"),
        ('{"a":"x\\u0000"}', "nul", "/a"),
        ('{"\\u0000":1}', "nul", ""),
        ('{"a":"x\ty"}', "raw_control_char", "/a"),
        ('{"a":"\ufffe"}', "noncharacter", "/a"),
        ('{"a":"\\ufdd0"}', "noncharacter", "/a"),
        ('{"a":"\U0010ffff"}', "noncharacter", "/a"),
        ('{"a":NaN}', "syntax", "/a"),
        ('{"a":-Infinity}', "syntax", "/a"),
        ('{"a":+1}', "syntax", "/a"),
        ('{"a":01}', "syntax", ""),
        ('{"a":1_000}', "syntax", ""),
        ('{"a":"\\x41"}', "syntax", "/a"),
        ('{"a":"\\u12"}', "syntax", "/a"),
        ('{"a":"', "syntax", "/a"),
        ('{"a":1,}', "syntax", ""),
        ("", "syntax", ""),
        ("{", "syntax", ""),
        ('{"a":1}{}', "trailing_data", ""),
        ('{"a":1}\x00', "trailing_data", ""),
        ("[1,2]", "top_level_not_object", ""),
        ('"x"', "top_level_not_object", ""),
        ("nul", "syntax", ""),
        ('{"o":[{"to":"a","to":"b"}]}', "duplicate_key", "/o/0/to"),
        ('{"to":1,"\\u0074o":2}', "duplicate_key", "/to"),
        ('{"amount":1,"amoun\uff54":2}', "confusable_keys", "/amoun\uff54"),
        ('{"\u00e9":1,"e\u0301":2}', "confusable_keys", "/e\u0301"),
        ('{"a/b":{"~":1e400}}', "number_overflow", "/a~1b/~0"),
        ('{"a":1e-400}', "number_precision", "/a"),
        ('{"a":1.000000000000000005}', "number_precision", "/a"),
        ('{"a":0.1000000000000000055511151231257827}', "number_precision", "/a"),
        ('{"a":9007199254740992}', "integer_out_of_range", "/a"),
        ('{"a":1e20}', "integer_out_of_range", "/a"),
        ('{"a":9007199254740992.0}', "integer_out_of_range", "/a"),
    ],
)
def test_refusals(raw: bytes | str, code: str, path: str) -> None:
    refused = refusal(raw)

    assert (refused.code, refused.path) == (code, path)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ('{"a":' * 100_000, "too_large"),
        ("[" * 100_000, "too_deep"),
        ('{"a":[0' + ",0" * 20_000 + "]}", "too_many_nodes"),
        ('{"a":"' + "x" * 70_000 + '"}', "string_too_long"),
        ('{"a":"' + "\\n" * 70_000 + '"}', "string_too_long"),
        ('{"' + "k" * 129 + '":1}', "key_too_long"),
        ('{"a":' + "9" * 200_000 + "}", "integer_out_of_range"),
        ('{"a":0.' + "9" * 200_000 + "}", "number_precision"),
        ('{"a":1e' + "9" * 200_000 + "}", "number_overflow"),
        ('{"a":1e-' + "9" * 200_000 + "}", "number_precision"),
    ],
)
def test_sizes(raw: str, code: str) -> None:
    assert refusal(raw).code == code


def test_limits_are_inclusive() -> None:
    assert parse(b'{"a":' + b"[" * 31 + b"]" * 31 + b"}")
    assert refusal(b'{"a":' + b"[" * 32 + b"]" * 32 + b"}").code == "too_deep"
    assert parse(b'{"a":"' + b"x" * 65_536 + b'"}')
    assert parse(b'{"' + b"k" * 128 + b'":1}')
    assert parse(b"[1]", Limits(object_only=False)) == [1]


def test_a_caller_may_set_larger_limits() -> None:
    long = b'{"a":"' + b"x" * 70_000 + b'"}'

    assert parse(long, Limits(max_string=100_000)) == {"a": "x" * 70_000}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: abs(number) <= MAX_INTEGER)
    | st.text(st.characters(exclude_categories=["Cs", "Cn", "Cc"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcXYZ é\n", min_size=1, max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", max_size=3), JSON, max_size=4))
def test_canonical_bytes_read_back_as_themselves(value: dict[str, Any]) -> None:
    canonical = canonicalize(value)

    assert canonicalize(parse(canonical)) == canonical
    assert canonicalize(parse(json.dumps(value, indent=1).encode())) == canonical


@given(st.binary(max_size=40) | st.text('{}[]",:\\u0123eE.-+ntfalsr ', max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        value = parse(raw)
    except JsonRefused:
        return
    assert value == json.loads(raw)


def test_keys_are_ordered_by_utf_16_units() -> None:
    # By code points U+FB33 comes before U+1F602; by UTF-16 units it comes after.
    assert canonicalize({"\ufb33": 1, "\U0001f602": 2}).decode() == '{"\U0001f602":2,"\ufb33":1}'


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**53, {1: 2}, {"a": {1, 2}}, "\ud800", {"\ud800": 1}])
def test_what_json_cannot_hold_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(JsonRefused, match="no canonical form") as caught:
        canonicalize(value)
    assert caught.value.code == "not_canonical"


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    with pytest.raises(JsonRefused) as caught:
        strict({"a": endless})
    assert caught.value.code == "too_deep"
