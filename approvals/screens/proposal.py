"""One proposal as its page shows it: the stored view document, and beside it what is known now."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.urls import reverse

from access.models import Membership
from approvals import receipts
from approvals.enums import Mode, ProposalStatus
from approvals.models import Proposal
from approvals.policies import SEES_PERSONAL
from approvals.refusals import Uninspectable
from approvals.screens.changes import Change, affected_rows, difference_rows
from approvals.screens.evidence import EvidencePiece, evidence_pieces, evidence_says
from approvals.screens.people import Person, names_of, people_rows, people_title, stamp_of, votes_given
from approvals.screens.queue import next_waiting
from approvals.screens.standing import Notice, notices_of
from approvals.shown import view_of
from approvals.viewmodels import MAIN, ViewDocument, ViewField, ViewWarning
from audit.readers import may_read_history
from common import spans
from common.desk_parts import Leader
from common.display import visible

# What is odd about a text, in the two or three words that end a line of the checklist.
CALLS: Final = {
    "bidi_control": "reversed reading order",
    "invisible": "hidden characters",
    "tag_chars": "hidden message",
    "variation_selector": "hidden bytes",
    "blank_letter": "blank letters",
    "nonascii_space": "unusual spaces",
    "line_sep": "unusual line ends",
    "control": "control characters",
    "ansi_escape": "terminal commands",
    "private_use": "private-use characters",
    "unassigned": "unknown characters",
    "mixed_script": "look-alike letters",
    "stacked_marks": "stacked marks",
}
UNREADABLE: Final = ViewWarning(
    code="unreadable",
    label="The whole proposal",
    sentence="What was stored for people to read is damaged or was changed afterwards.",
    acknowledge=False,
)
HIDDEN: Final = "⟦personal, not shown to your role⟧"


@dataclass(frozen=True, slots=True)
class Reader:
    """Who looks, when by the server's clock, and which folded parts they have opened."""

    membership: Membership
    now: datetime
    opened: frozenset[str] = frozenset()

    @property
    def user_id(self) -> UUID:
        return self.membership.user_id

    @property
    def sees_personal(self) -> bool:
        return any(self.membership.has_role(role) for role in SEES_PERSONAL)


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one field, or, while it is folded, its beginning and a promise of what follows."""

    key: str
    field: ViewField
    folded: bool
    opened: bool
    says: str
    text: str
    receipt: str

    @property
    def chunks(self) -> tuple[tuple[str, bool], ...]:
        """The text in runs of (text, heavy); the host of a link and of an address is heavy."""
        if self.text != self.field.text:
            return ((self.text, False),)
        before, strong, after = self.field.around_strong
        return tuple(run for run in ((before, False), (strong, True), (after, False)) if run[0])

    @property
    def numbered(self) -> bool:
        return self.field.lines > 1

    @property
    def style(self) -> str:
        return "money" if self.field.type.startswith("money") else ""


@dataclass(frozen=True, slots=True)
class SlipField:
    """One material field on the slip."""

    field: ViewField
    part: Part
    instant: datetime | None
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the checklist: what a rule found, to be ticked as seen."""

    code: str
    name: str
    call: str
    why: str
    field: str
    seen: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """One line of where the proposal comes from."""

    word: str
    text: str
    href: str = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class ProposalScreen:
    """Everything on a proposal's page except the decision bar."""

    proposal: Proposal
    view: ViewDocument
    now: datetime
    fields: tuple[SlipField, ...]
    checks: tuple[Check, ...]
    receipt: str
    affected: tuple[Change, ...]
    difference: tuple[Change, ...]
    evidence: tuple[EvidencePiece, ...]
    evidence_says: str
    policy: tuple[Leader, ...]
    people: tuple[Person, ...]
    people_title: str
    votes: str
    stamp: str
    notices: tuple[Notice, ...]
    origin: tuple[Origin, ...]
    next: str

    @property
    def is_open(self) -> bool:
        """Whether it waits for a decision at this moment, whatever the sweep has noticed so far."""
        return self.proposal.status == ProposalStatus.PENDING and self.now < self.proposal.decide_by

    @property
    def status(self) -> str:
        """The state to show: what is pending but out of time is called expired, as a decision is told."""
        late = self.proposal.status == ProposalStatus.PENDING and not self.is_open
        return ProposalStatus.EXPIRED if late else self.proposal.status

    @property
    def progress(self) -> str:
        """The address of the fragment that tells what became of an approval; empty where nothing is sent."""
        sent = self.proposal.decided_at and self.proposal.mode == Mode.LIVE and self.proposal.execute_by
        return f"/runs/progress/{self.proposal.pk}/" if sent else ""

    @property
    def leads_to(self) -> str:
        """What an approval leads to, in one sentence."""
        if not self.is_open:
            return ""
        if self.proposal.mode != Mode.LIVE:
            return f"Nothing is sent: this is a {Mode(self.proposal.mode).label.lower()} proposal."
        return f"Sent within {spans.span(self.proposal.execute_within_s)}, once."

    @property
    def crumbs(self) -> tuple[tuple[str, str], ...]:
        queue = reverse("approvals:queue")
        return (
            ("Review", queue),
            (self.proposal.workflow, f"{queue}?workflow={self.proposal.workflow}"),
            (f"version {self.proposal.version}", ""),
        )

    @property
    def readable(self) -> bool:
        """Whether the stored document could be read."""
        return UNREADABLE not in self.view.warnings

    @property
    def rule_alone(self) -> bool:
        """Whether the rule would have let it through, and a person is asked all the same because of the stage."""
        return self.proposal.policy.get("verdict") == "auto" and self.proposal.needed > 0

    @property
    def because(self) -> str:
        """Why a person is asked. A rule of *auto* asks nobody: then it is the workflow's stage that does."""
        said = str(self.proposal.policy.get("because", ""))
        if not self.rule_alone:
            return said
        mode = Mode(self.proposal.mode)
        stage = "is on stage approve" if mode == Mode.LIVE else f"only makes {mode.label.lower()} proposals"
        return f"This workflow {stage}. The rule alone would have let it through: {said}"

    @property
    def said(self) -> str:
        """What the automation wrote about it: shown as somebody else's words."""
        return visible(self.proposal.reason)

    @property
    def policy_says(self) -> str:
        if self.rule_alone:
            return "approve by rule; the workflow's stage asks a person"
        words = {
            "ask_one": "ask one person",
            "ask_two": "ask two people",
            "auto": "approve by rule",
            "refuse": "refuse",
        }
        return words.get(str(self.proposal.policy.get("verdict")), "ask a person")


