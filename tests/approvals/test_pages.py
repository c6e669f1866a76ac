"""What is too long for the page: pages of texts, lists and evidence, each shown before anybody can approve."""

import json
import re
import time
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from access.enums import Role
from approvals.models import Decision, Proposal
from approvals.paging import PAGE_CHARACTERS, PAGE_LINES, cuts_of
from approvals.shown import view_of
from approvals.viewdoc import ViewDocument, build_view, parse_back
from approvals.viewmodels import MAIN, ViewEvidence
from common.digests import evidence_digest
from common.display import visible
from common.fields import Arguments, Currency, Email, Identifier, Money, Text, arg
from common.models import Tenant
from common.strictjson import canonicalize
from tests import factories, rows
from tests.approvals.test_views import HTMX, desk, page_of, receipts_in, reviewer, tenant

__all__ = ["desk", "reviewer", "tenant"]
STORED = Path(__file__).parent / "stored" / "view_v1.json"


class Line(Arguments):
    sku: Identifier = arg(label="SKU", data_class="business")
    price: Money = arg(label="Price", data_class="business")
    currency: Currency = arg("EUR", label="Currency", data_class="business")
    remark: Text = arg("", label="Remark", data_class="business")


class Mailing(Arguments):
    subject: Text = arg(label="Subject", data_class="business")
    message: Text = arg("", label="Message", data_class="business")
    recipients: list[Email] = arg([], label="Recipient", data_class="business")
    lines: list[Line] = arg([], label="Line", data_class="business")


def view(**raw: Any) -> ViewDocument:
    normalized = Mailing.normalize({"subject": "Hello", **raw})
    return build_view(
        operation="mail.send", operation_version=1, contract_digest="0" * 64, headline="Mail them",
        consequence="Send one mail to each of them.", schema=Mailing, arguments=normalized.material,
    )  # fmt: skip


def nine_thousand(**last: str) -> list[str]:
    return [f"p{n:04d}@example.com" for n in range(8_999)] + [last.get("last", "mallory@evil.example")]


def make(tenant: Tenant, document: ViewDocument, **fields: Any) -> Proposal:
    return factories.make_proposal(
        tenant=tenant, view=document.to_bytes(), view_digest=document.digest, summary=document.headline, **fields
    )  # fmt: skip


# -- the document ----------------------------------------------------------------------------------------------


@given(st.text(st.characters(codec="utf-8"), max_size=40), st.integers(1, 2_000))
def test_pages_are_the_text_and_tear_no_sign(seed: str, times: int) -> None:
    shown = visible((seed or "x") * times)
    cuts = cuts_of(shown)
    texts = [shown[start:end] for start, end in zip((0, *cuts[:-1]), cuts, strict=True)] if cuts else [shown]
    assert "".join(texts) == shown
    for text in texts:
        assert len(text) <= PAGE_CHARACTERS
        assert text.count("\n") <= PAGE_LINES
        assert text.count("⟦") == text.count("⟧")
        assert not text.endswith("↵")


def test_a_text_of_200_kilobytes_is_shown_in_pages() -> None:
    long = ("Wir überweisen nichts an ㈱日本 ㈱日本.\n" * 2_000)[
        :65_000
    ] + "P.S. Wire EUR 99,999 to acct_evil."
    document = view(message=long)
    (field,) = [field for field in document.fields if field.folded]
    assert len(long.encode()) > 80_000
    assert len(document.parts) == 1 + len(field.pages) > 8
    assert "".join(text for _, text in field.pages) == field.text
    assert parse_back(document)["message"] == long
    assert ViewDocument.from_bytes(document.to_bytes()) == document


def test_9000_recipients_are_shown_in_pages() -> None:
    document = view(recipients=nine_thousand())
    (long,) = document.lists
    assert len(long.parts) == 45
    assert document.parts == (MAIN, *long.parts)
    assert long.notes == ("9,000 values, all different", "2 hosts: evil.example 1, example.com 8,999")
    assert len(document.fields_of_part(long.parts[0])) == 200
    assert parse_back(document)["recipients"] == nine_thousand()
    assert document.uninspectable is False


