"""Letters, digits and marks that read as something else: which texts say so, and which honest ones do not."""

import pytest

from common.display import codes_of, explained, flags_of, unveil, visible
from common.hosts import ascii_host, likeness, notes_on


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Pay to РауРаӏ", "lookalike_word"),
        ("ΑΒΝ bank", "lookalike_word"),
        ("p\u0251ypal", "lookalike_word"),
        ("ꓑꓮꓬ", "lookalike_word"),
        ("pay 1\u09ea0.00", "odd_digits"),
        ("pay \u0661\u0660\u0660 EUR", "odd_digits"),
        ("رقم \u06611", "odd_digits"),
        ("do n\u0336o\u0336t\u0336 pay", "overlay_marks"),
        ("pay 1\u20dd00", "overlay_marks"),
        ("a" + "\u0300" * 4, "stacked_marks"),
        ("ᴄᴏᴏᴠ", "lookalike_word"),
        ("Pay EUR 1O0.00", "letters_in_number"),
        ("Pay l00 EUR", "letters_in_number"),
        ("Pay 1,O00.00 EUR", "letters_in_number"),
        ("Pay \u05be00 1 EUR", "rtl_numbers"),
        ("Pay א 00 1 EUR", "rtl_numbers"),
        ("\u05be00 1", "rtl_numbers"),
    ],
)
def test_what_must_be_ticked(text: str, code: str) -> None:
    assert {flag.code: flag.acknowledge for flag in flags_of(text)}.get(code) is True


@pytest.mark.parametrize(
    "text",
    [
        "Привет, Москва", "Он и она", "Москва and Paris", "Αθήνα, και το", "ประเทศไทย ๒๕๖๗", "مرحبا ١٠٠ يورو",
        "Order A1O0-12, O2 and 10 l, acct_l2345, O365", "שלום 100 200", "100 שקל", "H2O, 2Oth-century",
        "１００円です", "Tiếng Việt ổn", "Łódź, İstanbul, ırmak, Ærø", "東京 2024", "café, naïve",
    ],
)  # fmt: skip
def test_what_honest_people_write(text: str) -> None:
    codes = {
        "lookalike_word",
        "odd_digits",
        "overlay_marks",
        "stacked_marks",
        "letters_in_number",
        "rtl_numbers",
    }
    assert not codes_of(text) & codes


def test_they_are_spelled_out() -> None:
    assert explained("Рау") == ("Р⟦U+0420⟧а⟦U+0430⟧у⟦U+0443⟧ reads as Pay",)
    assert explained("1O0") == ("1O0: the letter O",)
    assert explained("1\u09ea") == ("⟦U+09EA⟧ is BENGALI DIGIT FOUR, 4",)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("n\u0336o", "n⟦U+0336⟧o"),
        ("\u0301a", "⟦U+0301⟧a"),
        ("a \u0301b", "a ⟦U+0301⟧b"),
        ("e\u0301", "e\u0301"),
        ("a" + "\u0300" * 6, "a" + "\u0300" * 3 + "⟦U+0300⟧" * 3),
        ("\u0300\u0301", "⟦U+0300⟧⟦U+0301⟧"),
    ],
)
def test_marks_neither_strike_nor_cover_nor_join_what_is_before(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert unveil(shown) == text


@pytest.mark.parametrize(
    ("host", "front"),
    [
        ("bank.com.evil.example", "bank.com"),
        ("login.bank.org.evil.co.uk", "login.bank.org"),
        ("shop.com.au", ""),
        ("www.shop.com.au", ""),
        ("s3.amazonaws.com.cn", ""),
        ("www.net.example", ""),
    ],
)
def test_a_host_that_begins_like_another(host: str, front: str) -> None:
    sentences = [flag.sentence for flag in notes_on(ascii_host(host))[1] if flag.code == "host_in_front"]
    assert bool(sentences) == bool(front)
    assert not front or f"begins like {front}," in sentences[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [("ΒΑΝΚ", "bank"), ("ΝΟRΜΑ", "norma"), ("Łukasz", "Lukasz"), ("НМRС", "hmrc"), ("օne", "one")],
)
def test_capitals_of_other_scripts_read_as_their_twins(one: str, other: str) -> None:
    assert likeness(one) == likeness(other)


def test_a_text_of_nothing_but_marks_and_look_alikes_is_read_to_its_end() -> None:
    for text in ("\u0336" * 60_000, "а " * 30_000, "\u09ea1" * 30_000, "a\u0300" * 30_000, "⟦" * 60_000):
        assert unveil(visible(text)) == text
        assert len(explained(text)) <= 18
