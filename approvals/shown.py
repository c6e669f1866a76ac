"""Was it all in front of them? Checks a decision's receipts and acknowledgements against the stored view document."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from pydantic import ValidationError

from approvals.models import Proposal
from approvals.receipts import parts_not_shown
from approvals.refusals import NotAcknowledged, NotAllShown, Uninspectable
from approvals.viewdoc import ViewDocument
from audit.actors import Actor
from common.strictjson import JsonRefused


@lru_cache(maxsize=256)
def _parsed(stored: bytes) -> ViewDocument:
    return ViewDocument.from_bytes(stored)


def view_of(proposal: Proposal) -> ViewDocument:
    """The stored document: what a later release shows too, never rendered anew.

    Raises Uninspectable for bytes that are no view document any more.
    """
    try:
        return _parsed(bytes(proposal.view))
    except (JsonRefused, ValidationError) as error:
        raise Uninspectable() from error


def parts_shown(proposal: Proposal, receipts: Sequence[str], *, by: Actor, now: datetime) -> list[str]:
    """The parts that the receipts prove this person was shown."""
    parts = view_of(proposal).parts
    missing = set(_missing(proposal, receipts, parts, by, now))
    return [part for part in parts if part not in missing]


def check_all_shown(
    proposal: Proposal, receipts: Sequence[str], acknowledged: Sequence[str], *, by: Actor, now: datetime
) -> None:
    """Raises NotAllShown or NotAcknowledged, each with the list of what is missing, or Uninspectable."""
    view = view_of(proposal)
    if view.uninspectable:
        raise Uninspectable()
    if missing := _missing(proposal, receipts, view.parts, by, now):
        raise NotAllShown(parts=list(missing))
    if left := [code for code in view.to_acknowledge if code not in acknowledged]:
        raise NotAcknowledged(warnings=left)


def _missing(
    proposal: Proposal, receipts: Sequence[str], parts: Sequence[str], by: Actor, now: datetime
) -> tuple[str, ...]:
    return parts_not_shown(
        receipts, parts, user_id=by.user_id, proposal_id=proposal.pk, digest=proposal.digest,
        view_digest=proposal.view_digest, now=now, decide_by=proposal.decide_by,
    )  # fmt: skip
