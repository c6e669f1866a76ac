"""How text from outside is made visible, and what is odd about it.

`visible` replaces everything that a reader could not see or could be deceived by with its code point in
`⟦U+XXXX⟧`; `unveil` is its exact inverse, so that what is shown and what is bound are one text in two
spellings. `flags_of` names what is odd, each with a stable code. Nothing here changes the value that is
hashed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

import regex

from common.lookalikes import letters_in_numbers, numbers_turned, odd_digits, reads_as, twin_words

LINE_FEED: Final = "↵\n"
TAB: Final = "⇥"
SPACE: Final = "·"
MANY_LINES: Final = 12
LONG_TEXT: Final = 1_000

_MARKS: Final = "⟦⟧↵⇥·"
"""Our own signs: in a text from outside they are shown as code points, so that none can be forged."""

_BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_SELECTOR: Final = regex.compile(r"\p{Variation_Selector}")
_IGNORABLE: Final = regex.compile(r"\p{Default_Ignorable_Code_Point}")
_ESCAPED: Final = re.compile(r"⟦U\+((?:10|[0-9A-F])?[0-9A-F]{4})⟧")
_EDGE_SPACES: Final = re.compile(r"^ +| +$| {2,}", re.MULTILINE)
_SHOWN_EDGE_SPACES: Final = re.compile(r"^ +| +(?=↵?$)| {2,}", re.MULTILINE)
_STACKED: Final = regex.compile(r"[\p{Mn}\p{Me}]{4,}")
_OVERLAYS: Final = regex.compile(r"[\u0334-\u0338\u20d2\u20d3\u20d8-\u20da\u20e5\u20e6\u20ea\u20eb\p{Me}]")
"""Marks that strike through or ring what they stand on: "do not" with them reads as withdrawn."""
_LOOSE: Final = regex.compile(r"(?<=^|[\s↵⇥·⟧])\p{M}+|(?<=\p{M}{3})\p{M}+")
"""Marks without a letter, which join whatever stands before the text, and those that would pile up on one."""

PieceKind = Literal["text", "cp", "ws", "odd"]


@dataclass(frozen=True, slots=True)
class Flag:
    """Something odd about a value. `acknowledge`: a reviewer must tick it before approving."""

    code: str
    sentence: str
    acknowledge: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of shown text for the page: the texts of all pieces joined are exactly the shown text."""

    kind: PieceKind
    text: str
    title: str = ""


# code: (sentence, whether a reviewer must acknowledge it)
_SENTENCES: Final[dict[str, tuple[str, bool]]] = {
    "bidi_control": ("The text holds characters that reverse the reading order.", True),
    "invisible": ("The text holds characters that cannot be seen.", True),
    "tag_chars": ("The text holds invisible tag characters, which can carry a hidden message.", True),
    "variation_selector": ("The text holds variation selectors, which can carry hidden bytes.", True),
    "blank_letter": ("The text holds letters that look like an empty space.", True),
    "nonascii_space": ("The text holds spaces that are not the ordinary one.", True),
    "line_sep": ("The text holds line separators that programs treat differently.", True),
    "control": ("The text holds control characters.", True),
    "ansi_escape": ("The text holds terminal commands, which can overwrite what a terminal shows.", True),
    "private_use": ("The text holds private-use characters, which look different in every font.", True),
    "unassigned": ("The text holds code points that stand for no character.", True),
    "mixed_script": ("A word mixes letters of different scripts that can look alike.", True),
    "lookalike_word": ("A word is made of letters from elsewhere that look like ordinary ones.", True),
    "odd_digits": ("The text holds digits other than 0 to 9, which can be misread.", True),
    "letters_in_number": ("A number holds letters that look like digits.", True),
    "rtl_numbers": (
        "Numbers stand behind letters that are read from right to left, so they may be shown in another order.",
        True,
    ),
    "overlay_marks": ("The text holds marks that strike letters through, or ring them.", True),
    "stacked_marks": ("The text stacks many marks on one letter, which can cover what is near it.", True),
    "rtl_text": ("The text is written from right to left, in part or as a whole.", False),
    "not_nfc": (
        "The text holds decomposed characters; it differs in bytes from one that looks the same.",
        False,
    ),
    "nfkc_differs": ("The text holds compatibility characters that look like ordinary ones.", False),
    "html_like": ("The text looks like HTML. It is shown and sent as it is.", False),
    "html_entity": ("The text holds HTML entities. They are shown and sent as they are.", False),
    "markdown_image": (
        "The text holds a Markdown image. A program that renders it fetches the address.",
        False,
    ),
    "markdown_link": ("The text holds a Markdown link.", False),
    "template_like": ("The text looks like a template.", False),
    "formula_like": ("The text begins like a spreadsheet formula.", False),
    "whitespace": ("The text has spaces at an edge, or several in a row.", False),
    "many_lines": ("The text has many lines.", False),
    "long_text": ("The text is long.", False),
}

_PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "html_like": re.compile(r"<[A-Za-z/!?]"),
    "html_entity": re.compile(r"&(?:#[0-9]+|#[xX][0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9]*);"),
    "markdown_image": re.compile(r"!\[[^\]]*\][(\[]"),
    "markdown_link": re.compile(r"(?<!!)\[[^\]]+\][(\[]|^ {0,3}\[[^\]]+\]:\s*\S", re.MULTILINE),
    "template_like": re.compile(r"\{\{|\{%|\{#|\$\{|<%"),
    "formula_like": re.compile(r"[=+\-@\t\r]"),
    "whitespace": _EDGE_SPACES,
}


def visible(text: str) -> str:
    """The text as the page shows it: one line feed is `↵` and a line feed, a tab is `⇥`, edge and doubled
    spaces are `·`, and every character that hides, deceives or imitates our signs is `⟦U+XXXX⟧`.
    """
    shown = "".join(_shown(character) for character in text)
    if not shown.isascii():
        shown = _LOOSE.sub(lambda found: "".join(map(_code_point, found[0])), shown)
    return _SHOWN_EDGE_SPACES.sub(lambda found: SPACE * len(found[0]), shown)


def _shown(character: str) -> str:
    if character == "\n":
        return LINE_FEED
    if character == "\t":
        return TAB
    if character in _MARKS or hidden_kind(character):
        return _code_point(character)
    return character


def _code_point(character: str) -> str:
    return f"⟦U+{ord(character):04X}⟧"


def unveil(shown: str) -> str:
    """The text that `visible` was given."""
    plain = shown.replace(LINE_FEED, "\n").replace(TAB, "\t").replace(SPACE, " ")
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), plain)


def hidden_kind(character: str) -> str | None:
    """The flag code of a character that must not be shown as it is; None for one that may."""
    if " " <= character <= "~" or character in "\n\t":
        return None
    for code, members in (("bidi_control", _BIDI), ("blank_letter", _BLANK_LETTERS)):
        if character in members:
            return code
    if "\U000e0000" <= character <= "\U000e007f":
        return "tag_chars"
    if _SELECTOR.match(character):
        return "variation_selector"
    if _OVERLAYS.match(character):
        return "overlay_marks"
    return _hidden_by_category(character)


_CATEGORY_CODES: Final = {
    "Zs": "nonascii_space",
    "Zl": "line_sep",
    "Zp": "line_sep",
    "Co": "private_use",
    "Cn": "unassigned",
    "Cf": "invisible",
}


def _hidden_by_category(character: str) -> str | None:
    category = unicodedata.category(character)
    if category == "Cc":
        return "ansi_escape" if character in "\x1b\x9b" else "control"
    if code := _CATEGORY_CODES.get(category):
        return code
    return "invisible" if _IGNORABLE.match(character) else None


def codes_of(text: str) -> frozenset[str]:
    """The stable codes of everything odd about a text."""
    codes = {kind for character in set(text) if (kind := hidden_kind(character))}
    codes |= {code for code, pattern in _PATTERNS.items() if _finds(code, pattern, text)}
    codes |= _form_codes(text)
    if mixed_words(text):
        codes.add("mixed_script")
    if twin_words(text):
        codes.add("lookalike_word")
    if odd_digits(text):
        codes.add("odd_digits")
    if letters_in_numbers(text):
        codes.add("letters_in_number")
    if numbers_turned(text):
        codes.add("rtl_numbers")
    if text.count("\n") + 1 > MANY_LINES:
        codes.add("many_lines")
    if len(text) > LONG_TEXT:
        codes.add("long_text")
    return frozenset(codes)


def _finds(code: str, pattern: re.Pattern[str], text: str) -> bool:
    # A formula is one only at the very beginning of a cell.
    return bool(pattern.match(text) if code == "formula_like" else pattern.search(text))


def _form_codes(text: str) -> set[str]:
    codes = set()
    composed = unicodedata.normalize("NFC", text)
    if composed != text:
        codes.add("not_nfc")
    if unicodedata.normalize("NFKC", text) != composed:
        codes.add("nfkc_differs")
    if any(unicodedata.bidirectional(character) in ("R", "AL") for character in set(text) - _BIDI):
        codes.add("rtl_text")
    if _STACKED.search(text):
        codes.add("stacked_marks")
    return codes


def flags_of(text: str) -> tuple[Flag, ...]:
    """Everything odd about a text, in a fixed order, with a sentence for people."""
    codes = codes_of(text)
    return tuple(_flag(code, text) for code in _SENTENCES if code in codes)


_EMOJI_STYLE: Final = regex.compile(r"\p{Extended_Pictographic}[\ufe0e\ufe0f]")


