"""Reads of proposals for programs: one, a page of them, and whether one has changed.

Screens have `approvals.screens`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from approvals.enums import DecisionKind, ProposalStatus
from approvals.models import Decision, Proposal
from approvals.policies import standing_votes
from common.cursors import PAGE, Page, page
from common.errors import NotFound
from common.pipelined import Question, ask, first_of

S = ProposalStatus
TIMED = (S.PENDING, S.CHANGES_REQUESTED)
"""States that end by the clock alone, whether or not somebody has written it down yet."""


def get_proposal(tenant_id: UUID, proposal_id: UUID) -> Proposal:
    """The proposal. Raises NotFound, also for another tenant's."""
    found = Proposal.objects.filter(tenant_id=tenant_id, pk=proposal_id).first()
    if found is None:
        raise NotFound("There is no such proposal.")
    return found


def list_proposals(
    tenant_id: UUID,
    *,
    status: str = "",
    workflow: str = "",
    now: datetime,
    cursor: str = "",
    size: int = PAGE,
) -> Page[Proposal]:
    """A page of the tenant's proposals, newest first. Raises BadCursor."""
    found = Proposal.objects.filter(tenant_id=tenant_id)
    if workflow:
        found = found.filter(workflow=workflow)
    if status:
        found = _in_status(found, status, now)
    # A line shows neither the signed bytes nor the page that was shown, and counts votes.
    lines = found.defer("contract", "view", "volatile").prefetch_related("decisions")
    return page(lines, list_name="proposals", cursor=cursor, size=size)


def _in_status(found: "QuerySet[Proposal]", status: str, now: datetime) -> "QuerySet[Proposal]":
    """By the clock, not by the stored word alone: what nobody decided in time is expired from that instant on."""
    over = Q(status__in=TIMED, decide_by__lte=now)
    if status == S.EXPIRED:
        return found.filter(Q(status=S.EXPIRED) | over)
    return found.filter(status=status).exclude(over)


def duplicate_of(proposal: Proposal) -> UUID | None:
    """The oldest other live proposal of the very same thing, asked for earlier or later; None for one that has ended.

    A proposal is accepted all the same, and says so: only one of them is ever executed at a time.
    """
    found: UUID | None = ask(duplicate_question(proposal))[0]
    return found


def duplicate_question(proposal: Proposal) -> Question[UUID | None]:
    """The same, for who asks more on the same way."""
    here = [proposal.is_live, proposal.tenant_id, proposal.business_key, proposal.pk]
    return first_of(_SAME_THING, here)


# Approved is the end of what no worker will do: a shadow, a draft. The states stand in the text, as in the index.
_SAME_THING: Final = f"""
    SELECT p.id FROM approvals_proposal p
    WHERE %s AND p.tenant_id = %s AND p.business_key = %s AND p.id <> %s
      AND p.status IN ({", ".join(f"'{state}'" for state in S.live_states)})
      AND NOT (p.status = 'approved' AND p.mode <> 'live')
    ORDER BY p.created_at, p.id LIMIT 1
"""  # noqa: S608 - our own words


def shown_status(proposal: Proposal, now: datetime) -> str:
    """The status as it is on the clock: a proposal that nobody decided in time has expired, swept or not."""
    if proposal.status in TIMED and now >= proposal.decide_by:
        return S.EXPIRED.value
    return str(proposal.status)


def ended_because(proposal: Proposal, votes: Sequence[Decision]) -> str:
    """Why it ended or goes back: the words of whoever did it, else their code or a sentence of ours."""
    said = [vote.reason or vote.reason_code for vote in votes if vote.kind != DecisionKind.APPROVE]
    by_people = said[-1] if said and proposal.status in (S.REJECTED, S.CHANGES_REQUESTED) else ""
    return proposal.end_words or by_people or proposal.end_reason


def last_decision(proposal: Proposal) -> Decision | None:
    """The newest standing vote."""
    votes = standing_votes(proposal)
    return votes[-1] if votes else None


_MOVED = """
    SELECT state_version <> %s OR (status = ANY(%s) AND decide_by <= clock_timestamp())
    FROM approvals_proposal WHERE tenant_id = %s AND id = %s
"""


def has_moved(tenant_id: UUID, proposal_id: UUID, since: int) -> bool:
    """Whether a proposal is no longer at that state version, or its time is over. One row by its key."""
    with connection.cursor() as cursor:
        cursor.execute(_MOVED, [since, list(TIMED), tenant_id, proposal_id])
        row = cursor.fetchone()
    return row is None or bool(row[0])
