"""The runs that something touched: a bounded look, by the index of the newest runs, in one organisation.

Model and prompt stand in JSON (a run's versions, a step's usage, the codes in its notes), so whatever is asked for, at
most `SCANNED` runs of the time are looked at, the newest, and the page says so where there are more.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals.models import Proposal
from repair.incidents.criteria import Criteria
from repair.models import RepairPacket
from workflows import registry
from workflows.models import Command, Run, Step

MOST: Final = 2_000
"""Runs that one incident holds, and one freeze names."""
SCANNED: Final = 50_000
"""Runs of the time that are looked at."""


@dataclass(frozen=True, slots=True)
class Found:
    """``runs``: all that fit, newest first. ``count``: how many, at most `MOST` and one more."""

    runs: QuerySet[Run]
    count: int
    cut: bool
    """Whether the time holds more runs than were looked at."""

    @property
    def more(self) -> bool:
        """Whether there are, or may be, more than an incident holds."""
        return self.cut or self.count > MOST

    @property
    def says(self) -> str:
        """How many, in words that are true."""
        if self.count > MOST:
            return f"more than {MOST:,}"
        return f"at least {self.count:,}" if self.cut else f"{self.count:,}"


def find(tenant_id: UUID, criteria: Criteria, now: datetime) -> Found:
    """Three reads: where the look ends, how many fit, and, when somebody reads them, the runs."""
    since, cut = _reach(tenant_id, criteria, now)
    runs = _within(tenant_id, since, criteria.at(now)).filter(*conditions(tenant_id, criteria))
    runs = runs.order_by("-created_at", "-id")
    return Found(runs, runs[: MOST + 1].values("pk").count(), cut)


def _within(tenant_id: UUID, since: datetime, until: datetime) -> QuerySet[Run]:
    return Run.objects.filter(tenant_id=tenant_id, created_at__gte=since, created_at__lte=until)


def _reach(tenant_id: UUID, criteria: Criteria, now: datetime) -> tuple[datetime, bool]:
    """From when on runs are looked at, and whether that is later than was asked for."""
    newest = _within(tenant_id, criteria.since, criteria.at(now)).order_by("-created_at", "-id")
    last = newest.values_list("created_at", flat=True)[SCANNED : SCANNED + 1].first()
    return (criteria.since, False) if last is None else (last, True)


def conditions(tenant_id: UUID, criteria: Criteria) -> list[Any]:
    """What a run must fulfil, beside its time."""
    made: list[Any] = []
    if criteria.workflow:
        made.append(Q(workflow=criteria.workflow))
    if criteria.workflow_version is not None:
        made.append(Q(workflow_version=criteria.workflow_version))
    if criteria.outcome:
        ended = Q(outcome=criteria.outcome) | Q(corrected_outcome=criteria.outcome)
        made.append(ended | Q(status=criteria.outcome))
    if criteria.model:
        made.append(_said_by_a_step("model", criteria.model, "model", "classifier"))
    if criteria.prompt:
        made.append(_said_by_a_step("prompt", criteria.prompt, "prompt"))
    if criteria.cause:
        made.append(Exists(RepairPacket.objects.filter(
            tenant_id=tenant_id, run_id=OuterRef("pk"), cause=criteria.cause
        )))  # fmt: skip
    return made + _of_its_action(tenant_id, criteria)


def _said_by_a_step(member: str, value: str, *codes: str) -> Any:
    """In the run's versions, a step's usage, or as a code in its notes, such as ``classifier:rules@1``."""
    noted = Q(**{f"usage__{member}": value})
    for code in codes:
        noted |= Q(notes__contains=[f"{code}:{value}"])
    return Q(**{f"versions__{member}": value}) | Exists(Step.objects.filter(noted, run_id=OuterRef("pk")))


def _of_its_action(tenant_id: UUID, criteria: Criteria) -> list[Any]:
    """All that is said of an action must be true of the same one."""
    named = {
        "operation": criteria.operation, "operation_version": criteria.operation_version,
        "target": criteria.target, "policy__version": criteria.policy_version,
    }  # fmt: skip
    asked: dict[str, Any] = {name: value for name, value in named.items() if value not in ("", None)}
    if not asked and not criteria.policy and not criteria.provider:
        return []
    asked_for = Proposal.objects.filter(tenant_id=tenant_id, run_id=OuterRef("pk"), **asked)
    if criteria.policy:
        asked_for = asked_for.filter(_operations(lambda known: known.policy.name == criteria.policy))
    if criteria.provider:
        sent = Command.objects.filter(proposal_id=OuterRef("pk"), provider=criteria.provider)
        theirs = _operations(lambda known: known.provider == criteria.provider)
        asked_for = asked_for.filter(theirs | Exists(sent))
    return [Exists(asked_for)]


def _operations(fits: Any) -> Q:
    """The installed operations that fit, in their versions; nothing where none does."""
    found = Q(pk__in=())
    for name, version in registry.known_operations():
        if fits(registry.operation(name, version)):
            found |= Q(operation=name, operation_version=version)
    return found
