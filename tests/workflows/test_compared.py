"""A new action beside the earlier ones of its tenant: first-ever, alike, unusual, contradicted, done already."""

import json
from datetime import timedelta
from typing import Any

import pytest

from approvals.models import Proposal, Trait
from approvals.shown import view_of
from approvals.viewmodels import ViewWarning
from common.clock import db_clock
from common.ids import new_id
from tests.workflows import payout
from tests.workflows.conftest import AGENT, Desk
from workflows import registry
from workflows.actions.outside import OutsideProposal, propose_from_outside
from workflows.actions.preflight import AlreadyDone
from workflows.actions.runs import Source
from workflows.models import Command, Run
from workflows.results import EvidencePiece

pytestmark = pytest.mark.django_db


@pytest.fixture
def payouts(desk: Desk) -> Desk:
    payout.install()
    registry.register_definitions(clock=db_clock)
    return desk


def propose(desk: Desk, evidence: tuple[EvidencePiece, ...] = (), **changes: Any) -> Proposal:
    request = OutsideProposal(
        workflow="toy-payouts", source=Source("test", str(new_id()), key="k"), operation="toy.payout",
        arguments=payout.arguments(**changes), reason="The invoice is due.", evidence=evidence,
    )  # fmt: skip
    return propose_from_outside(tenant=desk.tenant, request=request, by=AGENT, clock=db_clock).proposal


def made(desk: Desk, **changes: Any) -> Proposal:
    """One that was approved, sent and confirmed."""
    proposal = propose(desk, message=f"no. {new_id()}", **changes)
    desk.decide(proposal)
    desk.work()
    assert Command.objects.get(proposal=proposal).status == "confirmed"
    return proposal


def warnings(proposal: Proposal) -> dict[str, ViewWarning]:
    return {warning.id: warning for warning in view_of(proposal).warnings if warning.acknowledge}


def test_the_first_of_all_is_called_the_first(payouts: Desk) -> None:
    found = warnings(propose(payouts))
    assert set(found) == {"first_account:/account", "first_host:/receipt_to"}
    assert "never used before, for supplier:s-1 or for any other" in found["first_account:/account"].sentence


def test_what_was_done_before_in_the_same_way_needs_no_tick(payouts: Desk) -> None:
    made(payouts)
    assert warnings(propose(payouts)) == {}


def test_only_what_has_happened_counts(payouts: Desk) -> None:
    propose(payouts)
    payouts.decide(propose(payouts, message="another"), "reject")
    assert "first_account:/account" in warnings(propose(payouts, message="a third"))


def test_a_changed_account_and_domain_of_a_known_supplier(payouts: Desk) -> None:
    made(payouts)
    made(payouts, supplier="s-2", account="acct_77777")
    found = warnings(propose(payouts, account="acct_77777", receipt_to="billing@other.example"))
    assert (
        "supplier:s-1: the one earlier action on it named another one"
        in found["first_account:/account"].sentence
    )
    assert "other.example" in found["first_host:/receipt_to"].sentence
    assert "first_account:/receipt_to" in found


def test_a_host_that_others_of_the_tenant_use_is_not_new_for_a_new_target(payouts: Desk) -> None:
    made(payouts)
    assert set(warnings(propose(payouts, supplier="s-9"))) == {"first_account:/account"}


def test_another_tenants_history_is_not_ours(payouts: Desk) -> None:
    made(payouts)
    assert Trait.objects.exclude(tenant=payouts.tenant).count() == 0
    fingerprints = set(Trait.objects.filter(kind="account").values_list("fingerprint", flat=True))
    assert all(value.startswith("hmac:") for value in fingerprints)
    assert "acct_12345" not in str(list(Trait.objects.values()))


@pytest.mark.parametrize(
    ("changes", "code", "reads_like"),
    [
        ({"receipt_to": "billing@harb0ur-lane.example"}, "lookalike_host:/receipt_to", "harbour-lane.example"),
        ({"receipt_to": "billing@hаrbour-lane.example"}, "lookalike_host:/receipt_to", "harbour-lane.example"),
        ({"account": "acct_l2345"}, "lookalike_value:/account", "acct_12345"),
        ({"payee": "Harbour Lane Ltd "}, "lookalike_value:/payee", "Harbour Lane Ltd"),
        ({"payee": "Hаrbour Lane Ltd"}, "lookalike_value:/payee", "Harbour Lane Ltd"),
        ({"payee": "Harbour\u200b Lane Ltd"}, "lookalike_value:/payee", "Harbour Lane Ltd"),
    ],
)  # fmt: skip
def test_what_reads_like_a_known_value_is_named_beside_it(
    payouts: Desk, changes: dict[str, str], code: str, reads_like: str
) -> None:
    made(payouts, payee="Harbour Lane Ltd")
    if not changes.get("receipt_to", "").isascii():
        local, _, domain = changes["receipt_to"].partition("@")
        changes = {"receipt_to": f"{local}@{domain.encode('idna').decode()}"}
    found = warnings(propose(payouts, **{"payee": "Harbour Lane Ltd", **changes}))
    assert f"reads like {reads_like}" in found[code].sentence


def test_two_hosts_of_one_proposal_that_differ_by_a_letter(payouts: Desk) -> None:
    found = warnings(propose(payouts, message="Pay at https://harbor-lane.example/confirm now."))
    assert "harbor-lane.example" in found["lookalike_host:/receipt_to"].sentence
    assert "harbor-lane.example" in found["first_host:/message"].sentence


