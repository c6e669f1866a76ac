"""What an answer about one proposal shows beside it, read on one way to the database: most of it is often empty."""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from approvals.enums import Asked, ProposalStatus
from approvals.models import Decision, Evidence, Proposal, Question
from approvals.policies import votes_question
from approvals.selectors import duplicate_question
from approvals.selectors_questions import questions_of
from audit.receipts import made_question
from common import pipelined
from common.pipelined import ask, first_of
from common.prepared import Reading

_EVIDENCE: Final = Reading(
    Evidence, "WHERE r.proposal_id = %s ORDER BY r.position, r.id",
    only=("kind", "title", "source", "ref", "digest", "captured_at", "fresh_until", "asserted"),
)  # fmt: skip
_NEWER: Final = "SELECT id FROM approvals_proposal WHERE supersedes_id = %s LIMIT 1"
_ASKED: Final = (
    'SELECT id FROM approvals_question WHERE tenant_id = %s AND proposal_id = %s AND "of" = %s LIMIT 1'
)


@dataclass(frozen=True, slots=True)
class Beside:
    """Rows around one proposal, as they stood together. No contents of evidence: those have pages of their own."""

    votes: list[Decision]
    event_id: UUID | None
    superseded_by: UUID | None
    duplicate_of: UUID | None
    command_id: UUID | None
    evidence: list[Evidence]
    questions: list[Question]


def beside(proposal: Proposal) -> Beside:
    """What stands beside it now. An order and questions are looked up only where there can be some."""
    here = proposal.tenant_id, proposal.pk
    votes, event_id, newer, duplicate, evidence, asked = ask(
        votes_question(proposal), made_question(*here),
        first_of(_NEWER, [proposal.pk]), duplicate_question(proposal),
        pipelined.rows_of(_EVIDENCE, proposal.pk), first_of(_ASKED, [*here, Asked.PROPOSER.value]),
    )  # fmt: skip
    return Beside(
        votes, event_id, newer, duplicate, _command_of(proposal), evidence,
        [row for row in questions_of(proposal) if row.of == Asked.PROPOSER] if asked else [],
    )  # fmt: skip


def _command_of(proposal: Proposal) -> UUID | None:
    """What waits for people has no order yet."""
    command: Any = None if proposal.status == ProposalStatus.PENDING else getattr(proposal, "command", None)
    return command.pk if command is not None else None
