"""Rows of what was let through: who approved, what it was, and what became of it."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from approvals.enums import Mode, ProposalStatus
from approvals.models import Decision, Proposal
from audit.names import names_of, spoken
from audit.taking import MOST
from audit.through import through_names, way
from common.display import visible
from common.states_ui import StateUi, state_ui
from workflows.enums import CommandStatus, Effect
from workflows.let_through import Passed, passed
from workflows.screens.words import code_words

C = CommandStatus
COLUMNS: Final = (
    "decided_at", "approved_by", "summary", "target", "operation", "policy", "proposed_by", "proposed_through",
    "became", "why", "taken_back", "run_id", "proposal", "digest",
)  # fmt: skip
_BATCH: Final = 500
NEVER_SENT: Final = StateUi("mute", "ban", "Never sent")


@dataclass(frozen=True, slots=True)
class Voter:
    """Whose yes it was, and where everything stands that they let through."""

    text: str
    href: str


@dataclass(frozen=True, slots=True)
class PassedRow:
    """One approved version."""

    at: datetime | None
    who: tuple[Voter, ...]
    summary: str
    target: str
    operation: str
    policy: str
    proposed_by: str
    came: str
    """With which token, or by which endpoint; empty where that is not known, or nothing for people."""
    through: str
    digest: str
    ui: StateUi
    became: str
    taken_back: bool
    run_id: str
    href: str
    proposal_href: str


def passed_rows(found: Sequence[Passed]) -> list[PassedRow]:
    names = names_of({one.proposal.proposed_by for one in found})
    through = {one.proposal.proposed_through for one in found}
    ways = through_names(found[0].proposal.tenant_id, through) if found else {}
    return [
        _row(one, spoken(one.proposal.proposed_by, names), way(one.proposal.proposed_through, ways))
        for one in found
    ]


def passed_lines(found: QuerySet[Proposal]) -> Generator[dict[str, Any]]:
    """The rows of the list for a file, all pages of it; made, as the list is, without personal values."""
    with transaction.atomic():
        proposals = found.defer("contract", "view", "volatile")[: MOST + 1].iterator(chunk_size=_BATCH)
        while some := list(islice(proposals, _BATCH)):
            for row in passed_rows(passed(some)):
                yield {
                    "decided_at": row.at.isoformat() if row.at else None,
                    "approved_by": ", ".join(one.text for one in row.who),
                    "summary": row.summary, "target": row.target, "operation": row.operation, "policy": row.policy,
                    "proposed_by": row.proposed_by, "proposed_through": row.through,
                    "became": row.ui.word, "why": row.became, "taken_back": row.taken_back, "run_id": row.run_id,
                    "proposal": row.proposal_href, "digest": row.digest,
                }  # fmt: skip


def _row(one: Passed, proposed_by: str, came: str) -> PassedRow:
    proposal = one.proposal
    ui, became = became_of(one)
    return PassedRow(
        at=proposal.decided_at, who=tuple(map(_voter, one.votes)), summary=visible(proposal.summary),
        target=visible(proposal.target), operation=f"{proposal.operation}, version {proposal.operation_version}",
        policy=f"{proposal.workflow}, policy version {proposal.policy.get('version', '')}, "
        f"rule {visible(str(proposal.policy.get('rule', '')))}",
        proposed_by=proposed_by, came=came, through=proposal.proposed_through or "", digest=proposal.digest, ui=ui,
        became=became, taken_back=one.taken_back,
        run_id=str(proposal.run_id), href=reverse("explorer:run", args=[proposal.run_id]) + f"#v-{proposal.pk}",
        proposal_href=reverse("approvals:proposal", args=[proposal.pk]),
    )  # fmt: skip


def _voter(vote: Decision) -> Voter:
    if not vote.user:
        version = f", version {vote.rule_version}" if vote.rule_version is not None else ""
        return Voter(f"rule {visible(vote.rule)}{version}", f"{reverse('explorer:let_through')}?via=rule")
    stead = f" for {visible(str(vote.in_stead_of))}" if vote.in_stead_of else ""
    return Voter(f"{visible(str(vote.user))}{stead}", passed_by(vote))


def passed_by(vote: Decision) -> str:
    """Where everything stands that this person let through; of a rule nothing."""
    return f"{reverse('explorer:let_through')}?person={vote.user_id}" if vote.user_id else ""


def became_of(one: Passed) -> tuple[StateUi, str]:
    """What became of an approval, in one word and a few more."""
    command, proposal = one.command, one.proposal
    if command is None:
        if proposal.mode != Mode.LIVE:
            return NEVER_SENT, f"{Mode(proposal.mode).label.lower()}: nothing is sent"
        return NEVER_SENT, ProposalStatus(proposal.status).label.lower()
    code = code_words(visible(command.void_reason or command.failure_code))
    ended_unsent = (
        command.status in C.final_states and command.effect == Effect.NONE and not command.first_sent_at
    )
    if ended_unsent and command.status != C.REFUSED:
        return NEVER_SENT, code or C(command.status).label.lower()
    partial = "in part" if command.effect == Effect.PARTIAL else ""
    return state_ui("command", command.status), partial or ("" if command.status == C.CONFIRMED else code)
