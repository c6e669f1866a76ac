"""Which members of two JSON values differ: down to the smallest ones, named where the name is a word of the code."""

import re
from collections.abc import Iterator
from typing import Final

from common.strictjson import JsonValue, canonicalize

MOST: Final = 50
"""Differing members of one document; what is beyond them says nothing more about the cause."""
DEEPEST: Final = 12
_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
OTHER: Final = "…"
"""Stands for a member whose name may be content itself, such as an address that something is counted by."""


def members(left: JsonValue, right: JsonValue) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """(path, left, right) of the smallest members that differ, at most `MOST`; the path of the whole is empty."""
    for number, found in enumerate(_differing((), left, right)):
        if number == MOST:
            return
        path, ours, theirs = found
        yield "/".join(path), ours, theirs


def _differing(
    path: tuple[str, ...], left: JsonValue, right: JsonValue
) -> Iterator[tuple[tuple[str, ...], JsonValue, JsonValue]]:
    if canonicalize(left) == canonicalize(right):
        return
    if len(path) < DEEPEST and isinstance(left, dict) and isinstance(right, dict):
        for name in dict.fromkeys([*left, *right]):
            yield from _differing((*path, _named(name)), left.get(name), right.get(name))
    elif (
        len(path) < DEEPEST and isinstance(left, list) and isinstance(right, list) and len(left) == len(right)
    ):
        for at, (ours, theirs) in enumerate(zip(left, right, strict=True)):
            yield from _differing((*path, str(at)), ours, theirs)
    else:
        yield path, left, right


def _named(name: str) -> str:
    return name if _WORD.match(name) else OTHER