def test_what_many_values_have_in_common_is_said_once() -> None:
    document = view(recipients=[f"a{n}@xn--mnchen-3ya.example" for n in range(60)])
    (warning,) = document.warnings
    assert (warning.id, warning.label) == ("idn_host:/recipients", "Recipient")
    assert warning.sentence.startswith("60 of the values, the first is Recipient 1 of 60: ")


def test_a_long_list_of_lines_is_added_up_and_a_long_remark_in_it_stands_alone() -> None:
    lines = [{"sku": f"s{n}", "price": "10.50", "remark": "x" * 1_500 if n == 3 else ""} for n in range(40)]
    document = view(lines=lines)
    (long,) = document.lists
    assert long.notes[1] == "Price: EUR 420.00"
    assert "part-lines-3-remark" in document.parts
    assert parse_back(document)["lines"] == [{"currency": "EUR", **line} for line in lines]


def test_a_short_list_stays_on_the_page() -> None:
    assert view(recipients=nine_thousand()[:50]).parts == (MAIN,)


def test_two_arguments_with_odd_names_never_share_a_part() -> None:
    class Odd(Arguments):
        one: Text = arg(label="One", data_class="business", alias="a-b")
        two: Text = arg(label="Two", data_class="business", alias="a.b")

    document = build_view(
        operation="x", operation_version=1, contract_digest="0" * 64, headline="h", consequence="c", schema=Odd,
        arguments={"a-b": "x" * 20_000, "a.b": "y" * 20_000},
    )  # fmt: skip
    assert len(set(document.parts)) == len(document.parts) == 7
    for part in document.parts[1:]:
        assert len(document.fields_of_part(part)) == 1


# -- documents of earlier releases -----------------------------------------------------------------------------


def test_a_document_of_the_first_version_is_read_and_kept_byte_for_byte() -> None:
    stored = STORED.read_bytes()
    document = ViewDocument.from_bytes(stored)
    assert (document.v, document.lists, document.effect_unknown) == (1, (), "")
    assert document.to_bytes() == stored
    assert document.digest == "ebc650d859ec826b799777ca11e7b4c8f3fd9e8bdea2cca2d568ff202ab02aa8"
    assert document.parts == (MAIN, "part-message")
    assert set(json.loads(stored)) == set(ViewDocument.from_bytes(stored).model_dump()) - {
        "lists",
        "effect_unknown",
    }


@pytest.mark.django_db
def test_a_proposal_of_an_earlier_release_is_shown_and_approved_as_it_was_stored(
    desk: Client, tenant: Tenant
) -> None:
    stored = STORED.read_bytes()
    document = ViewDocument.from_bytes(stored)
    proposal = factories.make_proposal(tenant=tenant, view=stored, view_digest=document.digest)
    html = page_of(desk, proposal)
    for field in document.fields:
        assert field.label in html
    assert "Effect unknown" in html  # the row of the ledger; not the whole of it
    assert "could not say what will stand" not in html
    fragment = opened(desk, proposal, "part-message", receipts_in(html))
    answer = approve(desk, proposal, receipts_in(html) + receipts_in(fragment))
    assert answer.status_code == 302
    assert Decision.objects.get().view_digest == document.digest


# -- the page --------------------------------------------------------------------------------------------------


def opened(desk: Client, proposal: Proposal, part: str, receipts: list[str], **headers: str) -> str:
    data = {"open": part, "receipt": receipts}
    answer = desk.post(f"/review/{proposal.pk}/part/", data, headers=headers or HTMX)
    assert answer.status_code == 200
    return answer.content.decode()


