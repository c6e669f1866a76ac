"""Checkpoints are C2SP checkpoints in C2SP signed notes, byte for byte."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from audit.checkpoints import (
    Checkpoint,
    NoCheckpoint,
    NotSigned,
    PublicKey,
    file_name,
    opened,
    parse,
    parse_vkey,
    public_key,
    sign,
    verify_note,
)

TENANT = UUID("0190b7a6-0000-7000-8000-000000000002")
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
CHECKPOINT = Checkpoint(TENANT, 1204, bytes(range(32)), datetime(2026, 11, 30, 19, 15, tzinfo=UTC), "ab" * 32)
BODY = (
    "placet/0190b7a6-0000-7000-8000-000000000002\n"
    "1204\n"
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
    "time 2026-11-30T19:15:00Z\n"
    "head abababababababababababababababababababababababababababababababab\n"
)
SIGNATURE = "sb1G4xe1wF+trYtAR6TzQaJ6HyjuTG76wNTgMn8SnnZLxbNg6L0H/yC78eD53ti5+ffHVAXYQm8ilpD2CTVxWkD7SAg="
# The example of Go's golang.org/x/mod/sumdb/note, from which C2SP's signed note comes.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETERS_NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
    "\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)


def test_the_example_of_the_format_verifies() -> None:
    key = parse_vkey(PETER)
    assert key.name == "PeterNeumann"
    assert key.hash.hex() == "c74f20a3"
    assert key.vkey == PETER
    assert verify_note(PETERS_NOTE, key) == PETERS_NOTE.partition("\n\n")[0] + "\n"


def test_the_text_is_fixed_for_good() -> None:
    """Checkpoints are kept for years outside; changing a byte would make every one of them unreadable."""
    assert CHECKPOINT.text == BODY
    assert sign(CHECKPOINT, KEY) == BODY + f"\n— placet/signer {SIGNATURE}\n"
    assert public_key(KEY).vkey == "placet/signer+b1bd46e3+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
    assert file_name(TENANT, 1204) == "0190b7a6-0000-7000-8000-000000000002-000000001204.checkpoint"


def test_what_was_signed_is_read_again() -> None:
    assert opened(sign(CHECKPOINT, KEY), public_key(KEY)) == CHECKPOINT
    assert parse(BODY) == CHECKPOINT


def test_further_lines_are_signed_and_read() -> None:
    broken = Checkpoint(*_members(CHECKPOINT), ("break 1200 restored from the backup of Sunday",))
    assert opened(sign(broken, KEY), public_key(KEY)) == broken
    assert broken.breaks == "1200 restored from the backup of Sunday"
    assert CHECKPOINT.breaks == ""


def test_a_second_signature_does_not_disturb() -> None:
    other = "— witness.example/w AAAAAKqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqg==\n"
    assert opened(sign(CHECKPOINT, KEY) + other, public_key(KEY)) == CHECKPOINT


@pytest.mark.parametrize(
    ("before", "after"),
    [("1204", "1205"), ("19:15:00Z", "19:15:01Z"), ("head ab", "head ac"), ("AAEC", "AAED")],
)
def test_a_changed_text_is_not_signed(before: str, after: str) -> None:
    note = sign(CHECKPOINT, KEY).replace(before, after, 1)
    with pytest.raises(NotSigned):
        opened(note, public_key(KEY))


def test_another_key_has_not_signed_it() -> None:
    other = Ed25519PrivateKey.from_private_bytes(bytes(32))
    note = sign(CHECKPOINT, KEY)
    for key in (public_key(other), public_key(KEY, "placet/other"), PublicKey("placet/signer", bytes(32))):
        with pytest.raises(NotSigned):
            opened(note, key)
    with pytest.raises(NotSigned):
        opened(BODY, public_key(KEY))
    with pytest.raises(NotSigned):
        opened(f"{BODY}\n— placet/signer not base64\n", public_key(KEY))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1204", "01204"), ("1204", "-4"), ("1204", "1e3"), ("1204", "١٢"), ("Hh8=", "Hh9="), ("Hh8=", "Hg=="),
        ("19:15:00Z", "19:15:00"), ("19:15:00Z", "19:15:60Z"), ("11-30T", "11-3T"), ("placet/0190", "0190"),
        ("placet/0190b7a6", "placet/0190B7A6"), ("head ab", "head AB"), ("head ab", "ab"), ("1204\n", "1204\r\n"),
        ("time ", "time  "), (f"head {'ab' * 32}\n", ""),
    ],
)  # fmt: skip
def test_what_is_not_in_the_one_form_is_no_checkpoint(before: str, after: str) -> None:
    with pytest.raises(NoCheckpoint):
        parse(BODY.replace(before, after, 1))


def test_nothing_is_signed_that_nobody_can_read() -> None:
    for more in ("two\nlines", "", "break \u202e"):
        with pytest.raises(NoCheckpoint):
            sign(Checkpoint(*_members(CHECKPOINT), (more,)), KEY)


@pytest.mark.parametrize(
    "line",
    ["", "placet/signer", PETER.replace("c74f20a3", "c74f20a4"), PETER[:-4], "+c74f20a3+" + PETER[22:]],
)
def test_a_key_whose_parts_do_not_belong_together_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"key|base64"):
        parse_vkey(line)


def _members(checkpoint: Checkpoint) -> tuple[UUID, int, bytes, datetime, str]:
    return checkpoint.tenant, checkpoint.size, checkpoint.root, checkpoint.time, checkpoint.head
