"""The runs that stand for all of an incident: one that went well, one that needed another try, one that failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals.models import Proposal
from repair.models import RepairPacket
from repair.models_incidents import Incident, IncidentRun
from workflows.enums import CommandStatus, RunStatus
from workflows.models import Attempt, Command, Run

WORDS: Final = {
    "clean": "A clean one", "corrected": "One that needed another try or a correction", "failed": "One that failed",
}  # fmt: skip
OFFERED: Final = 100
"""Runs to choose one from: of many that are alike any stands for the others."""
STANDS_STILL: Final = (RunStatus.FAILED, RunStatus.MANUAL_REPAIR, RunStatus.UNKNOWN, RunStatus.DEGRADED)


@dataclass(frozen=True, slots=True)
class Trace:
    """One of the three places, and the run that stands in it; ``suggested``: that code chose, and no person yet."""

    name: str
    words: str
    run: Run | None
    suggested: bool


def traces_of(incident: Incident) -> tuple[Trace, ...]:
    """What people chose, and where they chose nothing what fits best."""
    return tuple(_trace(incident, name) for name in WORDS)


def _trace(incident: Incident, name: str) -> Trace:
    chosen: Run | None = getattr(incident, f"trace_{name}")
    if chosen is not None:
        return Trace(name, WORDS[name], chosen, suggested=False)
    return Trace(name, WORDS[name], suggestion(incident, name), suggested=True)


def suggestion(incident: Incident, name: str) -> Run | None:
    """The newest that fits: among the incident's own runs; a clean one else among those of the same workflow."""
    found = fitting(incident, name)
    if name != "clean":
        return _newest(found)
    touched = IncidentRun.objects.filter(incident=incident).values("run_id")
    return _best(found) or _clean_elsewhere(incident, touched)


def runs_of(incident: Incident) -> QuerySet[Run]:
    touched = IncidentRun.objects.filter(incident=incident).values("run_id")
    return Run.objects.filter(tenant_id=incident.tenant_id, pk__in=touched)


def fitting(incident: Incident, name: str) -> QuerySet[Run]:
    """Its runs that could stand in this place."""
    ours = runs_of(incident)
    if name == "corrected":
        return ours.filter(_needed_more(), status=RunStatus.COMPLETED)
    return ours.filter(Q(status__in=STANDS_STILL) | _stopped()) if name == "failed" else _clean(ours)


def offered(incident: Incident, name: str) -> tuple[list[Run], list[Run]]:
    """To be chosen from, the newest first: those that fit, and the others of its runs. What stands there now and what
    is suggested are among them, wherever they come from.
    """
    kept = [getattr(incident, f"trace_{name}"), suggestion(incident, name)]
    fit = list(fitting(incident, name).order_by("-created_at", "-id")[:OFFERED])
    fit = [*fit, *(run for run in dict.fromkeys(kept) if run is not None and run not in fit)]
    others = runs_of(incident).exclude(pk__in=[run.pk for run in fit]).order_by("-created_at", "-id")
    return fit, list(others[: max(0, OFFERED - len(fit))])


def _clean_elsewhere(incident: Incident, touched: Any) -> Run | None:
    workflow = incident.criteria.get("workflow") or _workflow_of(touched)
    others = Run.objects.filter(
        tenant_id=incident.tenant_id, workflow=workflow, created_at__gte=incident.criteria["since"]
    )
    return _best(_clean(others))


def _workflow_of(touched: Any) -> str:
    found = (
        Run.objects.filter(pk__in=touched).order_by("-created_at", "-id").values_list("workflow", flat=True)
    )
    return found.first() or ""


def _clean(runs: QuerySet[Run]) -> QuerySet[Run]:
    return runs.filter(~_needed_more(), ~_stopped(), status=RunStatus.COMPLETED)


def _needed_more() -> Any:
    """A second try, a second version of what was asked, or an outcome that people corrected."""
    tried = Exists(Attempt.objects.filter(command__run_id=OuterRef("pk"), number__gt=1))
    anew = Exists(
        Proposal.objects.filter(tenant_id=OuterRef("tenant_id"), run_id=OuterRef("pk"), version__gt=1)
    )
    return tried | anew | ~Q(corrected_outcome="")


def _stopped() -> Any:
    return Exists(RepairPacket.objects.filter(run_id=OuterRef("pk")))


def _best(runs: QuerySet[Run]) -> Run | None:
    """One that did what was asked, before one that was declined or had nothing to do."""
    did = Exists(Command.objects.filter(run_id=OuterRef("pk"), status=CommandStatus.CONFIRMED))
    return _newest(runs.filter(did)) or _newest(runs)


def _newest(runs: QuerySet[Run]) -> Run | None:
    return runs.order_by("-created_at", "-id").first()


def targets_of(runs: Sequence[Run]) -> dict[UUID, str]:
    """By run what its action is on; one statement for all of them."""
    ids = [run.pk for run in runs]
    asked = (
        Proposal.objects.filter(tenant_id=runs[0].tenant_id, run_id__in=ids)
        if runs
        else Proposal.objects.none()
    )
    return dict(asked.order_by("created_at", "pk").values_list("run_id", "target"))