def proposal_screen(proposal: Proposal, reader: Reader, acknowledged: Iterable[str] = ()) -> ProposalScreen:
    """Read everything that the page of one proposal shows to one reader. Nothing is written by it."""
    view = readable_view(proposal)
    votes = list(proposal.decisions.filter(replaced_at__isnull=True).select_related("user", "group"))
    names = names_of(proposal)
    following = next_waiting(proposal, reader.membership, reader.now)
    evidence = evidence_pieces(proposal, view, sees_personal=reader.sees_personal, now=reader.now)
    return ProposalScreen(
        proposal=proposal,
        view=view,
        now=reader.now,
        fields=tuple(slip_field(proposal, view, field, reader) for field in view.fields),
        checks=check_rows(view, frozenset(acknowledged)),
        receipt=receipt_for(proposal, MAIN, reader),
        affected=affected_rows(view),
        difference=difference_rows(proposal, view, hide_personal=not reader.sees_personal),
        evidence=evidence,
        evidence_says=evidence_says(evidence),
        policy=policy_lines(proposal),
        people=people_rows(proposal, votes, reader.user_id),
        people_title=people_title(proposal),
        votes=votes_given(proposal, votes),
        stamp=stamp_of(proposal, votes),
        notices=(*unreadable_notice(view), *notices_of(proposal, votes)),
        origin=origin_rows(proposal, names, reader),
        next=reverse("approvals:proposal", args=[following]) if following else "",
    )


