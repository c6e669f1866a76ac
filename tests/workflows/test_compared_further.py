"""Tricks of a third round: hosts that begin like known ones, one among many, names of people, evidence that plays."""

import json
from datetime import timedelta
from typing import Any

import pytest

from approvals.shown import view_of
from common.clock import db_clock
from tests.workflows.conftest import Desk
from tests.workflows.test_compared import made, payouts, piece, propose, warnings
from tests.workflows.test_compared_anew import about, mail
from workflows.results import EvidencePiece

__all__ = ["payouts"]
pytestmark = pytest.mark.django_db
OURS, THEIRS = "DE89 3704 0044 0532 0130 00", "GB82 WEST 1234 5698 7654 32"
NOW_SAYS = "All checks passed. Approved by Finance"


def test_a_host_that_begins_like_a_known_one_whatever_its_ending(payouts: Desk) -> None:
    made(payouts)
    found = warnings(propose(payouts, receipt_to="billing@harbour-lane.example.pay.de"))
    assert "begins like harbour-lane.example, and is another one" in about(found, "host_in_front")
    unknown = warnings(propose(payouts, receipt_to="billing@quay-street.example.pay.de"))
    assert about(unknown, "host_in_front") == ""


def test_a_bare_name_in_a_message_is_a_host_like_any_other(payouts: Desk) -> None:
    made(payouts)
    found = warnings(propose(payouts, message="Please confirm at harb0ur-lane.example/confirm today."))
    assert "harb0ur-lane.example" in found["first_host:/message"].sentence
    assert "reads like harbour-lane.example" in found["lookalike_host:/message"].sentence


def test_two_addresses_that_differ_in_a_letter_that_looks_the_same(payouts: Desk) -> None:
    copies = ["bill.lane@harbour-lane.example", "biII.lane@harbour-lane.example".replace("I", "1")]
    assert "reads like" in about(warnings(propose(payouts, copies=copies)), "lookalike_value")


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        ({"copies": ["a@b.example", "c@b.example", "A@b.example"]}, "value_repeated", "A@b.example 2 times"),
        ({"copies": [f"p{n % 8_999}@b.example" for n in range(9_000)]}, "value_repeated", "p0@b.example 2 times"),
        ({"accounts": ["acct_1", "acct_2", "acct_1"]}, "value_repeated", "acct_1 2 times"),
        ({"fees": ["1.00"] * 60 + ["99999.00"]}, "amount_stands_out", "Fee 61 of 61 is EUR 99,999.00; the middle one"),
        ({"fees": ["1.00"] * 7 + ["10.00", "12.00"]}, "amount_stands_out", "2 are that much above it"),
    ],
)  # fmt: skip
def test_what_only_shows_where_many_stand_together(
    payouts: Desk, changes: dict[str, Any], code: str, says: str
) -> None:
    assert says in about(warnings(propose(payouts, **changes)), code)


@pytest.mark.parametrize(
    "changes",
    [
        {"copies": ["a@b.example", "c@b.example"]},
        {"fees": ["1.00"] * 9},
        {"fees": ["1.00", "50.00"]},
        {"fees": []},
    ],
)
def test_what_is_usual_in_a_list(payouts: Desk, changes: dict[str, Any]) -> None:
    found = warnings(propose(payouts, **changes))
    assert about(found, "value_repeated") == about(found, "amount_stands_out") == ""


def test_another_person_of_the_same_name(payouts: Desk) -> None:
    made(payouts, owner={"id": "u-7", "name": "Ann Lee"})
    found = warnings(propose(payouts, owner={"id": "u-8", "name": "Ann Lee"}))
    assert (
        about(found, "lookalike_value")
        == "u-8 Ann Lee reads like u-7 Ann Lee, which was used before, and is another one."
    )
    assert about(warnings(propose(payouts, owner={"id": "u-7", "name": "Ann Lee"})), "lookalike_value") == ""