def _flag(code: str, text: str) -> Flag:
    sentence, acknowledge = _SENTENCES[code]
    if code == "variation_selector":
        # One selector behind an emoji only chooses its style; everywhere else it can carry a message.
        acknowledge = bool(_SELECTOR.search(_EMOJI_STYLE.sub("", text)))
    return Flag(code, sentence, acknowledge)


_WORD: Final = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_SCRIPT_NAMES: Final = (
    "Latin Cyrillic Greek Armenian Hebrew Arabic Cherokee Georgian Coptic Han Hiragana Katakana Bopomofo"
    " Hangul Devanagari Thai Lisu Deseret"
)
_SCRIPTS: Final = tuple(
    (name, regex.compile(rf"\p{{Script={name}}}")) for name in re.findall(r"\w+", _SCRIPT_NAMES)
)
_SHARED: Final = regex.compile(r"[\p{Script=Common}\p{Script=Inherited}]")
_EAST_ASIAN: Final = frozenset({"Latin", "Han", "Hiragana", "Katakana", "Bopomofo", "Hangul"})


def script_of(character: str) -> str | None:
    """The script of a letter as far as look-alikes are known in it; None where several scripts share it."""
    if not character.isalpha() or _SHARED.match(character):
        return None
    return next((name for name, pattern in _SCRIPTS if pattern.match(character)), "Other")


def mixed_words(text: str) -> tuple[str, ...]:
    """Words with letters of several scripts. East Asian writing mixes some of them as a matter of course
    (Unicode Technical Standard 39, section 5.2, "highly restrictive").
    """
    if text.isascii():
        return ()
    return tuple(word for word in _WORD.findall(text) if _is_mixed(word))


def _is_mixed(word: str) -> bool:
    scripts = {script for character in word if (script := script_of(character))}
    return len(scripts) > 1 and not scripts <= _EAST_ASIAN


def odd_letters(word: str) -> tuple[str, ...]:
    """The letters of a mixed word that are not of its most frequent script, each once, in order."""
    scripts = [script for character in word if (script := script_of(character))]
    main = max(sorted(set(scripts)), key=scripts.count)
    return tuple(dict.fromkeys(c for c in word if (script := script_of(c)) and script != main))


def explained(text: str) -> tuple[str, ...]:
    """One line for each word that is not what it seems, with the odd letters and digits as code points and names."""
    words = [_explained_word(word) for word in dict.fromkeys(mixed_words(text))]
    words += [f"{_twin(word)} reads as {reads_as(word)}" for word in dict.fromkeys(twin_words(text))]
    digits = [f"{_code_point(digit)} is {name_of(digit)}, {int(digit)}" for digit in odd_digits(text)]
    numbers = [
        f"{number}: {' and '.join(dict.fromkeys(f'the letter {c}' for c in number if c.isalpha()))}"
        for number in letters_in_numbers(text)
    ]
    return (*words[:8], *digits[:10], *numbers[:8])


def _twin(word: str) -> str:
    """A look-alike word with every letter from elsewhere spelled out."""
    return spelled_out(word, [character for character in word if not character.isascii()])


def _explained_word(word: str) -> str:
    odd = odd_letters(word)
    return f"{spelled_out(word, odd)}: " + ", ".join(name_of(character) for character in odd)


def spelled_out(text: str, odd: Collection[str]) -> str:
    """A word with the code point behind each of its odd letters; a hidden one is its code point alone."""
    return "".join(
        f"{character}⟦U+{ord(character):04X}⟧"
        if character in odd and not hidden_kind(character)
        else visible(character)
        for character in text
    )


def name_of(character: str) -> str:
    """The Unicode name of a character, or its code point where it has none (control characters)."""
    return unicodedata.name(character, f"U+{ord(character):04X}")


_PIECES: Final = re.compile(r"⟦U\+(?:10|[0-9A-F])?[0-9A-F]{4}⟧|[↵⇥·]+")


def pieces(shown: str) -> tuple[Piece, ...]:
    """Cut shown text into what the page marks up: code points with names, white space, odd letters."""
    found: list[Piece] = []
    end = 0
    for match in _PIECES.finditer(shown):
        found += _plain_pieces(shown[end : match.start()])
        found.append(_sign(match[0]))
        end = match.end()
    return (*found, *_plain_pieces(shown[end:]))


def _sign(sign: str) -> Piece:
    escaped = _ESCAPED.fullmatch(sign)
    return Piece("cp", sign, name_of(chr(int(escaped[1], 16)))) if escaped else Piece("ws", sign)


def _plain_pieces(text: str) -> list[Piece]:
    odd = {letter for word in mixed_words(text) for letter in odd_letters(word)}
    if not odd:
        return [Piece("text", text)] if text else []
    runs = re.split("([" + re.escape("".join(sorted(odd))) + "])", text)
    return [Piece("odd", run, name_of(run)) if run in odd else Piece("text", run) for run in runs if run]


def line_count(text: str) -> int:
    """Lines of a text, or of the same text as shown."""
    return text.count("\n") + 1
