"""Links inside texts: whose host they lead to, and what is not as it seems."""

import pytest

from common.hosts import likeness
from common.textlinks import links_in


@pytest.mark.parametrize(
    ("text", "host", "codes"),
    [
        ("see https://pay.example.com/x.", "pay.example.com", []),
        ("https://pay.example.com@evil.example/confirm", "evil.example", ["link_userinfo"]),
        ("https://user:pay.example.com@evil.example", "evil.example", ["link_userinfo"]),
        ("https:\\\\evil.example\\@pay.example.com", "evil.example", []),
        ("http://127.0.0.1/admin", "127.0.0.1", ["link_ip_literal"]),
        ("http://2130706433/", "2130706433", ["link_ip_literal"]),
        ("http://0x7f.1/", "0x7f.1", ["link_ip_literal"]),
        ("http://[::1]/", "[::1]", ["link_ip_literal"]),
        ("https://pay.example.com./x", "pay.example.com", ["link_trailing_dot"]),
        ("HTTPS://Pay.Example.COM:8443/x", "pay.example.com", []),
    ],
)  # fmt: skip
def test_a_plain_link(text: str, host: str, codes: list[str]) -> None:
    (link,) = links_in(text)
    assert link.host == host
    assert [trick.code for trick in link.tricks] == codes


@pytest.mark.parametrize(
    "text",
    [
        "[pay.example.com](https://evil.example/x)",
        '<a href="https://evil.example/x">https://pay.example.com</a>',
        "<A HREF=https://evil.example/x class=y><b>pay.example.com</b></A>",
    ],
)
def test_words_that_name_another_host(text: str) -> None:
    tricks = [trick for link in links_in(text) for trick in link.tricks]
    assert [trick.code for trick in tricks] == ["link_other_host"]
    assert "pay.example.com leads to evil.example" in tricks[0].sentence


@pytest.mark.parametrize(
    "text",
    [
        "[here](https://pay.example.com)",
        "[example.com](https://pay.example.com/x)",
        "a [b](c) d",
        "no link at all",
    ],
)
def test_words_that_do_not(text: str) -> None:
    assert [trick for link in links_in(text) for trick in link.tricks] == []


@pytest.mark.parametrize(
    "text", ["[x](javascript:alert(1))", "data:text/html,<b>", "open file:///etc/passwd"]
)
def test_links_that_run_something(text: str) -> None:
    assert "link_scheme" in [trick.code for link in links_in(text) for trick in link.tricks]


def test_prose_is_no_link() -> None:
    assert links_in("The order data: 5 pieces. JavaScript: a language.") == ()


def test_a_text_full_of_links_is_read_to_a_bound() -> None:
    assert len(links_in("https://a.example " * 5_000)) == 200


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("acct_l2345", "acct_12345"),
        ("Harbour Lane ", "harbour  lane"),
        ("xn--hrbour-lane-yij.example", "harbour-lane.example"),
        ("rnicro.example", "micro.example"),
        ("p\u0430ypal", "paypal"),
        ("pay\u200bpal", "paypal"),
        ("ＰａｙＰａｌ", "paypal"),
    ],
)
def test_what_reads_alike(one: str, other: str) -> None:
    assert likeness(one) == likeness(other)


@pytest.mark.parametrize(
    ("one", "other"), [("1001", "1010"), ("harbour.example", "harbours.example"), ("a", "b")]
)
def test_what_does_not(one: str, other: str) -> None:
    assert likeness(one) != likeness(other)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("https://аррӏе.com/x", "lookalike_host"),
        ("https://xn--80ak6aa92e.com", "lookalike_host"),
        ("https://bank.com.evil.example/login", "host_in_front"),
        ("www.bank.com.evil.example", "host_in_front"),
        ("write to pay@аррӏе.com", "lookalike_host"),
        ("[https://bank.example](//evil.example)", "link_other_host"),
        ("[bank.example][1]\n\n[1]: https://evil.example", "link_other_host"),
        ("[bank.example]\n\n[Bank.example]: <https://evil.example>", "link_other_host"),
        ('<a style="' + "x" * 900 + '" href="https://evil.example">bank.example</a>', "link_other_host"),
        ("https://bank.example\u2044login.evil.example", "link_no_host"),
        ("https://bank.example\u2215@evil.example", "link_userinfo"),
    ],
)
def test_more_links_that_are_not_what_they_seem(text: str, code: str) -> None:
    assert code in {trick.code for link in links_in(text) for trick in link.tricks}


