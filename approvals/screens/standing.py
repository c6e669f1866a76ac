"""How a proposal ended, in whole sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.urls import reverse

from approvals.enums import DecisionKind, Mode, ProposalStatus
from approvals.models import Decision, Proposal
from approvals.screens.people import code_word, name_of
from approvals.selectors import duplicate_of, ended_because
from common import spans
from common.display import visible
from common.states_ui import Tone, state_ui

# Words for the reasons that come as codes from whatever stopped an approved action before it was sent.
STOPPED: Final = {
    "lapsed": "The time to send it had passed before a worker could.",
    "policy": "The policy has changed since it was approved.",
    "pin": "The record has changed since it was approved.",
    "reviewer": "Somebody who approved it has lost the right to.",
    "digest": "What was stored is not what was approved.",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence about where things stand, with a way to go on."""

    tone: Tone
    icon: str
    title: str
    text: str
    href: str = ""
    action: str = ""


def notices_of(proposal: Proposal, votes: Sequence[Decision], *, words: bool) -> tuple[Notice, ...]:
    """What a reader should know first: how a proposal ended, or that one that waits is not the only one of its kind."""
    if proposal.status == ProposalStatus.PENDING:
        return _same_thing(proposal)
    if proposal.status == ProposalStatus.CONSUMED:
        return ()
    ui = state_ui("proposal", proposal.status)
    text = sentence_of(proposal, votes, words=words)
    if not text:
        return ()
    successor = proposal.successors.values_list("pk", flat=True).first()
    href = reverse("approvals:proposal", args=[successor]) if successor else ""
    return (Notice(ui.tone, ui.icon, f"{ui.word}.", text, href, "Open the new version" if successor else ""),)


def _same_thing(proposal: Proposal) -> tuple[Notice, ...]:
    """Field reports, A13: told before the decision, and not only when the second one is refused."""
    other = duplicate_of(proposal)
    if other is None:
        return ()
    text = "Another proposal asks for the very same thing, or it is being done already. Only one goes out at a time."
    href = reverse("approvals:proposal", args=[other])
    return (Notice("wait", "copy", "Not the only one.", text, href, "Open the other one"),)


def sentence_of(proposal: Proposal, votes: Sequence[Decision], *, words: bool) -> str:
    """``words``: with what people wrote themselves, for those whose role is shown personal data."""
    said = visible(ended_because(proposal, votes) if words else proposal.end_reason)
    match proposal.status:
        case ProposalStatus.APPROVED:
            mode = Mode(proposal.mode)
            return "" if mode == Mode.LIVE else f"It is a {mode.label.lower()} proposal: nothing is sent."
        case ProposalStatus.REJECTED:
            return f"{who(votes)} rejected this version. {reason_of(votes)}Nothing was sent."
        case ProposalStatus.CHANGES_REQUESTED:
            until = spans.utc_text(proposal.decide_by)
            asked = f"{who(votes)} asked for changes{f': “{said}”' if said else ''}."
            return f"{asked} Nothing is sent for this version; it expires at {until} unless a newer one replaces it."
        case ProposalStatus.EXPIRED:
            return f"The time to decide was over at {spans.utc_text(proposal.decide_by)}. Nobody approved it."
        case ProposalStatus.WITHDRAWN:
            return f"It was taken back. {said}".strip()
        case ProposalStatus.SUPERSEDED:
            return "A newer version has taken its place."
    return f"{STOPPED.get(said, said)} Nothing happened.".strip()


def reason_of(votes: Sequence[Decision]) -> str:
    """The chosen reason of the last no as a sentence with a space after it; empty where none was chosen."""
    last = next((vote for vote in reversed(votes) if vote.kind == DecisionKind.REJECT), None)
    word = code_word(last.reason_code) if last else ""
    return f"Reason: {word}. " if word else ""


def who(votes: Sequence[Decision]) -> str:
    """The person whose no ended it."""
    last = next((vote for vote in reversed(votes) if vote.kind != "approve"), None)
    return name_of(last) if last and last.user else "Somebody"
