"""The list *Afterwards*, and one automatic action that a person looks at once it was done."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Q
from django.http import QueryDict
from django.urls import reverse

from access.models import Membership
from access.selectors import standings
from approvals import sampling
from approvals.models import Sample
from approvals.sampling import Counter
from common.display import visible
from common.links import same_list

PAGE_SIZE: Final = 25


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One line: what was done by itself, and what somebody said of it, or why this person does not."""

    href: str
    summary: str
    workflow: str
    rule: str
    at: datetime
    closed: str
    verdict: str
    by: str


@dataclass(frozen=True, slots=True)
class AfterwardsScreen:
    """What waits for a look, oldest first; what was said last; and what adds up for each workflow."""

    waiting: tuple[SampleRow, ...]
    total: int
    more: str
    first: str
    said: tuple[SampleRow, ...]
    counters: tuple[Counter, ...]

    @property
    def alarming(self) -> tuple[Counter, ...]:
        return tuple(counter for counter in self.counters if counter.alarming)


def afterwards_screen(membership: Membership, query: QueryDict, now: datetime) -> AfterwardsScreen:
    tenant_id, here = membership.tenant_id, reverse("approvals:afterwards")
    found = sampling.waiting(tenant_id).order_by("picked_at", "id")
    after = _place(query.get("after", ""))
    if after is not None:
        found = found.filter(Q(picked_at=after[0], pk__gt=after[1]) | Q(picked_at__gt=after[0]))
    rows = list(found.defer("proposal__contract", "proposal__view", "proposal__volatile")[: PAGE_SIZE + 1])
    last = rows[PAGE_SIZE - 1] if len(rows) > PAGE_SIZE else None
    closed = _Closed(membership)
    said = sampling.said(tenant_id).defer("proposal__contract", "proposal__view", "proposal__volatile")
    counters = tuple(sampling.counters(tenant_id, now))
    return AfterwardsScreen(
        waiting=tuple(_row(row, closed) for row in rows[:PAGE_SIZE]),
        total=sum(counter.waiting for counter in counters),
        more=same_list(here, query, after=f"{last.picked_at.isoformat()}~{last.pk}") if last else "",
        first=here if after is not None else "",
        said=tuple(_row(row, closed) for row in said[:PAGE_SIZE]), counters=counters,
    )  # fmt: skip


class _Closed:
    """Why this person does not say anything about a sample; read once for all lines."""

    def __init__(self, membership: Membership) -> None:
        found = standings(membership.tenant_id, [membership.user_id])
        self.standing = found.get(membership.user_id)

    def of(self, sample: Sample) -> str:
        it = self.standing
        if it is None or "reviewer" not in it.roles:
            return "For reviewers"
        if not it.accounts.isdisjoint(sample.proposal.excluded_users):
            return "Your own"
        group = sample.proposal.group_id
        return "Another group" if group is not None and group not in it.group_ids else ""


def _row(sample: Sample, closed: _Closed) -> SampleRow:
    proposal = sample.proposal
    return SampleRow(
        href=reverse("approvals:sample", args=[sample.pk]), summary=proposal.summary, workflow=sample.workflow,
        rule=str(proposal.policy.get("rule", "")), at=sample.at or proposal.ended_at or sample.picked_at,
        closed="" if sample.at else closed.of(sample), verdict=sample.verdict or "",
        by=visible(str(sample.user)) if sample.user else "",
    )  # fmt: skip


def _place(text: str) -> tuple[datetime, UUID] | None:
    at, _, pk = text.partition("~")
    try:
        moment = datetime.fromisoformat(at)
        return (moment, UUID(pk)) if moment.tzinfo else None
    except ValueError:
        return None