def readable_view(proposal: Proposal) -> ViewDocument:
    """The stored document; where its bytes cannot be read any more, one without fields that nobody can approve."""
    try:
        return view_of(proposal)
    except Uninspectable:
        return ViewDocument(
            operation=proposal.operation,
            operation_version=proposal.operation_version,
            contract_digest=proposal.digest,
            headline=visible(proposal.summary),
            consequence="What this proposal would do cannot be shown.",
            fields=(),
            warnings=(UNREADABLE,),
            uninspectable=True,
        )


def unreadable_notice(view: ViewDocument) -> tuple[Notice, ...]:
    """Told first: there is no slip on the page, because nothing can be shown on it."""
    if UNREADABLE not in view.warnings:
        return ()
    return (Notice("bad", "eye-off", "It cannot be shown.", UNREADABLE.sentence),)


def slip_field(proposal: Proposal, view: ViewDocument, field: ViewField, reader: Reader) -> SlipField:
    """One field of the stored document. Warnings that need no tick stand beside their field."""
    mild = (w.sentence for w in view.warnings if w.pointer == field.pointer and not w.acknowledge)
    return SlipField(
        field=field,
        part=field_part(proposal, field, reader),
        instant=datetime.fromisoformat(field.instant) if field.instant else None,
        flags=tuple(mild),
    )


def field_part(proposal: Proposal, field: ViewField, reader: Reader) -> Part:
    """What this response carries of a field: its whole text with a receipt, or its beginning without."""
    folded = field.folded and field.part not in reader.opened
    hidden = field.data_class == "personal" and not reader.sees_personal
    text = HIDDEN if hidden else (field.preview if folded else field.text or "")
    size = f"{field.lines} lines, " if field.lines > 1 else ""
    return Part(
        key=field.part,
        field=field,
        folded=folded and not hidden,
        opened=field.folded and not folded,
        says=f"all of it: {size}{field.characters:,} characters",
        text=text,
        receipt="" if folded or hidden or not field.folded else receipt_for(proposal, field.part, reader),
    )


def receipt_for(proposal: Proposal, part: str, reader: Reader) -> str:
    """The receipt of a part whose text stands in this response. A reader who is not shown all gets none."""
    if not reader.sees_personal:
        return ""
    return receipts.issue(
        user_id=reader.user_id, proposal_id=proposal.pk, digest=proposal.digest,
        view_digest=proposal.view_digest, part=part, at=reader.now,
    )  # fmt: skip


def check_rows(view: ViewDocument, acknowledged: frozenset[str]) -> tuple[Check, ...]:
    """The warnings that must be acknowledged, each once, in the document's order."""
    rows: dict[str, Check] = {}
    labels = {field.pointer: field for field in view.fields}
    for warning in view.warnings:
        if warning.acknowledge and warning.id not in rows:
            field = labels.get(warning.pointer)
            rows[warning.id] = Check(
                code=warning.id,
                name=warning.label,
                call=CALLS.get(warning.code, warning.code.replace("_", " ")),
                why=warning.sentence,
                field=field.id if field else "",
                seen=warning.id in acknowledged,
            )
    return tuple(rows.values())


def policy_lines(proposal: Proposal) -> tuple[Leader, ...]:
    """The policy's tests as they were answered when the proposal was made."""
    return tuple(
        Leader(
            text=str(test["label"]),
            answer=str(test.get("says") or ("yes" if test["ok"] else "no")),
            tone="ok" if test["ok"] else "bad",
            icon="check" if test["ok"] else "x",
        )
        for test in proposal.policy.get("tests", [])
    )


def origin_rows(proposal: Proposal, names: dict[str, str], reader: Reader) -> tuple[Origin, ...]:
    """Run, step and proposer; for those who may read it, the history."""
    rows = [
        Origin("Run", str(proposal.run_id), href=f"/runs/{proposal.run_id}/", exact=True),
        Origin("Step", proposal.step),
        Origin("Proposed by", names.get(proposal.proposed_by, proposal.proposed_by)),
    ]
    if may_read_history(reader.membership):
        rows.append(Origin("History", "events of this run", href=f"/history/?run={proposal.run_id}"))
    if proposal.supersedes_id:
        earlier = reverse("approvals:proposal", args=[proposal.supersedes_id])
        rows.insert(2, Origin("Replaces", f"version {proposal.version - 1}", href=earlier))
    return tuple(rows)
