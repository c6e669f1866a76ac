"""The decision bar: what this person may do now, and if a decision was refused, why and what to do next."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from django.urls import reverse

from access.models import User
from approvals import hooks
from approvals.enums import DecisionKind, DecisionResult, Mode, ProposalStatus, ReasonCode, Remember
from approvals.forms import ASK, Typed
from approvals.models import Decision, Proposal
from approvals.policies import Capacity, check_can_decide
from approvals.refusals import AuthorOfVersion, DecisionRefused
from approvals.remembering import span_of
from approvals.screens.proposal import ProposalScreen
from approvals.screens.questions import Exchange, exchanges
from approvals.screens.refused import Refusal, refusal_in_words
from approvals.selectors_questions import Colleague, colleagues
from approvals.signing import check_has_key, must_be_signed
from audit.actors import Actor
from common import spans
from common.display import visible
from common.errors import Refused
from common.states_ui import Tone, state_ui

SHEETS: Final = {
    DecisionKind.REJECT.value: "reject",
    DecisionKind.REQUEST_CHANGES.value: "changes",
    ASK: "ask",
}


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
    exchanges: tuple[Exchange, ...] = ()
    """What was asked about it, and what this person may answer."""
    colleagues: Sequence[Colleague] = ()
    remember: Sequence[tuple[str, str]] = ()
    remembered: str = ""
    """Which of them is chosen."""
    signs: str = ""
    """Where the browser gets what this person's passkey signs; empty where nothing is to be signed."""
    add_key: str = ""
    """Where they add a passkey, which they need for this approval and have not."""
    edit: str = ""
    """Where this person changes arguments, if the operation lets them."""


def bar_for(
    screen: ProposalScreen, by: Actor, *, typed: Typed | None = None, refusal: Refused | None = None
) -> Bar:
    """The bar of a proposal's page for this person, after a refusal with what they had typed."""
    typed = typed or Typed()
    bar = replace(_open_or_closed(screen, by), typed=typed, exchanges=exchanges(screen, by, typed))
    if typed.remember:
        bar = replace(bar, remembered=typed.remember)
    if refusal is None:
        return bar
    told = refusal_in_words(screen, refusal)
    if not bar.can_decide:
        return replace(bar, refusal=told)
    return replace(bar, refusal=told, sheet=SHEETS.get(typed.decision, ""))


def _open_or_closed(screen: ProposalScreen, by: Actor) -> Bar:
    proposal = screen.proposal
    if not screen.is_open:
        ui = state_ui("proposal", screen.status)
        return closed(ui.tone, ui.icon, over_text(screen), follow=bool(screen.progress))
    if not screen.readable:
        return closed("bad", "eye-off", "What it would do cannot be shown, so nobody can decide on it.")
    try:
        capacity = check_can_decide(proposal, by)
    except AuthorOfVersion as refusal:
        return replace(closed("mute", "lock", refusal.message), edit=edit_address(proposal))
    except DecisionRefused as refusal:
        return closed("mute", "lock", refusal.message)
    if screen.view.uninspectable:
        text = "It cannot be shown faithfully, so it cannot be approved. You can reject it."
        return _decidable(screen, by, "bad", "eye-off", text, may_approve=False)
    own = own_vote(screen, by)
    if own is not None and own.kind == DecisionKind.APPROVE:
        text = (
            f"You approved it at {spans.utc_text(own.at)}. One more person is needed; you may still say no."
        )
        return _decidable(screen, by, "ok", "check", text, may_approve=False)
    text = f"{stead_text(capacity)}{seen_text(screen)} {quorum_text(proposal, screen)}"
    bar = _decidable(screen, by, "ok", "check-circle", text)
    return _signed(bar, proposal, by) if must_be_signed(proposal) else bar


def _signed(bar: Bar, proposal: Proposal, by: Actor) -> Bar:
    """Where the approver's passkey signs; closed, with the reason in words, for people who have none that counts."""
    try:
        check_has_key(by, proposal.tenant_id)
    except Refused as refusal:
        return replace(
            bar,
            may_approve=False,
            tone="wait",
            icon="key",
            text=refusal.message,
            add_key=reverse("mfa_index"),
        )
    return replace(
        bar, signs=reverse("approvals:sign", args=[proposal.pk]),
        approve_word="Sign and send" if "send" in bar.approve_word else "Sign",
        approve_says=f"Your passkey signs exactly this: the browser asks you for it. {bar.approve_says}",
    )  # fmt: skip


def stead_text(capacity: Capacity) -> str:
    """In whose place they decide, with a space after it; empty where it is their own."""
    if capacity.stead is None:
        return ""
    away = User.objects.filter(pk=capacity.stead.user_id).first()
    return f"You decide in the stead of {visible(str(away))}. "


def closed(tone: Tone, icon: str, text: str, *, follow: bool = False) -> Bar:
    """A bar that only tells."""
    return Bar(can_decide=False, tone=tone, icon=icon, text=text, follow=follow)


def _decidable(
    screen: ProposalScreen, by: Actor, tone: Tone, icon: str, text: str, *, may_approve: bool = True
) -> Bar:
    proposal = screen.proposal
    last = votes_missing(screen) <= 1
    return Bar(
        can_decide=True, tone=tone, icon=icon, text=text, may_approve=may_approve,
        approve_says=f"{quorum_text(proposal, screen)} {screen.leads_to}",
        approve_word="Approve and send" if last and proposal.mode == Mode.LIVE else "Approve",
        careful=bool(screen.checks) or proposal.needed > 1 or proposal.risk > 1,
        reason_codes=ReasonCode.choices, colleagues=colleagues(proposal.tenant_id, by.user_id),
        remember=remember_choices(proposal), remembered="" if span_of(proposal) else Remember.NONE,
        edit=edit_address(proposal),
    )  # fmt: skip


def edit_address(proposal: Proposal) -> str:
    """The page where its arguments are changed; empty where reviewers may change none."""
    return reverse("edits:edit", args=[proposal.pk]) if hooks.editable(proposal) else ""


def remember_choices(proposal: Proposal) -> list[tuple[str, str]]:
    """For how long a rejection answers the same proposal. The policy's own time comes first, where it has one."""
    span = span_of(proposal)
    own = [("", f"As the policy says: {spans.span(span.total_seconds())}")] if span else []
    return [*own, *Remember.choices]


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
            return f"Changes were asked for{_by_whom(screen)}. Nothing is sent for this version."
        case ProposalStatus.REJECTED:
            return f"Rejected{_by_whom(screen)}. Read-only now."
    return f"{state_ui('proposal', screen.status).word}. Read-only now."


def _by_whom(screen: ProposalScreen) -> str:
    """Who said the last word and when, as whoever was still reading or writing has to know; nothing for no person."""
    last = next((person for person in reversed(screen.people) if person.at is not None), None)
    if last is None or last.at is None:
        return ""
    return f" by {last.name.replace('You, ', 'you, ', 1)} at {spans.utc_text(last.at)}"


RESULTS: Final[dict[str, tuple[Tone, str, str]]] = {
    DecisionResult.APPROVED: ("ok", "check-circle", "Approved."),
    DecisionResult.RECORDED: ("act", "users", "Your approval is recorded. One more person is needed."),
    DecisionResult.REJECTED: ("bad", "x-circle", "Rejected. Nothing is sent."),
    DecisionResult.CHANGES_REQUESTED: ("wait", "pencil", "Changes requested. Nothing is sent."),
}
"""What a recorded decision led to, for the notice that says so."""
