"""Strict JSON: I-JSON (RFC 7493) in, RFC 8785 canonical bytes out.

Input is refused, never repaired. What `parse` accepts has exactly one reading, and `canonicalize` gives
it exactly one spelling, so that the same bytes can be stored, hashed, shown and sent.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NoReturn, TypeAlias

import rfc8785

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

MAX_INTEGER: Final = 2**53 - 1
"""RFC 7493 2.2: the largest integer that every double keeps exactly."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a document may be; lengths of strings and keys count code points."""

    max_bytes: int = 262_144
    max_depth: int = 32
    max_nodes: int = 10_000
    max_string: int = 65_536
    max_key: int = 128
    object_only: bool = True
    """Arguments are always an object; callers that take a list of them say so."""


DEFAULT_LIMITS: Final = Limits()


class JsonRefused(ValueError):
    """The document is not acceptable JSON. `code` is stable, `path` is a JSON pointer (RFC 6901)."""

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


def parse(raw: bytes, limits: Limits = DEFAULT_LIMITS) -> JsonValue:
    """Read one document, or raise JsonRefused.

    Numbers become int where they are whole, else the float whose shortest form is what was written.
    """
    text = _decode(raw, limits)
    plain = _read_if_plain(text, limits)
    return plain if plain is not None else _Reader(text, limits).document()


def canonicalize(value: Any) -> bytes:
    """The RFC 8785 bytes of a value; JsonRefused (`not_canonical`) for what JSON cannot hold."""
    try:
        return _SPELL(value).encode() if _spells_itself(value) else rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise JsonRefused("not_canonical", f"The value has no canonical form: {error}.") from error
    except RecursionError as error:
        raise JsonRefused("too_deep", "The value is nested too deeply.") from error


_SPELL: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def _spells_itself(value: Any) -> bool:
    """Whether the ordinary encoder writes this value canonically: it has neither fractions nor huge integers, its names
    are sorted the same by any encoding, and nothing in it is more than it seems. Most of what is hashed is such.
    """
    kind = type(value)
    if isinstance(value, str) or value is None or kind is bool:
        return True
    if kind is int:
        return -MAX_INTEGER <= value <= MAX_INTEGER  # type: ignore[no-any-return]
    if kind is dict:
        return all(type(name) is str and name.isascii() and _spells_itself(value[name]) for name in value)
    return kind is list and all(map(_spells_itself, value))


def strict(value: Any, limits: Limits = DEFAULT_LIMITS) -> JsonValue:
    """The same value after a trip through its canonical bytes: what code hands over passes the same gate."""
    return parse(canonicalize(value), limits)


def _decode(raw: bytes, limits: Limits) -> str:
    if len(raw) > limits.max_bytes:
        raise JsonRefused("too_large", f"The document has more than {limits.max_bytes} bytes.")
    if raw.startswith(b"\xef\xbb\xbf"):
        raise JsonRefused("bom", "The document begins with a byte order mark.")
    try:
        return raw.decode("utf-8", errors="strict")
    except UnicodeDecodeError as error:
        raise JsonRefused("invalid_utf8", f"Byte {error.start} is not valid UTF-8.") from error


class _NotPlain(ValueError):
    """For the careful reader, which says what it is or reads it after all."""


def _read_if_plain(text: str, limits: Limits) -> dict[str, JsonValue] | None:
    """The same value, quickly, of an object about which nothing is special; None: read it with care.

    Nearly everything that is read is such an object, contracts above all. Depth, nodes and lengths are bounded from
    above by counts over the whole text; escapes by number, fractions and names beyond ASCII are never plain.
    """
    opened = text.count("{") + text.count("[")
    within = opened <= limits.max_depth and opened + text.count(",") < limits.max_nodes
    if not within or len(text) > limits.max_string or "\\u" in text or _has_noncharacter(text):
        return None
    try:
        value = _PLAIN.decode(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and limits.max_key >= DEFAULT_LIMITS.max_key else None


def _plain_object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs) or not all(
        key.isascii() and len(key) <= DEFAULT_LIMITS.max_key for key in found
    ):
        raise _NotPlain
    return found


