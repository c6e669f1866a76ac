"""The quick reader of plain objects never says anything else than the careful one."""

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from common.strictjson import (
    DEFAULT_LIMITS,
    JsonRefused,
    Limits,
    _read_if_plain,
    _Reader,
    canonicalize,
    parse,
)
from workflows.enums import CommandStatus

_WORDS = st.text(
    alphabet=st.sampled_from('{}[]:,"\\ \t\n0123456789-+.eEutrfalsn\u0000\ufdd0\u212aKkéa'), max_size=30
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def careful(text: str, limits: Limits = DEFAULT_LIMITS) -> Any:
    try:
        return _Reader(text, limits).document()
    except JsonRefused:
        return None


def agree(text: str, limits: Limits = DEFAULT_LIMITS) -> None:
    quick = _read_if_plain(text, limits)
    # By their text, because True is 1 and 1.0 too.
    assert quick is None or repr(quick) == repr(careful(text, limits))


@given(_WORDS.map(lambda words: '{"a":' + words + "}") | _WORDS)
@example('{"a":1,"a":2}')
@example('{"K":1,"\u212a":2}')
@example('{"a":-0}')
@example('{"a":01}')
@example('{"a":NaN}')
@example('{"a":1.0}')
@example('{"a":9007199254740993}')
@example('{"a":"\\u0000"}')
@example('{"a":"\ufdd0"}')
@example('{"a":1} x')
def test_on_anything(text: str) -> None:
    agree(text)


@given(st.dictionaries(st.text(max_size=4), _VALUES, max_size=4), st.booleans())
def test_on_objects(value: dict[str, Any], ascii_only: bool) -> None:
    agree(json.dumps(value, ensure_ascii=ascii_only))


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ('{"a":{"b":{"c":1}}}', Limits(max_depth=2)),
        ('{"a":[1,2,3,4]}', Limits(max_nodes=5)),
        ('{"a":"xxxx"}', Limits(max_string=3)),
        ('{"abcd":1}', Limits(max_key=3)),
        ('{"' + "k" * 129 + '":1}', DEFAULT_LIMITS),
    ],
)
def test_within_the_limits(text: str, limits: Limits) -> None:
    agree(text, limits)
    assert _read_if_plain(text, limits) is None
    with pytest.raises(JsonRefused):
        parse(text.encode(), limits)


def test_a_contract_is_plain() -> None:
    text = '{"arguments":{"amount":"25.00"},"evidence":[],"pins":{"order:1":"v1"},"target":"order:é","v":1}'
    assert _read_if_plain(text, DEFAULT_LIMITS) == json.loads(text)


def library(value: Any) -> bytes | str:
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        return "not_canonical"


def ours(value: Any) -> bytes | str:
    try:
        return canonicalize(value)
    except JsonRefused as refused:
        return refused.code


_ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=5)  # lone surrogates too
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _ANY_TEXT | st.sampled_from(CommandStatus),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(_ANY_TEXT | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_ANY)
@example({"a": "".join(map(chr, range(0x100))), "b": "\u2028\u2029\U0001f600"})
@example({"b": 2**53 - 1, "a": -(2**53) + 1})
@example({"a": 2**53})
@example({"a": [{"\ue000": 1, "\U0001f600": 2}]})
@example({"aa": 1, "a": 2, "A": 3, "a b": 4, "": 5})
@example({"a": "\ud800"})
@example([True, 1, 1.0, None])
def test_what_is_written_quickly_is_what_the_library_writes(value: Any) -> None:
    assert ours(value) == library(value)
