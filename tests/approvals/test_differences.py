"""A newer version beside the one before: field by field, texts by their words, lists by what is in them."""

from html import unescape
from typing import Any

import pytest
from django.test import Client

from approvals.enums import ProposalStatus
from approvals.models import Proposal
from approvals.screens.changes import Change, difference_rows
from approvals.shown import view_of
from common.disclosure import Recipient
from common.models import Tenant
from tests import factories
from tests.approvals.test_pages import make, nine_thousand, view
from tests.approvals.test_views import desk, page_of, reviewer, tenant

__all__ = ["desk", "reviewer", "tenant"]
pytestmark = pytest.mark.django_db


def next_version(tenant: Tenant, before: dict[str, Any], after: dict[str, Any]) -> Proposal:
    old = make(tenant, view(**before), status=ProposalStatus.SUPERSEDED)
    run = factories.make_run(tenant)
    step = factories.make_step(run, status="waiting")
    document = view(**after)
    return factories.make_proposal(
        run, step, view=document.to_bytes(), view_digest=document.digest, supersedes=old, version=2
    )  # fmt: skip


def rows_of(
    tenant: Tenant, before: dict[str, Any], after: dict[str, Any], *, personal: bool = True
) -> list[Change]:
    proposal = next_version(tenant, before, after)
    return list(difference_rows(proposal, view_of(proposal), to=Recipient(tenant.pk, personal)))


def changed(runs: tuple[tuple[str, bool], ...]) -> list[str]:
    return [text for text, differs in runs if differs]


def test_only_the_words_that_differ_are_marked(tenant: Tenant) -> None:
    (row,) = rows_of(tenant, {"subject": "parcel 1 of order 1042"}, {"subject": "parcel 2 of order 1042"})
    assert (row.record, row.field) == ("Subject", "")
    assert (changed(row.was), changed(row.becomes)) == (["1"], ["2"])
    assert "".join(text for text, _ in row.becomes) == "parcel 2 of order 1042"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("Pay Ann", "Pay\u200b Ann", "⟦U+200B⟧"),
        ("Pay Ann", "Pay Ann ", "·"),
        ("Pay paypal", "Pay p\u0430ypal", "p\u0430ypal"),
        ("caf\u00e9", "cafe\u0301", "cafe\u0301"),
        ("Pay  Ann", "Pay Ann", " "),
    ],
)
def test_a_change_of_what_cannot_be_seen_is_seen(tenant: Tenant, before: str, after: str, shown: str) -> None:
    (row,) = rows_of(tenant, {"subject": before}, {"subject": after})
    assert shown in changed(row.becomes)


def test_long_texts_are_told_line_by_line(tenant: Tenant) -> None:
    lines = [f"Line {n} of the letter." for n in range(400)]
    after = [
        *lines[:3],
        "Line 3 of this letter.",
        *lines[4:300],
        *lines[301:],
        "P.S. Wire EUR 99,999 to acct_evil.",
    ]
    rows = rows_of(tenant, {"message": "\n".join(lines)}, {"message": "\n".join(after)})
    told = {row.field: (changed(row.was), changed(row.becomes)) for row in rows}
    assert told["line 4"] == (["the"], ["this"])
    assert told["line 301 before"] == (["Line 300 of the letter.↵"], [])
    assert any("P.S. Wire EUR 99,999 to acct_evil." in "".join(becomes) for _, becomes in told.values())
    assert len(rows) <= 4


def test_a_difference_at_the_end_of_a_long_line_is_not_cut_off(tenant: Tenant) -> None:
    words = "the same words again and again " * 60
    (row,) = rows_of(tenant, {"message": words + "EUR 10"}, {"message": words + "EUR 10000"})
    assert changed(row.becomes) == ["10000"]
    shown = "".join(text for text, _ in row.becomes)
    assert "characters that are the same⟧" in shown
    assert len(shown) < 400


def test_a_text_that_is_new_altogether_is_told_by_its_size(tenant: Tenant) -> None:
    rows = rows_of(tenant, {"message": ""}, {"message": "x\n" * 5_000})
    assert len(rows) <= 61
    assert "more lines differ" in rows[-1].before or "lines" in rows[0].after


def test_lists_are_told_by_what_was_added_and_taken_away(tenant: Tenant) -> None:
    many = nine_thousand()[:300]
    rows = rows_of(tenant, {"recipients": many}, {"recipients": ["mallory@evil.example", *many[1:]]})
    assert [(row.record, row.field) for row in rows] == [("Recipient", "added"), ("Recipient", "taken away")]
    assert changed(rows[0].becomes) == ["mallory@evil.example"]
    assert changed(rows[0].was) == []


def test_the_stranger_among_many_new_values_comes_first(tenant: Tenant) -> None:
    rows = rows_of(tenant, {"recipients": nine_thousand()[:60]}, {"recipients": nine_thousand()[-600:]})
    assert changed(rows[0].becomes) == ["mallory@evil.example"]
    assert (rows[-1].before, rows[-1].after) == ("60 taken away in all", "600 added in all")


def test_another_order_is_a_difference_too(tenant: Tenant) -> None:
    (row,) = rows_of(tenant, {"recipients": nine_thousand()[:3]}, {"recipients": nine_thousand()[2::-1]})
    assert row.was == (("the same values in another order", False),)


def test_equal_versions_have_no_difference(tenant: Tenant) -> None:
    assert rows_of(tenant, {"message": "x" * 3_000}, {"message": "x" * 3_000}) == []


def test_the_page_shows_it_with_its_marks(desk: Client, tenant: Tenant) -> None:
    html = unescape(page_of(desk, next_version(tenant, {"subject": "Pay 10"}, {"subject": "Pay 99"})))
    assert "Since the earlier version" in html
    assert "Pay <del>10</del>" in html
    assert "Pay <ins>99</ins>" in html
