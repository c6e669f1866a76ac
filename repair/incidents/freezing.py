"""Freezing what an incident touched: exactly its runs, or the smallest scope that a freeze can name.

A freeze of runs names them in its own row, which is read in the place and under the lock of every other freeze: see
`workflows.scope`.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from access.models import Membership
from audit.actors import Actor
from common.clock import Clock
from common.errors import InvalidInput
from common.tx import action
from repair.enums import IncidentStatus, NoteKind
from repair.incidents.acting import (
    IncidentMoved,
    add_note,
    check_may,
    get_incident,
    lock_incident,
    record_incident,
)
from repair.incidents.criteria import OF_A_FREEZE, Criteria
from repair.models_incidents import Incident, IncidentNote, IncidentRun
from workflows.actions.freezing import Scope, freeze, widened
from workflows.enums import HoldStatus
from workflows.models import Hold
from workflows.screens.confirm import sentence_of
from workflows.selectors_holds import holds_of, on_their_way

THE_RUNS: Final = "runs"
THE_SCOPE: Final = "scope"


class NothingToFreeze(InvalidInput):
    """Every run of it is held by a freeze of this incident already."""

    code = "nothing_to_freeze"


@dataclass(frozen=True, slots=True)
class Offer:
    """One way to freeze: what it would stop, and what else."""

    code: str
    title: str
    says: str
    also: str
    scope: Scope
    waiting: int
    """Approved and not sent, within it, now."""
    in_flight: int


def offers(incident: Incident, membership: Membership) -> tuple[Offer, ...]:
    """The narrow way first, where there is anything left to name."""
    criteria, left = Criteria.from_json(incident.criteria), unfrozen(incident)
    waiting = _waiting(Scope(incident.tenant_id, runs=left))[0] if left else 0
    wide = _scope_offer(incident, criteria, membership, waiting)
    return (_runs_offer(incident, left), wide) if left else (wide,)


def _runs_offer(incident: Incident, left: tuple[UUID, ...]) -> Offer:
    scope = Scope(incident.tenant_id, runs=left)
    waiting, in_flight = _waiting(scope)
    number = f"{len(left):,} {'run' if len(left) == 1 else 'runs'}"
    also = "Nothing else stops. Runs that join later are not held by it: freeze them in their turn."
    if incident.more:
        also += (
            " More runs fit than an incident holds, and those go on: use the wider freeze, or a shorter time."
        )
    return Offer(
        THE_RUNS, f"Exactly the {number}", f"Nothing that {_these(left)} asked for, or will ask for, is newly sent.",
        also, scope, waiting, in_flight,
    )  # fmt: skip


def _these(left: tuple[UUID, ...]) -> str:
    return "this run" if len(left) == 1 else f"these {len(left):,} runs"


def _scope_offer(incident: Incident, criteria: Criteria, membership: Membership, ours: int) -> Offer:
    scope = _covering(incident.tenant_id, criteria)
    named = {name: value for name in OF_A_FREEZE if (value := getattr(scope, name)) not in ("", None)}
    waiting, in_flight = _waiting(scope)
    also = "It holds what came before the time of this incident too, and what comes after it, until it is lifted."
    if not criteria.is_a_scope or named != criteria.named:
        more = max(0, waiting - ours)
        also = (
            "No freeze can name all that these runs have in common, so this is the smallest that covers them. "
            f"{more:,} more approved {'action' if more == 1 else 'actions'} would wait, and all that comes. {also}"
        )
    parts = [f"{name.replace('_', ' ')} {value}" for name, value in named.items()]
    title = f"Everything of {', '.join(parts)}" if parts else "Everything of this organisation"
    return Offer(THE_SCOPE, title, sentence_of(scope, membership.tenant), also, scope, waiting, in_flight)


def _covering(tenant_id: UUID, criteria: Criteria) -> Scope:
    """The smallest scope that a freeze can name and that covers all of it."""
    named = {name: value for name, value in criteria.named.items() if name in OF_A_FREEZE}
    return widened(Scope(tenant_id, **named))


def _waiting(scope: Scope) -> tuple[int, int]:
    assert scope.tenant_id is not None
    runs = list(scope.runs) or None
    named = Hold(
        tenant_id=scope.tenant_id, workflow=scope.workflow, workflow_version=scope.workflow_version,
        operation=scope.operation, target=scope.target, runs=runs,
    )  # fmt: skip
    return on_their_way(named, scope.tenant_id)


def freezes_of(incident: Incident) -> list[Hold]:
    """Every freeze that was placed from it, the newest first."""
    placed = IncidentNote.objects.filter(incident=incident, hold_id__isnull=False).values("hold_id")
    return list(holds_of(incident.tenant_id).filter(pk__in=placed).order_by("-placed_at", "-id"))


def unfrozen(incident: Incident) -> tuple[UUID, ...]:
    """Its runs that no freeze of runs of this incident holds now, the newest first."""
    live = [hold for hold in freezes_of(incident) if hold.status in HoldStatus.holding_states]
    held = {run for hold in live for run in hold.runs or ()}
    runs = IncidentRun.objects.filter(incident=incident).order_by("-run_id").values_list("run_id", flat=True)
    return tuple(run for run in runs if run not in held)


def freeze_incident(
    *, tenant_id: UUID, incident_id: UUID, way: str, why: str, by: Actor, clock: Clock
) -> Hold:
    """Freeze, and write down that it was for this incident.

    The freeze first: should this process end in between, what was to stop has stopped, and a second click finds the
    same freeze and links it. Raises NothingToFreeze, IncidentMoved once it is closed, and what `freeze` raises.
    """
    check_may(by, tenant_id)
    incident = get_incident(tenant_id, incident_id)
    if incident.status == IncidentStatus.CLOSED:
        raise IncidentMoved()
    scope = _scope_of(incident, way)
    hold = freeze(scope=scope, why=why, by=by, clock=clock)
    _link(tenant_id, incident_id, hold, by=by, clock=clock)
    return hold


def _scope_of(incident: Incident, way: str) -> Scope:
    if way == THE_RUNS:
        left = unfrozen(incident)
        if not left:
            raise NothingToFreeze()
        return Scope(incident.tenant_id, runs=left)
    return _covering(incident.tenant_id, Criteria.from_json(incident.criteria))


@action
def _link(tenant_id: UUID, incident_id: UUID, hold: Hold, *, by: Actor, clock: Clock) -> None:
    incident = lock_incident(tenant_id, incident_id)
    if IncidentNote.objects.filter(incident=incident, hold_id=hold.pk).exists():
        return
    assert by.user_id is not None
    add_note(incident, NoteKind.FROZEN, by.user_id, clock(), hold=hold.pk)
    record_incident(incident, "incident.frozen", by=by, body={"hold": str(hold.pk), "scope": hold.scope})
