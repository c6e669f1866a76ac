"""Letters and digits that read as others: for warnings and for comparing, never for a digest.

Two tables. `TWINS` are letters that nobody can tell from the ASCII ones, case by case: a word of them alone reads as
another word. `ALIKE` adds what a hurried reader takes for them, small capitals and such, in small letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Final

_TWIN_LETTERS: Final = {
    # Cyrillic
    "А": "A", "В": "B", "С": "C", "Е": "E", "Н": "H", "І": "I", "Ј": "J", "К": "K", "М": "M", "О": "O", "Р": "P",
    "Ѕ": "S", "Т": "T", "Х": "X", "У": "Y", "Ү": "Y", "Ԍ": "G", "Ԛ": "Q", "Ԝ": "W", "Ѵ": "V", "Ӏ": "I",
    "а": "a", "с": "c", "е": "e", "о": "o", "р": "p", "х": "x", "у": "y", "ѕ": "s", "і": "i", "ј": "j", "һ": "h",
    "ԁ": "d", "ԛ": "q", "ԝ": "w", "ѵ": "v", "ӏ": "l", "ү": "y",
    # Greek
    "Α": "A", "Β": "B", "Ε": "E", "Ζ": "Z", "Η": "H", "Ι": "I", "Κ": "K", "Μ": "M", "Ν": "N", "Ο": "O", "Ρ": "P",
    "Τ": "T", "Υ": "Y", "Χ": "X", "Ϲ": "C", "Ϳ": "J", "ο": "o", "ν": "v", "α": "a", "ι": "i", "ρ": "p", "υ": "u",
    "ϲ": "c", "ϳ": "j", "κ": "k", "γ": "y",
    # Armenian
    "Օ": "O", "Ս": "U", "Տ": "S", "Լ": "L", "օ": "o", "ս": "u", "հ": "h", "ո": "n", "ց": "g", "զ": "q",
    # Cherokee
    "Ꭰ": "D", "Ꭱ": "R", "Ꭲ": "T", "Ꭺ": "A", "Ꭻ": "J", "Ꭼ": "E", "Ꮋ": "H", "Ꮃ": "W", "Ꮇ": "M", "Ꮩ": "V", "Ꮪ": "S",
    "Ꮮ": "L", "Ꮯ": "C", "Ꮲ": "P", "Ꮶ": "K", "Ᏼ": "B", "Ꮐ": "G", "Ꮓ": "Z", "Ꭹ": "Y",
    # Lisu
    "ꓐ": "B", "ꓑ": "P", "ꓓ": "D", "ꓔ": "T", "ꓖ": "G", "ꓗ": "K", "ꓙ": "J", "ꓚ": "C", "ꓜ": "Z", "ꓝ": "F", "ꓟ": "M",
    "ꓠ": "N", "ꓡ": "L", "ꓢ": "S", "ꓣ": "R", "ꓦ": "V", "ꓧ": "H", "ꓪ": "W", "ꓫ": "X", "ꓬ": "Y", "ꓮ": "A", "ꓰ": "E",
    "ꓲ": "I", "ꓳ": "O", "ꓴ": "U",
    # Coptic
    "Ⲁ": "A", "Ⲃ": "B", "Ⲥ": "C", "Ⲉ": "E", "Ⲏ": "H", "Ⲕ": "K", "Ⲙ": "M", "Ⲛ": "N", "Ⲟ": "O", "Ⲣ": "P", "Ⲧ": "T",
    "ⲟ": "o", "ⲥ": "c", "ⲣ": "p",
    # Latin beyond ASCII that no language mixes with it: of phonetics, and the clicks
    "ɡ": "g", "ɑ": "a", "ɩ": "i", "ǀ": "l", "ᴄ": "c", "ᴏ": "o", "ᴠ": "v", "ᴡ": "w", "ᴢ": "z", "ꜱ": "s",
}  # fmt: skip
TWINS: Final = str.maketrans(_TWIN_LETTERS)
ALIKE: Final = str.maketrans(
    {one: other.lower() for one, other in _TWIN_LETTERS.items()}
    | {
        "в": "b", "г": "r", "з": "3", "к": "k", "м": "m", "н": "h", "п": "n", "т": "t", "ь": "b",
        "ε": "e", "η": "n", "τ": "t", "χ": "x", "ω": "w", "β": "b", "μ": "u",
        "ᴀ": "a", "ʙ": "b", "ᴅ": "d", "ᴇ": "e", "ꜰ": "f", "ɢ": "g", "ʜ": "h", "ɪ": "i", "ᴊ": "j", "ᴋ": "k", "ᴍ": "m",
        "ɴ": "n", "ᴘ": "p", "ʀ": "r", "ᴛ": "t", "ᴜ": "u", "ʏ": "y", "ƚ": "l", "ƒ": "f",
        "ı": "i", "ʟ": "l", "ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ß": "b",
    }
)  # fmt: skip

_WORD: Final = re.compile(r"\w+")


def reads_as(word: str) -> str:
    """The ASCII word that a word of look-alike letters cannot be told from; empty where it can be, or is that word."""
    twin = word.translate(TWINS)
    return twin if twin != word and twin.isascii() and any(c.isalpha() for c in twin) else ""


def twin_words(text: str) -> tuple[str, ...]:
    """Words of letters from elsewhere that read as ASCII words, in a text that is not written in such letters.

    A text in Russian or Greek has short words of the kind; it has others too, which give away its script.
    """
    if text.isascii():
        return ()
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    scripts = {_script(word) for word in words if not reads_as(word)}
    return tuple(word for word in words if reads_as(word) and _is_disguised(word, scripts))


def _is_disguised(word: str, scripts: Collection[str]) -> bool:
    """Phonetic letters among ordinary ones, or nothing but letters of a script that nothing else is written in."""
    if _script(word) == "LATIN":
        return True
    return _script(word) not in scripts and not any(c.isascii() and c.isalpha() for c in word)


def _script(word: str) -> str:
    """The first word of the name of its first letter beyond ASCII: the script, near enough to tell two apart."""
    return next((_family(c) for c in word if not c.isascii() and c.isalpha()), "")


def _family(character: str) -> str:
    return re.split(r"[ -]", unicodedata.name(character, "").removeprefix("EXTENDED "), maxsplit=1)[0]


def odd_digits(text: str) -> tuple[str, ...]:
    """Digits that are not 0 to 9 where nothing else is in their script, or that stand in one number with 0 to 9.

    Full-width and mathematical ones are left out: they cannot be misread.
    """
    if text.isascii():
        return ()
    scripts = {_family(c) for c in set(text) if c.isalpha() and not c.isascii()}
    return tuple(
        dict.fromkeys(
            digit
            for word in _WORD.findall(text)
            for digit in word
            if _is_other(digit) and (_family(digit) not in scripts or any(c in "0123456789" for c in word))
        )
    )


def _is_other(character: str) -> bool:
    return character.isdecimal() and not unicodedata.normalize("NFKC", character).isascii()


_NUMBER_LIKE: Final = re.compile(r"(?<![\w.,'-])(?!O[0-9])[0-9OoIl]+(?:[.,'][0-9OoIl]+)*(?![\w'-])")
_ENOUGH_DIGITS: Final = 2


def letters_in_numbers(text: str) -> tuple[str, ...]:
    """Numbers in which a letter passes for a digit, such as 1O0 and l00: two digits or more, and O or l among them."""
    return tuple(
        dict.fromkeys(
            found[0]
            for found in _NUMBER_LIKE.finditer(text)
            if any(c.isalpha() for c in found[0]) and sum(c.isdigit() for c in found[0]) >= _ENOUGH_DIGITS
        )
    )


_TURNED: Final = re.compile("R[^L]*N")


def numbers_turned(text: str) -> bool:
    """Whether a line shows numbers in another order than it holds them, without any control character.

    That is so where a number follows letters that are read from right to left in a line that also has others, or
    where such a sign is no letter at all: the Hebrew hyphen before "00 1" makes it read "1 00".
    """
    return not text.isascii() and any(_line_turns(line) for line in text.splitlines())


def _line_turns(line: str) -> bool:
    if not any(unicodedata.bidirectional(c) in ("R", "AL") for c in line):
        return False
    classes = "".join(_direction(c) for c in line)
    foreign = any(c.isalpha() and _direction(c) == "R" for c in line)
    return bool(_TURNED.search(classes)) and ("L" in classes or not foreign)


def _direction(character: str) -> str:
    kind = unicodedata.bidirectional(character)
    return {"R": "R", "AL": "R", "L": "L", "EN": "N", "AN": "N"}.get(kind, "-")
