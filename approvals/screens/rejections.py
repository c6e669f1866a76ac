"""Rejections that are remembered: on the page of what was rejected, and on pages of what is like it."""

from datetime import datetime

from django.urls import reverse

from approvals.enums import ProposalStatus
from approvals.models import Proposal, Rejection
from approvals.screens.people import code_word
from approvals.screens.standing import Notice
from common import spans
from common.digests import same
from common.display import visible


def rejection_notices(proposal: Proposal, now: datetime, *, words: bool) -> tuple[Notice, ...]:
    """``words``: with what people wrote themselves."""
    if proposal.status == ProposalStatus.PENDING:
        return _like_it(proposal, now)
    if proposal.status == ProposalStatus.REJECTED:
        return _of_this(proposal, now, words=words)
    return ()


def _like_it(proposal: Proposal, now: datetime) -> tuple[Notice, ...]:
    """Field report M3: the same operation on the same record was rejected, with these values or with others."""
    rows = Rejection.objects.filter(
        tenant_id=proposal.tenant_id, operation=proposal.operation, target=proposal.target, lifted_at__isnull=True,
        until__gt=now,
    )  # fmt: skip
    rows = rows.exclude(proposal_id=proposal.pk).select_related("proposal", "rejected_by")
    found = rows.order_by("-rejected_at").first()
    if found is None:
        return ()
    the_same = same(found.material_digest, proposal.material_digest)
    title = "The very same was rejected." if the_same else "Something like it was rejected."
    word = code_word(found.reason_code)
    text = (
        f"{visible(str(found.rejected_by))} rejected “{visible(found.proposal.summary)}” at"
        f" {spans.utc_text(found.rejected_at)}.{f' Reason: {word}.' if word else ''}"
    )
    href = reverse("approvals:proposal", args=[found.proposal_id])
    return (Notice("wait", "x-circle", title, text, href, "Open what was rejected"),)


def _of_this(proposal: Proposal, now: datetime, *, words: bool) -> tuple[Notice, ...]:
    rows = Rejection.objects.filter(tenant_id=proposal.tenant_id, proposal=proposal)
    found = rows.select_related("lifted_by").first()
    if found is None:
        return ()
    found.proposal = proposal
    until = spans.utc_text(found.until)
    if found.lifted_at is not None:
        why = f" “{visible(found.lifted_why or '')}”" if words else ""
        text = f"{visible(str(found.lifted_by))} lifted it at {spans.utc_text(found.lifted_at)}.{why}"
        return (Notice("mute", "check", "The same may be asked again.", text),)
    if not found.holds(now):
        return (Notice("mute", "pending", "No longer remembered.", f"Its time was over at {until}."),)
    text = f"Until {until}, whoever proposes exactly the same is answered with this rejection, and nobody is asked."
    href = reverse("approvals:lift", args=[proposal.pk])
    return (Notice("wait", "lock", "Remembered.", text, href, "Lift it"),)
