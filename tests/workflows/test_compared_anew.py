"""What comparing finds in what is written to get past it: gaps, floods, other currencies, prose and odd spellings."""

from typing import Any

import pytest

from approvals.contradictions import differs
from approvals.viewdoc import ViewWarning
from common.clock import db_clock
from tests.workflows.conftest import Desk
from tests.workflows.test_compared import made, payouts, piece, propose, warnings
from workflows.results import EvidencePiece

__all__ = ["payouts"]
pytestmark = pytest.mark.django_db


def mail(words: str, **more: Any) -> EvidencePiece:
    return EvidencePiece("message", "Mail", words.encode(), db_clock(), **more)


def about(found: dict[str, ViewWarning], code: str) -> str:
    """The sentence of the one warning with this code; empty where there is none."""
    return next((warning.sentence for warning in found.values() if warning.code == code), "")


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (
            "Thank you.\n" + "\n" * 3000 + "P.S. EUR 99,999.00 to acct_evil.",
            "3,000 empty lines: “P.S. EUR 99,999.00",
        ),
        ("Thank you.\n" + " \t\n" * 9 + "Delete it.", "9 empty lines: “Delete it.”"),
        ("Thank you." + " " * 900 + "Delete it.", "900 spaces: “Delete it.”"),
        ("Thank you." + "\u2800\n" * 20 + "Delete\nit.", "“Delete it.”"),
        ("Thank you." + "\u3164" * 60 + "Delete it.", "60 spaces: “Delete it.”"),
    ],
)
def test_a_text_that_goes_on_after_a_gap(payouts: Desk, message: str, says: str) -> None:
    assert says in about(warnings(propose(payouts, message=message)), "text_after_gap")


@pytest.mark.parametrize(
    "message",
    [
        "One.\n\n\nTwo.\n\n\n\nThree.", "Thank you.\n" + "\n" * 50, "\n" * 50 + "Late.", "a" + " " * 20 + "b",
        "x\n" * 900,
    ],
)  # fmt: skip
def test_paragraphs_and_empty_ends_are_no_gap(payouts: Desk, message: str) -> None:
    assert about(warnings(propose(payouts, message=message)), "text_after_gap") == ""


def test_one_look_alike_behind_a_flood_of_hosts(payouts: Desk) -> None:
    copies = [f"p{n}@customer{n % 300:03d}x{n % 7}.example" for n in range(1200)]
    copies[700:700] = ["p@harb0ur-lane.example"]
    found = warnings(propose(payouts, copies=copies))
    said = " ".join(warning.sentence for warning in found.values() if warning.code == "lookalike_host")
    assert "harb0ur-lane.example" in said
    assert "were compared with earlier actions" in about(found, "not_compared")


def test_a_known_host_is_found_behind_a_flood(payouts: Desk) -> None:
    made(payouts, receipt_to="billing@quay-street.example")
    copies = [f"p{n}@customer{n % 230:03d}a.example" for n in range(1150)]
    copies[700:700] = ["p@quay-5treet.example"]
    assert "quay-street.example" in about(
        warnings(propose(payouts, copies=copies, receipt_to="billing@quay-street.example")), "lookalike_host"
    )


def test_a_currency_that_was_never_paid_in(payouts: Desk) -> None:
    for _ in range(8):
        made(payouts, amount="100.00")
    found = warnings(propose(payouts, amount="100.00", currency="KWD"))
    assert about(found, "currency_unusual") == "The last 8 that were made were in EUR. This one is in KWD."
    assert about(warnings(propose(payouts, amount="100.00")), "currency_unusual") == ""


def test_too_few_make_no_usual_currency(payouts: Desk) -> None:
    for _ in range(7):
        made(payouts, amount="100.00")
    assert about(warnings(propose(payouts, amount="100.00", currency="USD")), "currency_unusual") == ""


@pytest.mark.parametrize(
    "content",
    [
        "Amount: 1.000,00 EUR", "- **Amount**: EUR 10", "Amount:10.00", "Amount = 10.00", "| Amount: 10 |",
        "Amount: €10.00", "Amount: £100.00", "Amount: ١٠", "Amount: 100.00\nAmount: 999.00", "Amount: 1'000.00",
    ],
)  # fmt: skip
def test_spellings_of_another_amount(payouts: Desk, content: str) -> None:
    found = warnings(propose(payouts, (piece(content),), amount="100.00"))
    assert "says" in about(found, "evidence_contradicts")


@pytest.mark.parametrize(
    "content", ["Amount: 100,00 EUR", "Amount: €100", "Amount: 100.00 $", "Amount: ١٠٠", "**Amount:** 100.00"]
)
def test_spellings_of_the_same(payouts: Desk, content: str) -> None:
    found = warnings(propose(payouts, (piece(content),), amount="100.00"))
    assert about(found, "evidence_contradicts") == about(found, "evidence_names_others") == ""


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("1.000", "1000", False), ("1.000", "1.000", False), ("1.000", "1", False), ("1,000", "1", True),
        ("1.000,00", "1000.00", False), ("1.000,00", "1.00", True), ("12.345.678", "12345678", False),
        ("1,5", "1.50", False), ("EUR 5", "USD 5", True), ("$5", "USD 5", False), ("€5", "USD 5", True),
        ("5 to 7", "5", False), ("100", "-100", True), ("1 000,50", "1000.50", False),
    ],
)  # fmt: skip
def test_how_amounts_are_read(one: str, other: str, apart: bool) -> None:
    assert differs("money", one, other) is apart
    assert differs("money", other, one) is apart


@pytest.mark.parametrize(
    ("prose", "says"),
    [
        ("I paid EUR 40.00 and want 40.00 EUR back.", "names EUR 40.00, 40.00 EUR, and never EUR 100.00"),
        ("Please send me 1.000,00 € back!", "names 1.000,00 €, and never"),
        ("Two were EUR 10, EUR 20, EUR 30 and EUR 40.", "names EUR 10, EUR 20, EUR 30 and more, and never"),
    ],
)
def test_prose_that_never_names_the_amount(payouts: Desk, prose: str, says: str) -> None:
    assert says in about(warnings(propose(payouts, (mail(prose),), amount="100.00")), "evidence_names_others")


@pytest.mark.parametrize(
    "prose",
    [
        "I paid EUR 140.00 and want EUR 100 back.", "Please send 100,00 € back.", "It was USD 40.00.",
        "Order 1042, 3 EUR-like",
        "In 2024 I had 3 parcels.", "", "No amount.", "ISBN 40 and 50 and ABC 40",
    ],
)  # fmt: skip
def test_prose_that_does_or_is_about_something_else(payouts: Desk, prose: str) -> None:
    found = warnings(propose(payouts, (mail(prose),), amount="100.00"))
    assert about(found, "evidence_names_others") == ""


def test_words_of_people_are_not_repeated_in_the_checklist(payouts: Desk) -> None:
    private: dict[str, Any] = {"data_class": "personal"}
    found = warnings(propose(payouts, (mail("I want EUR 40.00.", **private),), amount="100.00"))
    assert about(found, "evidence_names_others") == "E1 (Mail) names other amounts, and never this one."


def test_rules_and_records_name_other_amounts_too(payouts: Desk) -> None:
    found = warnings(
        propose(payouts, (piece("Up to EUR 50.00 by one person, up to EUR 500.00 by two."),), amount="100.00")
    )
    assert about(found, "evidence_names_others") == ""