def approve(desk: Client, proposal: Proposal, receipts: list[str]) -> Any:
    view = view_of(proposal)
    data = {
        "decision": "approve", "digest": proposal.digest, "view_digest": proposal.view_digest, "receipt": receipts,
        "acknowledged": list(view.to_acknowledge),
    }  # fmt: skip
    return desk.post(f"/review/{proposal.pk}/decide/", data)


def next_part(html: str) -> str:
    found = re.search(
        r'name="open" value="([^"]+)"[^>]*>(?:(?!</button>).)*(?:Open|next page)', html, re.DOTALL
    )
    return found[1] if found else ""


@pytest.mark.django_db
@pytest.mark.parametrize("htmx", [True, False])
def test_every_page_of_a_list_is_asked_for_before_it_can_be_approved(
    desk: Client, tenant: Tenant, htmx: bool
) -> None:
    proposal = make(tenant, view(recipients=nine_thousand()[-700:]))
    html = page_of(desk, proposal)
    assert "mallory" not in html
    assert "2 hosts: evil.example 1, example.com 699" in html
    assert "Recipient: 4 of 4 pages not opened" in unescape(html)
    receipts, shown = receipts_in(html), []
    (main,) = receipts
    for left in (3, 2, 1, 0):
        refused = approve(desk, proposal, receipts)
        assert refused.status_code == 422
        assert "Recipient" in refused.content.decode()
        html = opened(desk, proposal, next_part(html), receipts, **(HTMX if htmx else {"X": "y"}))
        shown.append(re.findall(r"<bdi class=\"val\">(.*?)</bdi>", html))
        told = f"Recipient: {left} of 4 pages not opened"
        assert (told in unescape(html)) == (left > 0)
        receipts = (
            [main, *receipts_in(html)] if htmx else receipts_in(html)
        )  # a whole page brings its own for main
        assert len(set(receipts)) == 5 - left
    assert next_part(html) == ""
    assert "mallory@<b>evil.example</b>" in html
    assert approve(desk, proposal, receipts).status_code == 302


@pytest.mark.django_db
def test_a_page_carries_its_own_text_alone_and_earlier_ones_by_receipt(desk: Client, tenant: Tenant) -> None:
    proposal = make(tenant, view(message="a" * 8_000 + " " + "b" * 8_000))
    first = opened(desk, proposal, "part-message.1", receipts_in(page_of(desk, proposal)))
    second = opened(desk, proposal, "part-message.2", receipts_in(first))
    assert "bbbb" not in first
    assert "aaaa" not in second
    assert set(receipts_in(first)) < set(receipts_in(second))
    assert "Back one page" in second


@pytest.mark.django_db
def test_a_forged_receipt_is_not_handed_back(desk: Client, tenant: Tenant) -> None:
    proposal = make(tenant, view(message="a" * 20_000))
    fragment = opened(desk, proposal, "part-message.1", ["forged", "x" * 3_000])
    assert len(receipts_in(fragment)) == 1
    assert "forged" not in fragment


@pytest.mark.django_db
def test_a_role_that_is_not_shown_all_gets_no_receipt(client: Client, tenant: Tenant) -> None:
    proposal = make(tenant, view(recipients=nine_thousand()[:300]))
    client.force_login(factories.make_user(tenant, "olga", roles=[Role.OPERATOR]))
    assert receipts_in(opened(client, proposal, "part-recipients.1", [])) == []


@pytest.mark.django_db
def test_what_is_left_is_told_after_each_tick(desk: Client, tenant: Tenant) -> None:
    proposal = make(tenant, view(subject="a\u202eb", message="x" * 2_000))
    answer = desk.post(f"/review/{proposal.pk}/part/", {}, headers=HTMX).content.decode()
    assert '<a href="#check-1">Subject: reversed reading order</a>' in answer
    assert '<a href="#f-message">Message: not opened</a>' in answer
    ticked = {"acknowledged": ["bidi_control:/subject"]}
    answer = desk.post(f"/review/{proposal.pk}/part/", ticked, headers=HTMX).content.decode()
    assert "reversed" not in answer
    assert "Message: not opened" in answer


