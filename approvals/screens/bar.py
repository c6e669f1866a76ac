"""The decision bar: what this person may do now, and if a decision was refused, why and what to do next."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from approvals.enums import DecisionKind, DecisionResult, Mode, ProposalStatus, ReasonCode
from approvals.forms import Typed
from approvals.models import Decision, Proposal
from approvals.policies import check_can_decide
from approvals.refusals import DecisionRefused
from approvals.screens.proposal import ProposalScreen
from audit.actors import Actor
from common import spans
from common.errors import Refused
from common.states_ui import Tone, state_ui

# Refusals after which this proposal waits for nobody: the bar only tells.
OVER: Final = frozenset({"already_decided", "expired", "superseded", "withdrawn", "invalidated"})
NOT_YOURS: Final = frozenset({"not_eligible", "own_proposal", "token_cannot_decide"})
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
    "token_cannot_decide": "Not recorded: only a signed-in person decides.",
    "reauth_required": "Not recorded: sign in once more first.",
    "not_all_shown": "Not recorded: some of it was not opened.",
    "not_acknowledged": "Not recorded: some lines are not ticked.",
    "reason_required": "Not recorded: a reason is needed.",
    "uninspectable": "It cannot be approved.",
    "unavailable": "Perhaps not recorded: try once more.",
    "unknown_decision": "Not recorded: choose what you decide.",
}
SHEETS: Final = {DecisionKind.REJECT.value: "reject", DecisionKind.REQUEST_CHANGES.value: "changes"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused decision in words: its code, a title, a sentence, and the things to look at."""

    code: str
    title: str
    text: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """One state of the bar. Where it can decide, the page holds the form; else it tells why not."""

    can_decide: bool
    tone: Tone
    icon: str
    text: str
    may_approve: bool = True
    approve_says: str = ""
    approve_word: str = "Approve and send"
    careful: bool = True
    refusal: Refusal | None = None
    sheet: str = ""
    typed: Typed = field(default_factory=Typed)
    reason_codes: Sequence[tuple[str, str]] = ()
    follow: bool = False


def bar_for(
    screen: ProposalScreen, by: Actor, *, typed: Typed | None = None, refusal: Refused | None = None
) -> Bar:
    """The bar of a proposal's page for this person, after a refusal with what they had typed."""
    bar = _open_or_closed(screen, by)
    if refusal is None:
        return replace(bar, typed=typed or Typed())
    told = refusal_in_words(screen, refusal)
    typed = typed or Typed()
    if not bar.can_decide:
        return replace(bar, refusal=told, typed=typed)
    return replace(bar, refusal=told, typed=typed, sheet=SHEETS.get(typed.decision, ""))


def _open_or_closed(screen: ProposalScreen, by: Actor) -> Bar:
    proposal = screen.proposal
    if not screen.is_open:
        ui = state_ui("proposal", screen.status)
        return closed(ui.tone, ui.icon, over_text(screen), follow=bool(screen.progress))
    if not screen.readable:
        return closed("bad", "eye-off", "What it would do cannot be shown, so nobody can decide on it.")
    try:
        check_can_decide(proposal, by)
    except DecisionRefused as refusal:
        return closed("mute", "lock", refusal.message)
    if screen.view.uninspectable:
        text = "It cannot be shown faithfully, so it cannot be approved. You can reject it."
        return _decidable(screen, "bad", "eye-off", text, may_approve=False)
    own = own_vote(screen, by)
    if own is not None and own.kind == DecisionKind.APPROVE:
        text = (
            f"You approved it at {spans.utc_text(own.at)}. One more person is needed; you may still say no."
        )
        return _decidable(screen, "ok", "check", text, may_approve=False)
    return _decidable(screen, "ok", "check-circle", f"{seen_text(screen)} {quorum_text(proposal, screen)}")


def closed(tone: Tone, icon: str, text: str, *, follow: bool = False) -> Bar:
    """A bar that only tells."""
    return Bar(can_decide=False, tone=tone, icon=icon, text=text, follow=follow)


def _decidable(screen: ProposalScreen, tone: Tone, icon: str, text: str, *, may_approve: bool = True) -> Bar:
    proposal = screen.proposal
    last = votes_missing(screen) <= 1
    return Bar(
        can_decide=True, tone=tone, icon=icon, text=text, may_approve=may_approve,
        approve_says=f"{quorum_text(proposal, screen)} {screen.leads_to}",
        approve_word="Approve and send" if last and proposal.mode == Mode.LIVE else "Approve",
        careful=bool(screen.checks) or proposal.needed > 1 or proposal.risk > 1,
        reason_codes=ReasonCode.choices,
    )  # fmt: skip


def own_vote(screen: ProposalScreen, by: Actor) -> Decision | None:
    """The standing vote of this person."""
    if by.user_id is None:
        return None
    return screen.proposal.decisions.filter(replaced_at__isnull=True, user_id=by.user_id).first()


def votes_missing(screen: ProposalScreen) -> int:
    """How many approvals are still needed before anything happens."""
    given = screen.proposal.decisions.filter(replaced_at__isnull=True, kind=DecisionKind.APPROVE).count()
    return screen.proposal.needed - given


def seen_text(screen: ProposalScreen) -> str:
    looked = screen.checks or any(row.part.opened for row in screen.fields)
    return "Everything was looked at." if looked else "Nothing hidden, nothing folded."


def quorum_text(proposal: Proposal, screen: ProposalScreen) -> str:
    """What one more approval means."""
    missing = votes_missing(screen)
    if proposal.needed == 1:
        return "Yours is the only approval that is asked for."
    return (
        "Yours is the second of two approvals."
        if missing <= 1
        else "Two approvals are needed; yours is the first."
    )


def over_text(screen: ProposalScreen) -> str:
    """Why there is nothing to decide, for a bar that only tells."""
    match screen.status:
        case ProposalStatus.EXPIRED:
            over = spans.utc_text(screen.proposal.decide_by)
            return f"The time to decide was over at {over}. Nobody approved it."
        case ProposalStatus.APPROVED:
            return "Approved. What became of it stands above."
        case ProposalStatus.CONSUMED:
            return "Approved, and its command has ended. What became of it stands above."
        case ProposalStatus.CHANGES_REQUESTED:
            return "Changes were asked for. Nothing is sent for this version."
    return f"{state_ui('proposal', screen.status).word}. Read-only now."


def refusal_in_words(screen: ProposalScreen, refusal: Refused) -> Refusal:
    """A refusal with its title, and its lists turned into the names that stand on the page."""
    labels = {row.field.part: row.field.label for row in screen.fields}
    checks = {check.code: f"{check.name}: {check.call}" for check in screen.checks}
    parts = [labels.get(part, "The main part of the page") for part in refusal.details.get("parts", ())]
    warnings = [checks.get(code, code) for code in refusal.details.get("warnings", ())]
    return Refusal(
        code=refusal.code,
        title=TITLES.get(refusal.code, "Not recorded."),
        text=refusal.message,
        items=tuple(dict.fromkeys([*parts, *warnings])),
    )


RESULTS: Final[dict[str, tuple[Tone, str, str]]] = {
    DecisionResult.APPROVED: ("ok", "check-circle", "Approved."),
    DecisionResult.RECORDED: ("act", "users", "Your approval is recorded. One more person is needed."),
    DecisionResult.REJECTED: ("bad", "x-circle", "Rejected. Nothing is sent."),
    DecisionResult.CHANGES_REQUESTED: ("wait", "pencil", "Changes requested. Nothing is sent."),
}
"""What a recorded decision led to, for the notice that says so."""
