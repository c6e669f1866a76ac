"""What a reader sees of a text: nothing hidden, nothing reordered, and exactly the text that is bound."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.display import (
    Piece,
    codes_of,
    explained,
    flags_of,
    hidden_kind,
    mixed_words,
    pieces,
    unveil,
    visible,
)
from common.hosts import HostRefused, ascii_host, notes_on

HIDING = (
    "\u200b\u202e\u2066\u00ad\u00a0\u2028\u2800\u3164\ufe0f\ue000\x1b\x85\U000e0068\U000e0100\ufeff\u034f\r"
)
ANY_TEXT = st.text(st.characters(codec="utf-8")) | st.text(HIDING + "ab \n\t⟦⟧↵⇥·U+0", max_size=20)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Pay 10 EUR to Ann", "Pay 10 EUR to Ann"),
        ("Pay \u202e00001\u202c EUR", "Pay ⟦U+202E⟧00001⟦U+202C⟧ EUR"),
        ("a\n\nb", "a↵\n↵\nb"),
        ("a\tb", "a⇥b"),
        ("  pay  10 ", "··pay··10·"),
        ("a \n b", "a·↵\n·b"),
        ("a\r\nb", "a⟦U+000D⟧↵\nb"),
        ("ok\U000e0068", "ok⟦U+E0068⟧"),
        ("⟦U+202E⟧", "⟦U+27E6⟧U+202E⟦U+27E7⟧"),
        ("↵·⇥", "⟦U+21B5⟧⟦U+00B7⟧⟦U+21E5⟧"),
        ("<b>&amp;", "<b>&amp;"),
        ("שלום 100", "שלום 100"),
        ("", ""),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert unveil(shown) == text


@given(ANY_TEXT)
def test_what_is_shown_is_what_is_bound(text: str) -> None:
    shown = visible(text)

    assert unveil(shown) == text
    assert "".join(piece.text for piece in pieces(shown)) == shown
    assert not any(hidden_kind(character) for character in shown)


@given(ANY_TEXT, ANY_TEXT)
def test_two_texts_never_look_the_same_by_our_signs(one: str, other: str) -> None:
    assert (visible(one) == visible(other)) == (one == other)


@given(st.characters(codec="utf-8"))
def test_no_control_format_or_space_character_is_ever_shown(character: str) -> None:
    category = unicodedata.category(character)

    if category in ("Cc", "Cf", "Zs", "Zl", "Zp", "Co", "Cn") and character not in " \n\t":
        assert visible(character) == f"⟦U+{ord(character):04X}⟧"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("Pay 10 EUR", set()),
        ("a\u202eb", {"bidi_control"}),
        ("a\u200bb\u2060", {"invisible"}),
        ("a\U000e0041", {"tag_chars"}),
        ("a\ufe0f", {"variation_selector"}),
        ("a\u3164b", {"blank_letter", "nfkc_differs"}),
        ("\x1b[2Kok\x07", {"ansi_escape", "control"}),
        ("p\u0430ypal", {"mixed_script"}),
        ("東京タワー と Tokyo東京", set()),
        ("Москва and Paris", set()),
        ("cafe\u0301", {"not_nfc"}),
        ("a\u0300\u0301\u0302\u0303", {"stacked_marks", "not_nfc"}),
        ("￼\ue000", {"private_use"}),
        ("a\u0378", {"unassigned"}),
        ("-5", {"formula_like"}),
        ("a\n=1", set()),
        ("[a](b) ![c](d)", {"markdown_link", "markdown_image"}),
        ("{{ x }}", {"template_like"}),
        ("&#x202e;", {"html_entity"}),
        ("a & b; c", set()),
        ("a < b", set()),
        ("\n" * 12, {"many_lines"}),
        ("\n" * 11, set()),
        ("x" * 1001, {"long_text"}),
        ("שלום", {"rtl_text"}),
    ],
)
def test_codes(text: str, codes: set[str]) -> None:
    assert codes_of(text) == codes
    assert {flag.code for flag in flags_of(text)} == codes


def test_what_deceives_must_be_acknowledged_and_what_is_odd_need_not() -> None:
    needed = {flag.code: flag.acknowledge for flag in flags_of("\u202e p\u0430y  <b>\u200b שלום")}

    assert needed == {
        "bidi_control": True,
        "invisible": True,
        "mixed_script": True,
        "rtl_text": False,
        "html_like": False,
        "whitespace": False,
    }


def test_an_emoji_in_colour_needs_no_acknowledgement() -> None:
    (flag,) = flags_of("❤\ufe0f thanks")
    (hidden,) = flags_of("❤\ufe0f\ufe0e\ufe0f thanks")

    assert (flag.code, flag.acknowledge) == ("variation_selector", False)
    assert (hidden.code, hidden.acknowledge) == ("variation_selector", True)


def test_odd_letters_are_named_in_plain_sight() -> None:
    assert mixed_words("to p\u0430ypal and Москва") == ("p\u0430ypal",)
    assert explained("p\u0430ypal") == ("p\u0430⟦U+0430⟧ypal: CYRILLIC SMALL LETTER A",)


def test_an_explanation_hides_nothing_either() -> None:
    (line,) = explained("p\u0430\ufe0fy")

    assert line == "p\u0430⟦U+0430⟧⟦U+FE0F⟧y: CYRILLIC SMALL LETTER A"


def test_pieces_name_what_they_mark() -> None:
    assert pieces("p\u0430y⟦U+202E⟧··↵\nx") == (
        Piece("text", "p"),
        Piece("odd", "\u0430", "CYRILLIC SMALL LETTER A"),
        Piece("text", "y"),
        Piece("cp", "⟦U+202E⟧", "RIGHT-TO-LEFT OVERRIDE"),
        Piece("ws", "··↵"),
        Piece("text", "\nx"),
    )


def test_a_host_is_shown_as_punycode_and_explained() -> None:
    sub, flags = notes_on(ascii_host("аррӏе.com"))

    assert "U+0430" in sub[0]
    assert [flag.code for flag in flags] == ["idn_host", "lookalike_host"]
    assert "apple.com" in flags[1].sentence
    assert all(flag.acknowledge for flag in flags)


def test_an_honest_international_host_has_no_twin() -> None:
    assert [flag.code for flag in notes_on(ascii_host("münchen.example"))[1]] == ["idn_host"]
    assert notes_on("example.com") == ((), ())


@given(st.text(st.characters(codec="utf-8"), max_size=12).map(lambda text: text + ".example"))
def test_any_host_is_refused_or_plain_ascii(host: str) -> None:
    try:
        name = ascii_host(host)
    except HostRefused:
        return
    assert name.isascii()
    assert name == name.lower()
    assert ascii_host(name) == name
