"""A refusal in words: what was not done, why, and who came first."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from approvals.enums import ProposalStatus
from approvals.late import who_came_first
from approvals.models import Proposal
from approvals.screens.proposal import ProposalScreen
from audit.names import names_of, spoken
from common import spans
from common.errors import Refused

OVER: Final = frozenset({"already_decided", "expired", "superseded", "withdrawn", "invalidated"})
"""Refusals after which this proposal waits for nobody: the bar only tells, and by whom."""
TITLES: Final = {
    "already_decided": "Not recorded: it is decided already.",
    "expired": "Not recorded: too late.",
    "superseded": "Not recorded: there is a newer version.",
    "withdrawn": "Not recorded: it was withdrawn.",
    "invalidated": "Not recorded: it is no longer valid.",
    "digest_mismatch": "Not recorded: this is not the action you saw.",
    "view_mismatch": "Not recorded: this is not the page you saw.",
    "action_in_progress": "Not approved: the same thing is already being done.",
    "not_eligible": "Not recorded: this is asked of other people.",
    "own_proposal": "Not recorded: it is your own.",
    "author_of_version": "Not recorded: you edited this version.",
    "token_cannot_decide": "Not recorded: only a signed-in person decides.",
    "reauth_required": "Not recorded: confirm that it is you first.",
    "signature_required": "Not recorded: your passkey must sign it.",
    "signature_invalid": "Not recorded: the signature is not right.",
    "signature_over": "Not recorded: sign once more.",
    "passkey_not_registered": "Not recorded: this passkey is not known here.",
    "passkey_missing": "Not recorded: you have no passkey.",
    "not_all_shown": "Not recorded: some of it was not opened.",
    "not_acknowledged": "Not recorded: some lines are not ticked.",
    "reason_required": "Not recorded: a reason is needed.",
    "uninspectable": "It cannot be approved.",
    "unavailable": "Perhaps not recorded: try once more.",
    "invalid_arguments": "Nothing was changed: some of it does not fit.",
    "refused_by_policy": "Nothing was changed: the policy refuses that.",
    "previously_rejected": "Nothing was changed: exactly that was rejected before.",
    "nothing_changed": "Nothing was changed.",
    "not_editable": "Nothing was changed: it cannot be edited.",
    "source_unavailable": "Nothing was changed: a system that must be read does not answer.",
    "contract_changed": "Nothing was changed: what is stored is not what was proposed.",
    "already_lifted": "Not lifted: it is lifted already.",
    "nothing_remembered": "Not lifted: there is nothing to lift.",
    "words_missing": "Not sent: nothing was written.",
    "unknown_colleague": "Not sent: nobody was chosen.",
    "already_answered": "Not recorded: it is answered already.",
    "not_asked_of_you": "Not recorded: somebody else was asked.",
    "unknown_decision": "Not recorded: choose what you decide.",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused decision in words: its code, a title, a sentence, and the things to look at."""

    code: str
    title: str
    text: str
    items: tuple[str, ...] = ()
    confirm: str = ""
    """Where the person confirms that it is them."""


DID: Final = {
    ProposalStatus.APPROVED: "approved it",
    ProposalStatus.REJECTED: "rejected it",
    ProposalStatus.CHANGES_REQUESTED: "asked for changes",
    ProposalStatus.WITHDRAWN: "took it back",
    ProposalStatus.SUPERSEDED: "put a newer version in its place",
    ProposalStatus.INVALIDATED: "found that it no longer holds",
}
"""What whoever was faster did, after their name."""


def first_of(proposal: Proposal, now: datetime, refusal: Refused) -> str:
    """Who was faster, what they did and when, in a sentence; empty where nobody was."""
    if {"by", "at"} <= set(refusal.details):
        at = datetime.fromisoformat(refusal.details["at"])
        by = str(refusal.details["by"])
        return f"By {spoken(by, names_of([by]))}, at {spans.utc_text(at)}."
    came = who_came_first(proposal, now) if refusal.code in OVER else None
    if came is None:
        return ""
    if came.how == ProposalStatus.EXPIRED:
        return f"Its time was over at {spans.utc_text(came.at)}."
    return f"{spoken(came.by, names_of([came.by]))} {DID[ProposalStatus(came.how)]} at {spans.utc_text(came.at)}."


def refusal_in_words(screen: ProposalScreen, refusal: Refused) -> Refusal:
    """A refusal with its title, and its lists turned into the names that stand on the page."""
    labels = screen.slip.part_names
    checks = {check.code: f"{check.name}: {check.call}" for check in screen.checks}
    parts = [labels.get(part, "The main part of the page") for part in refusal.details.get("parts", ())]
    warnings = [checks.get(code, code) for code in refusal.details.get("warnings", ())]
    return Refusal(
        code=refusal.code,
        title=TITLES.get(refusal.code, "Not recorded."),
        text=" ".join(filter(None, (refusal.message, first_of(screen.proposal, screen.now, refusal)))),
        items=tuple(dict.fromkeys([*parts, *warnings])),
        confirm=refusal.details.get("confirm", ""),
    )