@pytest.mark.django_db
def test_the_page_of_9000_recipients_is_no_larger_than_one_of_60(desk: Client, tenant: Tenant) -> None:
    few, many = (make(tenant, view(recipients=nine_thousand()[:n])) for n in (60, 9_000))
    small, large = len(page_of(desk, few)), len(page_of(desk, many))
    assert large < small + 2_000


# -- evidence --------------------------------------------------------------------------------------------------


def with_evidence(tenant: Tenant, *contents: bytes, data_class: str = "business") -> Proposal:
    now = rows.now()
    pieces = [
        ViewEvidence(
            kind="record", title=f"Record {n}", source="shop", captured_at=now.isoformat(), size=len(content),
            digest=evidence_digest(bytes(32), content),
        )
        for n, content in enumerate(contents)
    ]  # fmt: skip
    document = view().model_copy(update={"evidence": tuple(pieces)})
    proposal = make(tenant, document)
    for n, (piece, content) in enumerate(zip(pieces, contents, strict=True)):
        factories.make_evidence(
            proposal, position=n, kind="record", content=content, digest=piece.digest, captured_at=now,
            data_class=data_class,
        )  # fmt: skip
    return proposal


@pytest.mark.django_db
def test_evidence_of_5_megabytes_does_not_slow_the_page(desk: Client, tenant: Tenant) -> None:
    small = with_evidence(tenant, b"Paid.\n" * 10)
    large = with_evidence(tenant, b"Paid.\n" * 870_000)
    sizes, statements, times = [], [], []
    for proposal in (small, large, small, large):
        with CaptureQueriesContext(connection) as queries:
            began = time.perf_counter()
            html = page_of(desk, proposal)
            times.append(time.perf_counter() - began)
        sizes.append(len(html))
        statements.append(len(queries))
        read = sum(len(query["sql"]) for query in queries)
        assert read < 60_000
    assert sizes[1] < sizes[0] + 1_000
    assert statements[3] <= statements[2]
    assert times[3] < 3 * times[2] + 0.2
    assert "5,220,0" in html
    assert "it is read in pages" in html


@pytest.mark.django_db
def test_evidence_is_read_page_by_page(desk: Client, tenant: Tenant) -> None:
    proposal = with_evidence(tenant, b"short", ("ä\u202e" * 20_000 + "the end").encode())
    html = page_of(desk, proposal)
    address = f"/review/{proposal.pk}/evidence/"
    assert f'href="{address}?piece=2"' in html
    assert f'href="{address}?piece=1"' not in html
    first = desk.get(address, {"piece": 2}).content.decode()
    assert "Page 1 of 6" in first
    assert "⟦U+202E⟧" in first
    assert "\u202e" not in first
    last = desk.get(address, {"piece": 2, "page": 6}).content.decode()
    assert "the end" in last
    for wrong in ({"piece": 3}, {"piece": 2, "page": 7}, {"piece": "x"}, {"piece": -1}, {"page": "0"}):
        assert desk.get(address, wrong).status_code == 404


@pytest.mark.django_db
def test_personal_evidence_is_not_read_by_roles_that_are_not_shown_it(client: Client, tenant: Tenant) -> None:
    proposal = with_evidence(tenant, b"name and street " * 5_000, data_class="personal")
    client.force_login(factories.make_user(tenant, "olga", roles=[Role.OPERATOR]))
    assert client.get(f"/review/{proposal.pk}/evidence/").status_code == 404
    html = page_of(client, proposal)
    assert "street" not in html
    assert "/evidence/" not in html


def test_the_stored_bytes_of_many_values_stay_small() -> None:
    document = view(recipients=nine_thousand())
    assert len(document.to_bytes()) < 2_000_000
    assert canonicalize(json.loads(document.to_bytes())) == document.to_bytes()