@pytest.mark.parametrize(
    "text",
    [
        "see www.pay.example.com/x", "write to pay@harbour-lane.example", "[1] and [2]\n\n[1]: https://a.example",
        "[docs](/help) and [more](help.html)", "a@b", "f([x][y])",
    ],
)  # fmt: skip
def test_what_is_as_it_seems(text: str) -> None:
    assert [trick for link in links_in(text) for trick in link.tricks] == []


def test_texts_of_nothing_but_beginnings_of_links_are_read_to_their_end() -> None:
    for text in (
        "<a " * 20_000,
        "[a]" * 20_000,
        "[a](" * 15_000,
        "a@" * 30_000,
        "a." * 30_000 + "@b",
        "http://" * 9_000,
    ):
        assert len(links_in(text)) <= 200


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Pay at harb0ur-lane.example/confirm now", "harb0ur-lane.example"),
        ("Pay at evil.com.", "evil.com"),
        ("evil.example:8443/pay", "evil.example"),
        ('<a href="https&#58;//evil.example">our bank</a>', "evil.example"),
        ("[our bank](https&colon;//evil.example)", "evil.example"),
        ("https://%65vil.example/", "evil.example"),
    ],
)
def test_a_link_that_a_mail_program_makes(text: str, host: str) -> None:
    assert host in {link.host for link in links_in(text)}


@pytest.mark.parametrize(
    "text",
    [
        "Thank you.It is on its way.", "See invoice.pdf, main.rs, e.g. this, and/or that. v1.2 costs 10.00 EUR.",
        "a.b.c", "It is so.in short, yes.no.", "write to ann@harbour-lane.com",
    ],
)  # fmt: skip
def test_words_with_dots_are_no_links(text: str) -> None:
    assert links_in(text) == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('<a href=" https://evil.example">bank.example</a>', "link_other_host"),
        ('<a href="https&#58;//evil.example">bank.example</a>', "link_other_host"),
        ("[bank.example](https&colon;//evil.example)", "link_other_host"),
        ("[[bank.example]](https://evil.example)", "link_other_host"),
        ('<a href="java\nscript:alert(1)">x</a>', "link_scheme"),
        ('<a href="&#x6a;avascript:alert(1)">x</a>', "link_scheme"),
        ("ms-word:ofe|u|https://evil.example/x", "link_scheme"),
        ("\\\\evil.example\\share", "link_scheme"),
        ("smb://evil.example/x", "link_scheme"),
        ("intent://evil.example#Intent;end", "link_scheme"),
        ("https://bank%2eexample/x", "link_host_encoding"),
        ("https://bank.example/go?to=https://evil.example", "link_carries_another"),
        ("https://bank.example/go?to=https%3A%2F%2Fevil.example", "link_carries_another"),
        ("https://bank.example/go?to=https%253A%252F%252Fevil.example", "link_carries_another"),
        ("https://bank.example/go?to=//evil.example/x", "link_carries_another"),
        ("write to user%bank.com@evil.example", "mail_local_host"),
        ("write to billing.bank.com@evil.example", "mail_local_host"),
    ],
)
def test_links_with_a_second_bottom(text: str, code: str) -> None:
    assert code in {trick.code for link in links_in(text) for trick in link.tricks}


def test_a_link_that_carries_one_to_itself_is_plain() -> None:
    for text in (
        "https://a.example/go?to=https://a.example/x",
        "https://a.example/b//c",
        "https://a.example/?q=//",
    ):
        assert [trick for link in links_in(text) for trick in link.tricks] == []
