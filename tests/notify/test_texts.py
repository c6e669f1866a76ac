"""What leaves is one line of what it is: nothing hidden in it, nothing that a program takes for its own."""

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notify.letters import Entry, Reader, letter
from notify.models import Message
from notify.rooms import body_of
from notify.texts import for_chat, for_mail, grouped, one_line
from tests import rows

HOSTILE = [
    "Pay\r\nBcc: everybody@evil.example\r\n\r\nhello",
    "Pay \u202e00.1 RUE\u202c",
    "<b onclick=x>Pay</b><img src=https://evil.example/p.png>",
    "Pay https://evil.example/login and www.evil.example javascript:alert(1)",
    "<!channel> <https://evil.example|the usual page> @all &amp;",
    "Pay\u2028Subject: no\u200b\x00\x1b[31m",
    "\u202e" * 300,
    "=?utf-8?q?Pay?= [link](https://evil.example)",
]


def message(lead: str, **fields: Any) -> Message:
    values: dict[str, Any] = {
        "kind": "asked", "subject_type": "proposal", "subject_id": uuid4(), "lead": one_line(lead), "facts": [],
        "digest": "ab" * 32, "href": "/review/", "created_at": rows.now(), "tenant_id": uuid4(),
    }  # fmt: skip
    return Message(**(values | fields))


READER = Reader(user_id=uuid4(), email="ada@post.example", zone="Europe/Berlin", tenant="harbour")


@pytest.mark.parametrize("lead", HOSTILE)
def test_hostile_words_are_inert_in_a_mail(lead: str) -> None:
    told = message(lead, facts=[[one_line(lead), one_line(lead)]])
    mail = letter(uuid4(), READER, [Entry(uuid4(), told)])
    wire = mail.message().as_bytes()
    head, _, _ = wire.partition(b"\n\n")
    for name in (b"bcc", b"cc"):
        assert b"\n" + name + b":" not in head.lower()
    assert head.lower().count(b"\nto:") + head.lower().startswith(b"to:") == 1
    parts = {part.get_content_type(): part.get_payload(decode=True).decode() for part in mail.message().walk()
             if not part.is_multipart()}  # fmt: skip
    for text in (*parts.values(), mail.subject):
        assert not set(text) & {"\u202e", "\u202c", "\u200b", "\x00", "\x1b", "\u2028"}
        assert "https://evil.example" not in text
        assert "javascript:" not in text
        assert "www.evil" not in text
    assert "<b onclick" not in parts["text/html"]
    assert "<img" not in parts["text/html"]
    assert "\n" not in mail.subject
    assert len(mail.subject) <= 200


@pytest.mark.parametrize("lead", HOSTILE)
def test_hostile_words_are_inert_in_a_room(lead: str) -> None:
    body = body_of(message(lead), "blocks")
    text = body["text"].splitlines()
    for said in (text[0], body["blocks"][0]["text"]["text"]):
        assert not set(said) & set("<>@\u202e\u200b")
        assert "https://" not in said


@given(st.text(max_size=400))
def test_one_line_is_one_line(text: str) -> None:
    said = one_line(text)
    assert len(said) <= 220
    assert "\n" not in said and "\r" not in said
    assert all(character.isprintable() for character in said)
    assert for_mail(text) == for_mail(said)
    assert not set(for_chat(text)) & set("<>@")


def test_digests_are_grouped() -> None:
    assert grouped("sha256:0123456789abcdef0000") == "0123 4567 89ab cdef"
    assert grouped("") == ""


def test_several_leave_as_one_list() -> None:
    entries = [Entry(uuid4(), message(f"Refund {number}")) for number in range(3)]
    mail = letter(uuid4(), READER, entries)
    assert mail.subject == "3 notices: Refund 0"
    assert [line for line in str(mail.body).splitlines() if line.startswith("Refund")] == [
        "Refund 0",
        "Refund 1",
        "Refund 2",
    ]


def test_times_are_the_readers_with_the_iso_time_beside() -> None:
    told = message("Refund", until=rows.now().replace(year=2026, month=7, day=1, hour=12, minute=0, second=5))
    text = str(letter(uuid4(), READER, [Entry(uuid4(), told)]).body)
    assert "Until: 2026-07-01 14:00 Europe/Berlin (2026-07-01T12:00:05Z)" in text
