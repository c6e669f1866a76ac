"""A receipt holds for one user, one proposal in one contract and view, one part, until decide-by."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import signing

from approvals.receipts import check, issue, parts_not_shown

AT = datetime(2026, 9, 19, 17, 0, tzinfo=UTC)
ABOUT: dict[str, Any] = {"user_id": 7, "proposal_id": "p-1", "digest": "a" * 64, "view_digest": "b" * 64}
TIMES: dict[str, Any] = {"now": AT + timedelta(minutes=5), "decide_by": AT + timedelta(hours=1)}


def receipt(**changes: Any) -> str:
    return issue(**{**ABOUT, "part": "main", "at": AT, **changes})


def reason(given: object, **changes: Any) -> str:
    result = check(given, **{**ABOUT, **TIMES, "part": "main", **changes})
    assert bool(result) == (result.reason == "")
    return result.reason


def test_a_receipt_holds_for_what_it_was_issued_for() -> None:
    assert reason(receipt()) == ""


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"user_id": 8}, "other_user"),
        ({"proposal_id": "p-2"}, "other_proposal"),
        ({"digest": "c" * 64}, "other_digest"),
        ({"view_digest": "c" * 64}, "other_view"),
        ({"part": "part-message"}, "other_part"),
    ],
)
def test_it_holds_for_nothing_else(changes: dict[str, Any], expected: str) -> None:
    assert reason(receipt(**changes)) == expected


def test_it_ends_with_decide_by() -> None:
    last = TIMES["decide_by"] - timedelta(microseconds=1)

    assert reason(receipt(), now=last) == ""
    assert reason(receipt(), now=TIMES["decide_by"]) == "expired"


def test_a_receipt_from_the_future_is_not_accepted() -> None:
    assert reason(receipt(at=TIMES["now"] + timedelta(seconds=1))) == ""
    assert reason(receipt(at=TIMES["now"] + timedelta(seconds=3))) == "early"


@pytest.mark.parametrize("given", [None, 7, "", b"x", ["x"], "x" * 5000])
def test_what_is_no_receipt_is_malformed(given: object) -> None:
    assert reason(given) == "malformed"


def test_every_change_of_a_receipt_is_noticed() -> None:
    whole = receipt()

    for index in range(len(whole)):
        changed = whole[:index] + ("A" if whole[index] != "A" else "B") + whole[index + 1 :]
        assert reason(changed) in ("forged", "malformed")
    assert reason("nonsense") == "forged"
    assert reason(whole + "\ud800") == "malformed"


def test_a_signature_made_for_something_else_is_forged() -> None:
    claim = ["7", "p-1", "a" * 64, "b" * 64, "main", AT.isoformat()]

    assert reason(signing.Signer(salt="another").sign_object(claim)) == "forged"


def test_the_parts_without_a_receipt_are_listed() -> None:
    given = [receipt(), receipt(part="part-a", user_id=8), receipt(part="part-b"), "nonsense", None]

    assert parts_not_shown(given, ["main", "part-a", "part-b", "part-c"], **ABOUT, **TIMES) == (
        "part-a",
        "part-c",
    )
    assert parts_not_shown([], ["main"], **ABOUT, **TIMES) == ("main",)


def test_ids_may_be_of_any_type_that_has_a_text() -> None:
    assert reason(receipt(user_id="7")) == ""