def _plain_integer(digits: str) -> int:
    if len(digits) > 15:
        raise _NotPlain
    return int(digits)


def _not_plain(_: str) -> NoReturn:
    raise _NotPlain


_PLAIN: Final = json.JSONDecoder(
    object_pairs_hook=_plain_object,
    parse_int=_plain_integer,
    parse_float=_not_plain,
    parse_constant=_not_plain,
)

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_CHUNK: Final = re.compile(r'[^"\\\x00-\x1f]*')
_HEX4: Final = re.compile(r"[0-9a-fA-F]{4}")
_NONCHARACTER: Final = re.compile(
    "[\ufdd0-\ufdef"
    + "".join(chr(plane * 0x10000 + 0xFFFE) + chr(plane * 0x10000 + 0xFFFF) for plane in range(17))
    + "]"
)


def _has_noncharacter(text: str) -> bool:
    return not text.isascii() and _NONCHARACTER.search(text) is not None


_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: Final[dict[str, JsonValue]] = {"true": True, "false": False, "null": None}


class _Reader:
    """A recursive reader whose depth the limits bound, so that it never meets Python's own limit."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.at = 0
        self.nodes = 0
        self.path: list[str] = []

    def document(self) -> JsonValue:
        self.skip_space()
        if self.limits.object_only and self.peek() not in ("{", ""):
            self._check_syntax_first()
            self.refuse("top_level_not_object", "The document is not an object.")
        value = self.value(1)
        self.skip_space()
        if self.at != len(self.text):
            self.refuse("trailing_data", "There is something after the end of the document.")
        return value

    def _check_syntax_first(self) -> None:
        """A document that is no JSON at all is told so before it is told to be an object."""
        start = self.at
        self.value(1)
        self.at = start

    def value(self, depth: int) -> JsonValue:
        self.nodes += 1
        if self.nodes > self.limits.max_nodes:
            self.refuse("too_many_nodes", f"The document has more than {self.limits.max_nodes} values.")
        character = self.peek()
        if character in ("{", "["):
            if depth > self.limits.max_depth:
                self.refuse("too_deep", f"The document is nested more than {self.limits.max_depth} deep.")
            return self.object(depth) if character == "{" else self.array(depth)
        if character == '"':
            return self.string(self.limits.max_string, "string_too_long")
        return self.word_or_number()

    def object(self, depth: int) -> dict[str, JsonValue]:
        self.at += 1
        found: dict[str, JsonValue] = {}
        folded: set[str] = set()
        self.skip_space()
        if self.take("}"):
            return found
        while True:
            key = self.key(found, folded)
            self.path.append(key)
            found[key] = self.value(depth + 1)
            self.path.pop()
            self.skip_space()
            if self.take("}"):
                return found
            self.expect(",")
            self.skip_space()

    def key(self, found: dict[str, JsonValue], folded: set[str]) -> str:
        """Read a member name and its colon. Two names that look alike (NFKC) are as bad as two equal ones."""
        if self.peek() != '"':
            self.refuse("syntax", f"A member name was expected at character {self.at}.")
        key = self.string(self.limits.max_key, "key_too_long")
        if key in found:
            self.refuse("duplicate_key", "A member name occurs twice in one object.", key)
        look = unicodedata.normalize("NFKC", key)
        if look in folded:
            self.refuse("confusable_keys", "Two member names of one object look alike.", key)
        folded.add(look)
        self.skip_space()
        self.expect(":")
        self.skip_space()
        return key

    def array(self, depth: int) -> list[JsonValue]:
        self.at += 1
        found: list[JsonValue] = []
        self.skip_space()
        if self.take("]"):
            return found
        while True:
            self.path.append(str(len(found)))
            found.append(self.value(depth + 1))
            self.path.pop()
            self.skip_space()
            if self.take("]"):
                return found
            self.expect(",")
            self.skip_space()

    def string(self, longest: int, too_long: str) -> str:
        self.at += 1
        pieces: list[str] = []
        length = 0
        while True:
            piece = self.piece()
            if piece is None:
                break
            pieces.append(piece)
            length += len(piece)
            if length > longest:
                self.refuse(too_long, f"A string has more than {longest} characters.")
        text = "".join(pieces)
        if _has_noncharacter(text):
            self.refuse("noncharacter", "A string holds a code point that is no character (RFC 7493 2.1).")
        return text

    def piece(self) -> str | None:
        """The next run of plain characters or one escape; None at the closing quote."""
        chunk = self.match(_CHUNK)
        if chunk:
            return chunk
        character = self.peek()
        if character == "":
            self.refuse("syntax", "A string does not end.")
        if character not in ('"', "\\"):
            self.refuse("raw_control_char", f"A string holds the control character U+{ord(character):04X}.")
        if character == "\\":
            return self.escape()
        self.at += 1
        return None

    def escape(self) -> str:
        kind = self.text[self.at + 1 : self.at + 2]
        if kind != "u":
            if kind not in _ESCAPES:
                self.refuse("syntax", f"The escape at character {self.at} is unknown.")
            self.at += 2
            return _ESCAPES[kind]
        unit = self.hex_unit()
        if unit == 0:
            self.refuse("nul", "A string holds U+0000.")
        if 0xD800 <= unit <= 0xDFFF:
            return self.surrogates(unit)
        return chr(unit)

    def surrogates(self, high: int) -> str:
        if high >= 0xDC00 or not self.text.startswith("\\u", self.at):
            self.refuse("lone_surrogate", "A string holds half of a surrogate pair.")
        low = self.hex_unit()
        if not 0xDC00 <= low <= 0xDFFF:
            self.refuse("lone_surrogate", "A string holds half of a surrogate pair.")
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))

    def hex_unit(self) -> int:
        self.at += 2
        digits = self.match(_HEX4)
        if not digits:
            self.refuse("syntax", f"Four hexadecimal digits were expected at character {self.at}.")
        return int(digits, 16)

    def word_or_number(self) -> JsonValue:
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            self.refuse("syntax", f"No JSON value begins at character {self.at}.")
        self.at = found.end()
        if found[2] is None and found[3] is None:
            return self.whole(found[1])
        return self.fraction(found[0], found[1] + (found[2] or ""))

    def whole(self, digits: str) -> int:
        """Count the digits first: int() of five thousand of them is slow and then refuses in its own way."""
        if len(digits) > 17 or abs(int(digits)) > MAX_INTEGER:
            self.refuse("integer_out_of_range", "An integer is beyond ±(2^53 − 1); send it as a string.")
        return int(digits)

    def fraction(self, written: str, mantissa: str) -> int | float:
        """A number with a fraction or an exponent: kept only if the double says exactly what was written.

        Whole doubles from 2^53 on are integers beyond the range, however they are spelled: their canonical
        form can be a bare integer, which this reader would have to refuse.
        """
        number = float(written)
        if number in (float("inf"), float("-inf")):
            self.refuse("number_overflow", "A number is too large for a double.")
        if number == 0:
            if mantissa.strip("-0."):
                self.refuse("number_precision", "A number is too small for a double and would become zero.")
            return 0
        if Decimal(written) != Decimal(repr(number)):
            self.refuse("number_precision", "A number has more digits than a double keeps.")
        if abs(number) > MAX_INTEGER:
            self.refuse("integer_out_of_range", "An integer is beyond ±(2^53 − 1); send it as a string.")
        return int(number) if number.is_integer() else number

    def match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def skip_space(self) -> None:
        self.match(_SPACE)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, character: str) -> bool:
        if self.peek() != character:
            return False
        self.at += 1
        return True

    def expect(self, character: str) -> None:
        if not self.take(character):
            self.refuse("syntax", f"“{character}” was expected at character {self.at}.")

    def refuse(self, code: str, message: str, *below: str) -> NoReturn:
        raise JsonRefused(code, message, pointer((*self.path, *below)))


def pointer(path: tuple[str | int, ...]) -> str:
    """The JSON pointer (RFC 6901) of a path."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
