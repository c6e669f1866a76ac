"""What a version owes to the ones before it: who edited it, and which votes count for it."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django.urls import reverse

from access.selectors import accounts_of
from approvals.enums import DecisionKind, ProposalStatus
from approvals.kept_votes import what_changed
from approvals.models import Decision, Proposal
from approvals.screens.standing import Notice
from approvals.viewmodels import ViewDocument
from audit.models import Event
from common import spans
from common.display import visible

WORDS: Final = {
    "operation_version": "the operation has a new version",
    "target": "the record it is about",
    "pins": "a record that it rests on has changed since",
    "evidence": "the evidence",
    "policy_version": "the policy has a new version",
    "contract": "something in it that cannot be read any more",
}


def version_notices(
    proposal: Proposal, view: ViewDocument, votes: Sequence[Decision], reader: UUID
) -> tuple[Notice, ...]:
    """``reader`` is told where a vote of theirs, under whichever account, does not count for this version."""
    if proposal.status != ProposalStatus.PENDING:
        return ()
    return (*_edited(proposal, view), *_dropped(proposal, view, reader), *_kept(proposal, votes))


def changed_words(old: Proposal, new: Proposal, view: ViewDocument) -> str:
    """What is another in the newer version, by the names that stand on its page."""
    labels = {str(field.path[0]): field.label for field in reversed(view.fields)}
    named = []
    for what in what_changed(old, new):
        kind, _, name = what.partition("/")
        named.append(labels.get(name, visible(name)) if kind == "arguments" else WORDS.get(what, what))
    return ", ".join(dict.fromkeys(named))


def _edited(proposal: Proposal, view: ViewDocument) -> tuple[Notice, ...]:
    if proposal.edited_by is None or proposal.supersedes is None:
        return ()
    changed = changed_words(proposal.supersedes, proposal, view)
    text = f"Changed: {changed}. The policy judged it anew, and somebody else decides on it."
    href = reverse("approvals:proposal", args=[proposal.supersedes_id])
    name = visible(str(proposal.edited_by))
    return (Notice("act", "pencil", f"Edited by {name}.", text, href, "Open the earlier version"),)


def _dropped(proposal: Proposal, view: ViewDocument, reader: UUID) -> tuple[Notice, ...]:
    old = proposal.supersedes
    if old is None:
        return ()
    theirs = accounts_of(proposal.tenant_id, [reader])
    votes = old.decisions.filter(kind=DecisionKind.APPROVE, replaced_at__isnull=True, user_id__in=theirs)
    vote = votes.order_by("-at").first()
    if vote is None:
        return ()
    changed = changed_words(old, proposal, view)
    why = (
        f"What did it: {changed}." if changed else "The same action is asked anew, and that takes a new yes."
    )
    title = f"Your approval of version {old.version} does not count for this one."
    return (Notice("wait", "users", title, f"You gave it at {spans.utc_text(vote.at)}. {why}"),)


def _kept(proposal: Proposal, votes: Sequence[Decision]) -> tuple[Notice, ...]:
    """Field report C2: told with its reason, where somebody has voted."""
    if not any(vote.kind == DecisionKind.APPROVE for vote in votes):
        return ()
    events = Event.objects.filter(
        tenant_id=proposal.tenant_id, subject_id=proposal.pk, kind="proposal.carried_over"
    )
    at = events.order_by("-at").values_list("at", flat=True).first()
    if at is None:
        return ()
    text = (
        f"It was proposed once more at {spans.utc_text(at)}, and nothing that is signed differs (the material digest is"
        " the same): so the approvals that were given stand."
    )
    return (Notice("act", "copy", "Proposed again, unchanged.", text),)