def test_one_strange_recipient_among_many(payouts: Desk) -> None:
    made(payouts)
    copies = [f"p{n:03d}@harbour-lane.example" for n in range(299)] + ["p300@evil.example"]
    proposal = propose(payouts, copies=copies)
    assert "Copy to 300 of 300" in warnings(proposal)["first_host:/copies"].sentence
    assert "evil.example 1" in view_of(proposal).lists[0].notes[1]


def test_an_amount_is_compared_once_there_are_enough(payouts: Desk) -> None:
    for _ in range(7):
        made(payouts, amount="100.00")
    assert "amount_unusual:/amount" not in warnings(propose(payouts, amount="5000.00"))
    made(payouts, amount="312.00")
    assert "amount_unusual:/amount" not in warnings(propose(payouts, amount="312.00"))
    found = warnings(propose(payouts, amount="1284.50"))["amount_unusual:/amount"]
    assert (
        "Of the last 8 that were made, the largest was EUR 312.00 and the middle one EUR 100.00."
        in found.sentence
    )
    assert "12.8 times the middle one" in found.sentence
    assert "amount_unusual:/amount" not in warnings(propose(payouts, amount="1284.50", currency="USD"))


def piece(content: str | dict[str, str], title: str = "Invoice", **more: Any) -> EvidencePiece:
    text = content if isinstance(content, str) else json.dumps(content)
    return EvidencePiece("record", title, text.encode(), db_clock(), **more)


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        ({"amount": "10.00"}, "/amount"),
        ("Amount: EUR 1,000.00\nDear all", "/amount"),
        ("Amount: 100.00 USD", "/amount"),
        ({"currency": "USD"}, "/amount"),
        ({"account": "acct_99999"}, "/account"),
        ("Receipt goes to: billing@evil.example", "/receipt_to"),
        ({"supplier": "s-2"}, "/supplier"),
    ],
)
def test_evidence_that_says_otherwise(payouts: Desk, content: Any, pointer: str) -> None:
    found = warnings(propose(payouts, (piece(content),)))
    assert "E1 (Invoice) says " in found[f"evidence_contradicts:{pointer}"].sentence


@pytest.mark.parametrize(
    "content",
    [
        {"amount": "100.00", "currency": "EUR", "account": "acct_12345", "supplier": "supplier:s-1"},
        "Amount: EUR 100.00\n  Amount: EUR 5.00\nThe amount: of 7 was never meant\nAmount: 100",
        "Amount: about a hundred",
        "Supplier: none\nAccount: n/a",
        {"supplier": "unknown", "account": "", "amount": True},
        '{"amount": ',
        "",
    ],
)
def test_evidence_that_agrees_or_cannot_be_read_for_sure(payouts: Desk, content: Any) -> None:
    assert not [code for code in warnings(propose(payouts, (piece(content),))) if code.startswith("evidence")]


def test_two_pieces_that_say_different_things(payouts: Desk) -> None:
    pieces = (
        piece({"paid": "EUR 5.00"}, ref="order:1@2"),
        piece("Paid: EUR 6.00", "Ledger", ref="order:1@2"),
    )
    found = warnings(propose(payouts, pieces))
    assert (
        "E1 (Invoice) and E2 (Ledger) say EUR 5.00 and EUR 6.00." in found["evidence_disagrees:E2"].sentence
    )


def test_evidence_that_is_too_old_already(payouts: Desk) -> None:
    old = EvidencePiece(
        "record", "Photo", b"x", db_clock() - timedelta(days=3), fresh_for=timedelta(days=1)
    )  # fmt: skip
    found = warnings(propose(payouts, (old,)))["evidence_stale:E1"]
    assert "3 days before" in found.sentence
    assert "its limit is 24 h" in found.sentence or "its limit is 1 day" in found.sentence


def test_the_same_once_more_is_refused_before_a_person_is_asked(payouts: Desk) -> None:
    proposal = propose(payouts)
    payouts.decide(proposal)
    under_way = propose(payouts)
    assert "same_thing_in_progress" in warnings(under_way)
    payouts.work()
    before = Proposal.objects.count()
    with pytest.raises(AlreadyDone) as refused:
        propose(payouts)
    assert refused.value.details["proposal_id"] == str(proposal.pk)
    assert refused.value.code == "already_done"
    assert Proposal.objects.count() == before


def test_a_run_whose_action_was_done_before_goes_to_a_person(desk: Desk) -> None:
    desk.approved(order="77")
    desk.work()
    run = desk.start(order="77")
    desk.advance()
    run = Run.objects.get(pk=run.pk)
    assert run.status == "manual_repair"
    assert not Proposal.objects.filter(run_id=run.pk).exists()


def test_no_preview_is_said_in_so_many_words(payouts: Desk) -> None:
    assert "could not say what will stand" in view_of(propose(payouts)).effect_unknown


def test_a_record_that_is_gone_is_not_asked_about(desk: Desk) -> None:
    desk.till.tags["88"] = "gone"
    run = desk.start(order="88")
    desk.advance()
    assert Run.objects.get(pk=run.pk).status == "manual_repair"
    assert not Proposal.objects.filter(run_id=run.pk).exists()
