"""What somebody, some rule or some policy let through: approved proposals, and what became of each."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals.enums import DecisionKind
from approvals.models import Decision, Proposal
from audit.finding import as_uuid
from audit.through import words_for
from workflows.counteractions import BETWEEN
from workflows.enums import Effect, RunKind
from workflows.models import Command

MOST_PEOPLE: Final = 50
MOST_COUNTED: Final = 10_000
DEPUTY: Final = "deputy"
"""Asks for what was approved in somebody's stead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for; empty fields ask for nothing. The times are those of the deciding vote."""

    person: str = ""
    automation: str = ""
    workflow: str = ""
    policy: int | None = None
    operation: str = ""
    target: str = ""
    via: str = ""
    through: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """One approved version with the votes that carried it, its order, and whether its effect was taken back."""

    proposal: Proposal
    votes: Sequence[Decision]
    command: Command | None
    taken_back: bool


def let_through(tenant_id: UUID, asked: Asked) -> QuerySet[Proposal]:
    """The tenant's approved versions, newest first."""
    exact = {
        "workflow": asked.workflow, "policy__version": asked.policy, "operation": asked.operation,
        "decided_at__gte": asked.since, "decided_at__lt": asked.until, "created_at__lt": asked.until,
    }  # fmt: skip
    found = Proposal.objects.filter(
        tenant_id=tenant_id,
        execute_by__isnull=False,
        **{name: value for name, value in exact.items() if value},
    )
    if asked.automation:
        names = (asked.automation, f"api:{asked.automation}")
        found = found.filter(proposed_by__in=names)
    if asked.through:
        words = words_for(tenant_id, asked.through)
        # By equality the index gives them in the order of the list.
        found = (
            found.filter(proposed_through=words[0])
            if len(words) == 1
            else found.filter(proposed_through__in=words)
        )
    if asked.target:
        found = found.filter(Q(target__iexact=asked.target) | Q(target__iendswith=f":{asked.target}"))
    if asked.person or asked.via == DEPUTY:
        found = found.filter(pk__in=_approvals(tenant_id, asked))
    if asked.via and asked.via != DEPUTY:
        by_rule = Exists(Decision.objects.filter(proposal=OuterRef("pk"), replaced_at=None).exclude(rule=""))
        found = found.filter(by_rule if asked.via == "rule" else ~by_rule)
    return found.order_by("-created_at", "-id")


def counted(found: QuerySet[Proposal]) -> int:
    """How many there are; one more than `MOST_COUNTED` where there are more than that."""
    return found.order_by()[: MOST_COUNTED + 1].count()


def passed(proposals: Sequence[Proposal]) -> list[Passed]:
    """Four queries, however many there are."""
    votes: dict[UUID, list[Decision]] = defaultdict(list)
    given = Decision.objects.filter(
        proposal__in=proposals, kind=DecisionKind.APPROVE, replaced_at__isnull=True
    ).select_related("user", "in_stead_of").order_by("at", "pk")  # fmt: skip
    for vote in given:
        votes[vote.proposal_id].append(vote)
    orders = {row.proposal_id: row for row in Command.objects.filter(proposal__in=proposals)}
    back = _taken_back(proposals)
    return [
        Passed(row, votes[row.pk], orders.get(row.pk), _is_back(row, back)) for row in proposals
    ]  # fmt: skip


def _approvals(tenant_id: UUID, asked: Asked) -> QuerySet[Decision]:
    """The votes that are meant. As deputies: of whoever voted, and of whoever they stood in for."""
    found = Decision.objects.filter(tenant_id=tenant_id, kind=DecisionKind.APPROVE, replaced_at__isnull=True)
    whose = Q()
    if asked.person:
        people = _people(tenant_id, asked.person)
        whose = Q(user_id__in=people)
        if asked.via == DEPUTY:
            whose |= Q(in_stead_of_id__in=people)
    if asked.via == DEPUTY:
        whose &= Q(in_stead_of__isnull=False)
    return found.filter(whose).values("proposal_id")  # type: ignore[return-value]


def _people(tenant_id: UUID, words: str) -> list[UUID]:
    """The accounts that are meant: one by its id, else by name, as far as they are the tenant's."""
    ident = as_uuid(words.removeprefix("user:"))
    named = Q(pk=ident) if ident else Q(display_name__icontains=words) | Q(username__iexact=words)
    people = get_user_model()._default_manager.filter(named, memberships__tenant_id=tenant_id)
    return list(people.order_by("pk").values_list("pk", flat=True).distinct()[:MOST_PEOPLE])


def _taken_back(proposals: Sequence[Proposal]) -> Mapping[UUID, set[str]]:
    """The steps of runs whose effect a compensation has taken back, wholly or in part."""
    found: dict[UUID, set[str]] = defaultdict(set)
    undone = Command.objects.filter(
        run__original_id__in={row.run_id for row in proposals}, run__kind=RunKind.UNDO,
        effect__in=(Effect.HAPPENED, Effect.PARTIAL),
    )  # fmt: skip
    for run_id, key in undone.values_list("run__original_id", "step__key"):
        if run_id is not None:
            found[run_id].add(key)
    return found


def _is_back(proposal: Proposal, back: Mapping[UUID, set[str]]) -> bool:
    return any(key.startswith(f"{proposal.step}{BETWEEN}undo") for key in back.get(proposal.run_id, ()))
