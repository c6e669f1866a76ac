"""What a first-time reader of the review desk stumbles over: each thing on its page is called what it is."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from approvals.models import Decision, Proposal
from approvals.shown import view_of
from approvals.viewdoc import ViewEvidence
from common.digests import evidence_digest
from common.models import Tenant
from common.sealed import Ready
from tests import factories, rows
from tests.approvals.test_views import HTMX, decide, desk, page_of, receipts_in, reviewer, tenant

__all__ = ["desk", "reviewer", "tenant"]
pytestmark = pytest.mark.django_db


def test_records_are_shown_by_lines_and_the_words_of_people_as_a_quote(desk: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    view = view_of(proposal)
    pieces = []
    for position, (kind, content) in enumerate(
        [("record", b"order: 1042\npaid: EUR 12.50\xe2\x80\x8b"), ("message", b"It broke.\nPlease help.")]
    ):
        digest = evidence_digest(bytes(32), content)
        captured = rows.now()
        factories.make_evidence(
            proposal, position=position, kind=kind, content=content, digest=digest, captured_at=captured
        )
        piece = ViewEvidence(
            kind=kind, title=kind, source="shop", captured_at=captured.isoformat(), digest=digest
        )
        pieces.append(piece)
    stored = view.model_copy(update={"evidence": tuple(pieces)}).to_bytes()
    damaged(proposal, stored)
    html = page_of(desk, proposal)
    assert '<div class="val lines"><span class="ln">order: 1042' in html
    assert "⟦U+200B⟧" in html
    assert '<div class="said lines"><span class="ln">It broke.' in html


def damaged(proposal: Proposal, stored: bytes) -> None:
    """Change the stored view behind the application's back, as somebody at the database could."""
    Proposal.objects.using("owner").filter(pk=proposal.pk).update(view=Ready(stored))


def test_the_chosen_reason_is_shown_beside_the_words(desk: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    html = page_of(desk, proposal)
    said = decide(desk, proposal, "reject", html, reason_code="wrong_amount", reject_reason="Ten too many")
    assert said.status_code == 302
    html = page_of(desk, proposal)
    assert "rejected this version. Reason: Wrong amount. Nothing was sent." in html
    assert "<span>Wrong amount</span>" in html
    assert "Ten too many" in html


def test_what_an_approval_leads_to_is_labelled(desk: Client, tenant: Tenant) -> None:
    html = page_of(desk, factories.make_proposal(tenant=tenant))
    assert re.search(r'<dt class="dim">If approved:</dt><dd>Sent within [^<]+, once\.', html)


@pytest.mark.parametrize(
    ("kind", "sheet"), [("reject", "sheet-reject"), ("request_changes", "sheet-changes")]
)
def test_a_refused_no_keeps_its_button_in_the_bar_and_has_a_way_back(
    desk: Client, tenant: Tenant, kind: str, sheet: str
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    said = decide(desk, proposal, kind, page_of(desk, proposal), htmx=True, **{"in": "pane"}).content.decode()
    assert re.search(rf'id="{sheet}" role="group".*?>Go back</a>', said, re.DOTALL)
    assert f"/review/{proposal.pk}/bar/?in=pane" in said
    acts = said[said.index('class="acts"') :]
    assert f'type="submit" name="decision" value="{kind}"' in acts[: acts.index("</div>")]
    back = desk.get(f"/review/{proposal.pk}/bar/?in=pane", headers=HTMX).content.decode()
    assert 'role="group"' not in back
    assert 'name="in" value="pane"' in back


@pytest.mark.parametrize("stored", [b"", b"\xff\xfe", b"{}", b'{"v":1'])
def test_a_proposal_whose_stored_view_is_damaged_is_told_and_not_decided(
    desk: Client, tenant: Tenant, stored: bytes
) -> None:
    proposal = factories.make_proposal(tenant=tenant)
    html = page_of(desk, proposal)
    damaged(proposal, stored)
    shown = page_of(desk, proposal)
    assert "What was stored for people to read is damaged or was changed afterwards." in shown
    assert "nobody can decide on it" in shown
    assert "What you sign" not in shown
    assert 'name="decision"' not in shown
    assert desk.post(f"/review/{proposal.pk}/part/", {"open": "part-x"}).status_code == 404
    for kind in ("approve", "reject"):
        data = sent_blind(proposal, kind, html)
        assert desk.post(f"/review/{proposal.pk}/decide/", data).status_code == 409
    assert not Decision.objects.exists()


def sent_blind(proposal: Proposal, kind: str, html: str) -> dict[str, Any]:
    """A decision from a page that was open before the damage."""
    return {
        "decision": kind,
        "digest": proposal.digest,
        "view_digest": proposal.view_digest,
        "receipt": receipts_in(html),
        "reject_reason": "No",
    }


@pytest.mark.parametrize(
    ("mode", "stage"), [("live", "is on stage approve"), ("shadow", "only makes shadow proposals")]
)
def test_a_person_asked_by_the_stage_is_not_told_the_rules_reason_as_theirs(
    desk: Client, tenant: Tenant, mode: str, stage: str
) -> None:
    policy = {"version": 7, "rule": "small", "verdict": "auto", "because": "It is small.", "tests": []}
    html = page_of(desk, factories.make_proposal(tenant=tenant, mode=mode, policy=policy))
    assert f"This workflow {stage}. The rule alone would have let it through: It is small." in unescape(html)
    assert "Policy says: approve by rule; the workflow&#x27;s stage asks a person" in html
