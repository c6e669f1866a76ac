"""The closed list of error codes, written from the refusals themselves: `docs/errors.md`."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from django.urls import get_resolver

from common.errors import Refused, all_refusals
from common.problems import STRICT_JSON_CODES, BadRequest

HEAD: Final = """# Error codes

This list is written by `./placet error_codes`; a test compares it with the code. It is closed: a code that is not here
is never sent, and none of them changes its meaning.

An error of the API is a problem document (RFC 9457) with the media type `application/problem+json`:

| member | what it is |
|---|---|
| `code` | the stable word from this list; look at this one in programs |
| `status` | the HTTP status again |
| `title` | the same for each occurrence |
| `detail` | a sentence for people about this occurrence |
| `details` | facts that help to go on: ids, lists, `retry_after` |
| `instance`, `request_id` | the address that was asked, and the id that leads to our logs |
| `type` | `urn:placet:problem:` and the code |

Pages show the sentences too; some codes appear on pages only.

| code | status | what it says |
|---|---|---|
"""
STRICT: Final = """
## Bodies that are not strict JSON

All with status 400 (`too_large`: 413). `details.path` is the JSON pointer (RFC 6901) of the place, where there is one.

| code | what is wrong |
|---|---|
"""
_STRICT_MEANING: Final = {
    "bom": "The body begins with a byte order mark.",
    "confusable_keys": "Two member names of one object look alike.",
    "duplicate_key": "A member name occurs twice in one object.",
    "integer_out_of_range": "An integer is beyond ±(2^53 − 1); send it as a string.",
    "invalid_utf8": "The body is not UTF-8.",
    "key_too_long": "A member name is too long.",
    "lone_surrogate": "A string holds half of a surrogate pair.",
    "noncharacter": "A string holds a code point that is no character.",
    "not_canonical": "The value has no canonical form.",
    "nul": "A string holds U+0000.",
    "number_overflow": "A number is too large for a double.",
    "number_precision": "A number has more digits than a double keeps.",
    "raw_control_char": "A string holds a control character that is not escaped.",
    "string_too_long": "A string is too long.",
    "syntax": "It is not JSON. NaN and Infinity are not either.",
    "too_deep": "It is nested too deeply.",
    "too_many_nodes": "It holds too many values.",
    "top_level_not_object": "It is not an object.",
    "trailing_data": "Something follows after the end.",
}
_BASES: Final = {"refused", "decision_refused"}
"""Codes of classes that are only there to be derived from."""


def error_list() -> str:
    """The whole document."""
    rows = [f"| `{code}` | {statuses} | {says} |" for code, statuses, says in _rows(_own_refusals())]
    strict = [f"| `{code}` | {_STRICT_MEANING[code]} |" for code in STRICT_JSON_CODES]
    return HEAD + "\n".join(rows) + "\n" + STRICT + "\n".join(strict) + "\n"


def _own_refusals() -> list[type[Refused]]:
    """Every refusal of the product; looking at the addresses loads whatever can raise one."""
    assert get_resolver().url_patterns
    return [kind for kind in all_refusals() if not kind.__module__.startswith("tests")]


def _rows(kinds: Iterable[type[Refused]]) -> list[tuple[str, str, str]]:
    by_code: dict[str, list[type[Refused]]] = defaultdict(list)
    for kind in kinds:
        strict = kind.code in STRICT_JSON_CODES and kind.http_status == BadRequest.http_status
        if kind.code not in _BASES and not strict:
            by_code[kind.code].append(kind)
    return [
        (code, _joined(str(kind.http_status) for kind in found), _joined(_says(kind) for kind in found))
        for code, found in sorted(by_code.items())
    ]


def _joined(words: Iterable[str]) -> str:
    """Each once. The order in which classes were loaded says nothing, so it is not kept."""
    return " · ".join(sorted(set(words)))


def _says(kind: type[Refused]) -> str:
    return " ".join((kind.__doc__ or "").split())