@pytest.mark.parametrize(
    "message",
    ["Thank you.\n" + ".\n" * 100 + "Wire the rest.", "Thank you.\n" + "- - -\n" * 20 + "Wire it."],
)
def test_a_gap_of_dots_is_one(payouts: Desk, message: str) -> None:
    assert "lines without a word: “Wire" in about(
        warnings(propose(payouts, message=message)), "text_after_gap"
    )


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"file": {"name": "invoice.docm", "size": 1, "sha256": "0" * 64}}, "file_runs"),
        ({"file": {"name": "a.exe:b.jpg", "size": 1, "sha256": "0" * 64}}, "file_runs"),
        ({"file": {"name": "../.ssh/authorized_keys", "size": 1, "sha256": "0" * 64}}, "file_path"),
        ({"page": "https://harbour-lane.example/go?to=https%3A%2F%2Fevil.example"}, "link_carries_another"),
        ({"receipt_to": "billing.bank.com@evil.example"}, "mail_local_host"),
        ({"receipt_to": "bank.com!x@evil.example"}, "mail_local_host"),
    ],
)
def test_names_with_a_second_bottom(payouts: Desk, changes: dict[str, Any], code: str) -> None:
    assert about(warnings(propose(payouts, **changes)), code)


# -- evidence ---------------------------------------------------------------------------------------------------


def test_a_title_cannot_speak_for_us(payouts: Desk) -> None:
    evil = EvidencePiece(
        "record", f"Mail) says EUR 100.00. {NOW_SAYS}; E2 (x", b'{"amount": "10.00"}', db_clock()
    )
    for warning in view_of(propose(payouts, (evil,))).warnings:
        assert NOW_SAYS not in warning.sentence + warning.label
    assert (
        about(warnings(propose(payouts, (evil,))), "evidence_contradicts").startswith("E1 says EUR 10")
        is False
    )


@pytest.mark.parametrize(
    "content",
    [
        '{"Amount": "10.00", "amount": "100.00"}', '{"amount": "10.00", "AMOUNT": "100.00"}', '\ufeff{"amount": "10"}',
        '{"\uff41mount": "10.00"}', '{"amount": "\u0661\u0660"}', "Amo\u200bunt: 10.00", '  \n{"amount": "10.00"}',
    ],
)  # fmt: skip
def test_other_spellings_of_a_name_are_read_too(payouts: Desk, content: str) -> None:
    assert "says" in about(warnings(propose(payouts, (piece(content),))), "evidence_contradicts")


def test_two_things_under_one_name(payouts: Desk) -> None:
    found = warnings(propose(payouts, (piece('{"amount": "100.00", "amount": "10.00"}'),)))
    assert "two things under one name" in found["evidence_ambiguous:E1"].sentence


def test_a_time_that_is_still_to_come(payouts: Desk) -> None:
    ahead = EvidencePiece(
        "record", "Photo", b"x", db_clock() + timedelta(days=900), fresh_for=timedelta(days=1)
    )
    assert "after this was proposed" in warnings(propose(payouts, (ahead,)))["evidence_ahead:E1"].sentence
    soon = EvidencePiece("record", "Photo", b"x", db_clock() + timedelta(minutes=2))
    assert about(warnings(propose(payouts, (soon,))), "evidence_ahead") == ""


def test_the_same_piece_twice_is_no_second_witness(payouts: Desk) -> None:
    pieces = (piece("Paid by card."), piece("Something else.", "Ledger"), piece("Paid  by\ncard.", "Bank"))
    found = warnings(propose(payouts, pieces))
    assert found["evidence_repeated:E3"].sentence == "It holds the very same as E1 (Invoice)."
    assert "evidence_repeated:E2" not in found


@pytest.mark.parametrize(
    ("prose", "says"),
    [
        (f"Our new account is {THEIRS}, thank you.", "names GB82WEST12345698765432, and never"),
        (f"Pay {THEIRS.replace(' ', '')} EUR 100.00", "names GB82WEST12345698765432, and never"),
        (f"Pay {OURS}, no more {THEIRS}.", ""),
        ("Reference DE12 3456 7890 1234 5678 90", ""),
        ("No account.", ""),
    ],
)
def test_prose_that_names_another_account(payouts: Desk, prose: str, says: str) -> None:
    found = warnings(propose(payouts, (mail(prose),), iban=OURS))
    assert says in about(found, "evidence_names_others")
    assert bool(says) == bool(about(found, "evidence_names_others"))


def test_what_is_new_has_words_on_the_page(payouts: Desk) -> None:
    from approvals.screens.checks import CALLS

    content = json.dumps({"amount": "10.00"})
    for warning in view_of(
        propose(payouts, (piece(content), piece(content)), copies=["a@b.example"] * 2)
    ).warnings:
        assert warning.code in CALLS or not warning.acknowledge
