"""One proposal as its page shows it: the stored view document, and beside it what is known now."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.urls import reverse

from approvals.enums import Mode, ProposalStatus
from approvals.models import Proposal
from approvals.refusals import Uninspectable
from approvals.screens.asked import asked_notices
from approvals.screens.changes import Change, affected_rows, difference_rows, difference_says
from approvals.screens.checks import Check, check_rows, what_is_left
from approvals.screens.evidence import EvidencePiece, evidence_pieces, evidence_says
from approvals.screens.people import Person, names_of, people_rows, people_title, stamp_of, votes_given
from approvals.screens.queue import next_waiting
from approvals.screens.rejections import rejection_notices
from approvals.screens.slip import Left, Reader, Slip, SlipField, receipt_for, slip_of
from approvals.screens.standing import Notice, notices_of
from approvals.screens.versions import version_notices
from approvals.shown import view_of
from approvals.viewmodels import MAIN, ViewDocument, ViewRow, ViewWarning
from audit.readers import may_read_history
from common import spans
from common.content_errors import ContentErased
from common.desk_parts import Leader
from common.disclosure import Recipient, disclosed
from common.display import visible

UNREADABLE: Final = ViewWarning(
    code="unreadable",
    label="The whole proposal",
    sentence="What was stored for people to read is damaged or was changed afterwards.",
    acknowledge=False,
)
WAS_ERASED: Final = "What it said was erased. Digests, times, and who decided are kept."
OWN_WORDS: Final = "⟦somebody's own words, not shown to your role⟧"
ERASED: Final = ViewWarning(
    code="erased", label="The whole proposal", sentence=WAS_ERASED, acknowledge=False,
)  # fmt: skip


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
    recipient: Recipient
    slip: Slip
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
        return self.slip.is_open

    @property
    def fields(self) -> tuple[SlipField, ...]:
        """The fields that stand on the slip one by one."""
        return self.slip.fields

    @property
    def difference_says(self) -> str:
        """The names of the fields that the earlier version had otherwise."""
        return difference_says(self.difference)

    @property
    def left(self) -> tuple[Left, ...]:
        """What keeps Approve closed, each thing with its name and place: what the server knows of this page."""
        return what_is_left(self.slip, self.checks)

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
        return not {ERASED, UNREADABLE} & set(self.view.warnings)

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
        if exception := self.proposal.policy.get("review", {}).get("because"):
            return f"{exception} The rule alone would have let it through: {said}"
        mode = Mode(self.proposal.mode)
        stage = "is on stage approve" if mode == Mode.LIVE else f"only makes {mode.label.lower()} proposals"
        return f"This workflow {stage}. The rule alone would have let it through: {said}"

    @property
    def failed(self) -> tuple[str, ...]:
        """The tests of the rule that did not pass: what made it ask."""
        tests = self.proposal.policy.get("tests", [])
        return tuple(
            f"{test['label']}{': ' if test.get('says') else ''}{test.get('says', '')}"
            for test in tests
            if not test["ok"]
        )

    @property
    def said(self) -> str:
        """What the automation wrote about it: shown as somebody else's words."""
        said = visible(self.proposal.reason)
        return said if not said or self.recipient.personal else OWN_WORDS

    @property
    def unbound(self) -> tuple[ViewRow, ...]:
        """What is shown and not signed; it may be personal like anything else."""
        return tuple(
            row.model_copy(update={"text": disclosed(row.text, row.data_class, self.recipient)})
            for row in self.view.unbound
        )

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
    votes = list(
        proposal.decisions.filter(replaced_at__isnull=True).select_related("user", "group", "in_stead_of")
    )
    names = names_of(proposal)
    following = next_waiting(proposal, reader.membership, reader.now)
    evidence = evidence_pieces(proposal, view, sees_personal=reader.sees_personal, now=reader.now)
    return ProposalScreen(
        proposal=proposal,
        view=view,
        now=reader.now,
        recipient=reader.recipient,
        slip=slip_of(proposal, view, reader),
        checks=check_rows(view, frozenset(acknowledged)),
        receipt=receipt_for(proposal, MAIN, reader),
        affected=affected_rows(view, reader.recipient),
        difference=difference_rows(proposal, view, to=reader.recipient),
        evidence=evidence,
        evidence_says=evidence_says(evidence),
        policy=policy_lines(proposal),
        people=people_rows(proposal, votes, reader.user_id, words=reader.sees_personal),
        people_title=people_title(proposal),
        votes=votes_given(proposal, votes),
        stamp=stamp_of(proposal, votes),
        notices=(
            *unreadable_notice(view),
            *asked_notices(proposal, reader.now),
            *notices_of(proposal, votes, words=reader.sees_personal),
            *version_notices(proposal, view, votes, reader.user_id),
            *rejection_notices(proposal, reader.now, words=reader.sees_personal),
        ),
        origin=origin_rows(proposal, names, reader),
        next=reverse("approvals:proposal", args=[following]) if following else "",
    )


def readable_view(proposal: Proposal) -> ViewDocument:
    """The stored document; where its bytes cannot be read any more, one without fields that nobody can approve."""
    try:
        return view_of(proposal)
    except (ContentErased, Uninspectable) as gone:
        erased = isinstance(gone, ContentErased)
        return ViewDocument(
            operation=proposal.operation,
            operation_version=proposal.operation_version,
            contract_digest=proposal.digest,
            headline=visible(proposal.summary),
            consequence=WAS_ERASED if erased else "What this proposal would do cannot be shown.",
            fields=(),
            warnings=(ERASED if erased else UNREADABLE,),
            uninspectable=True,
        )


def unreadable_notice(view: ViewDocument) -> tuple[Notice, ...]:
    """Told first: there is no slip on the page, because nothing can be shown on it."""
    if ERASED in view.warnings:
        return (Notice("mute", "eye-off", "Its content was erased.", WAS_ERASED),)
    if UNREADABLE not in view.warnings:
        return ()
    return (Notice("bad", "eye-off", "It cannot be shown.", UNREADABLE.sentence),)


def policy_lines(proposal: Proposal) -> tuple[Leader, ...]:
    """The policy's tests as they were answered when the proposal was made."""
    return tuple(
        Leader(
            text=str(test["label"]),
            answer=str(test.get("says") or ("yes" if test["ok"] else "no")),
            tone="ok" if test["ok"] else "bad",
            icon="check" if test["ok"] else "x",
        )
        for test in (*proposal.policy.get("tests", []), *proposal.policy.get("review", {}).get("tests", []))
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
        rows.append(
            Origin("Story", "who let it through, and on what", href=f"/history/runs/{proposal.run_id}/")
        )
    if proposal.supersedes_id:
        earlier = reverse("approvals:proposal", args=[proposal.supersedes_id])
        rows.insert(2, Origin("Replaces", f"version {proposal.version - 1}", href=earlier))
    return tuple(rows)
