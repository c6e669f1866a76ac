"""The kill switch: freeze a scope, and lift that again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection

from access.enums import Role
from access.policies import check_can_install, check_role, membership_of
from audit.actions import record
from audit.actors import INSTALLATION, Actor, Via
from audit.bound import ROW, row_digest
from common.clock import Clock
from common.db import lock_name
from common.errors import InvalidInput, NotFound, Refused
from common.tx import action
from workflows import registry
from workflows.actions.holding_back import hold_back_all
from workflows.bound import of_hold
from workflows.enums import CommandStatus, HoldReason, HoldStatus
from workflows.models import Definition, Hold, Run
from workflows.models.holds import MOST_RUNS
from workflows.scope import MATCHES, wait_for_scope

FREEZERS: Final = (Role.OPERATOR, Role.OWNER, Role.ADMIN)
LISTED: Final = 500
"""Commands in flight that a hold names one by one; the counts are always whole."""
HOLD_BACK_S: Final = 15.0
"""How long a lift may take to call held what it is about to let go."""


class UnknownHold(NotFound):
    """There is no such freeze or open circuit."""


class AlreadyLifted(Refused):
    """That freeze is lifted already."""

    code = "already_lifted"


class WhyMissing(InvalidInput):
    """Say why: whoever finds it later must know."""

    code = "reason_missing"


class UnknownScope(InvalidInput):
    """Nothing installed has that name, so a freeze of it would hold nothing."""

    code = "unknown_scope"


class TooManyRuns(InvalidInput):
    """That is more runs than one freeze names. Freeze what they have in common."""

    code = "too_many_runs"


@dataclass(frozen=True, slots=True)
class Scope:
    """What is to be frozen; what is empty matches everything. No tenant: the whole installation."""

    tenant_id: UUID | None
    workflow: str = ""
    workflow_version: int | None = None
    operation: str = ""
    target: str = ""
    runs: tuple[UUID, ...] = ()
    """Exactly these runs of the tenant; none: whichever."""


def freeze(*, scope: Scope, why: str, by: Actor, clock: Clock) -> Hold:
    """Once this has returned with ``drained_at``, nothing within the scope is newly sent.

    1. the row is committed: from now on whoever enters the scope sees it,
    2. under the exclusive lock, when everybody who had not seen it has ended, it is noted what was in flight.

    Should the second take longer than a few seconds, the freeze is in force all the same, and the sweep notes it.
    Raises RoleMissing, WhyMissing, UnknownScope; `check_can_install` applies to the whole installation.
    """
    _check_may(by, scope.tenant_id)
    _check_scope(scope)
    if not why.strip():
        raise WhyMissing()
    hold = _place(scope, why.strip(), by=by, clock=clock)
    try:
        return drain(hold.pk, by=by, clock=clock)
    except (DatabaseError, InterfaceError):
        # Somebody is slow to end. It is not the freeze that failed: it stands, and says that it is not drained yet.
        connection.close()
        return Hold.objects.get(pk=hold.pk)


def _check_may(by: Actor, tenant_id: UUID | None) -> None:
    if by.via == Via.COMMAND_LINE:
        return
    if tenant_id is None:
        check_can_install(by)
    else:
        check_role(membership_of(by.user_id, tenant_id), *FREEZERS)


def _check_scope(scope: Scope) -> None:
    if scope.tenant_id is None and (scope.workflow or scope.operation or scope.target or scope.runs):
        raise UnknownScope("The whole installation is frozen as a whole.")
    if scope.workflow and scope.workflow not in {flow.name for flow in registry.workflows()}:
        raise UnknownScope(workflow=scope.workflow)
    if scope.workflow_version is not None and not scope.workflow:
        raise UnknownScope("A version is that of a workflow.")
    if scope.workflow_version is not None and not _is_known(scope.workflow, scope.workflow_version):
        raise UnknownScope(workflow=scope.workflow, version=scope.workflow_version)
    if scope.operation and scope.operation not in {name for name, _ in registry.known_operations()}:
        raise UnknownScope(operation=scope.operation)
    _check_runs(scope)


def widened(scope: Scope) -> Scope:
    """The smallest scope around this one that can be frozen: without the names of what is not installed here."""
    workflow = scope.workflow if scope.workflow in {flow.name for flow in registry.workflows()} else ""
    version = scope.workflow_version
    known = bool(workflow) and version is not None and _is_known(workflow, version)
    operation = (
        scope.operation if scope.operation in {name for name, _ in registry.known_operations()} else ""
    )
    return replace(scope, workflow=workflow, workflow_version=version if known else None, operation=operation)


def _check_runs(scope: Scope) -> None:
    """No run is left out in silence: too many, or one that is none of the tenant's, and nothing is frozen."""
    if len(scope.runs) > MOST_RUNS:
        raise TooManyRuns(most=MOST_RUNS)
    if scope.tenant_id is None or not scope.runs:
        return
    known = Run.objects.filter(tenant_id=scope.tenant_id, pk__in=scope.runs).count()
    if known != len(set(scope.runs)):
        raise UnknownScope("A run that is to be frozen does not exist.")


def _is_known(workflow: str, version: int) -> bool:
    """Installed here, or registered by other code: what older code proposed may still be on its way."""
    flow = registry.installed(workflow)
    if flow is not None and flow.version == version:
        return True
    return Definition.objects.filter(kind="workflow", name=workflow, version=version).exists()


@action
def _place(scope: Scope, why: str, *, by: Actor, clock: Clock) -> Hold:
    named: dict[str, Any] = {
        "tenant_id": scope.tenant_id, "reason": HoldReason.FREEZE, "workflow": scope.workflow,
        "workflow_version": scope.workflow_version, "operation": scope.operation, "target": scope.target[:200],
        "runs": sorted(set(scope.runs)) or None,
        "why": why[:500], "placed_by": by.performed_by,
    }  # fmt: skip
    # A form that is sent twice makes one freeze: a second one would have to be lifted too.
    lock_name(f"freeze/{scope.tenant_id}/{by.performed_by}")
    same = Hold.objects.filter(status__in=HoldStatus.holding_states, **named).order_by("placed_at").first()
    if same is not None:
        return same
    hold = Hold.objects.create(placed_at=clock(), **named)
    body = {"reason": hold.reason, "scope": hold.scope, ROW: row_digest(of_hold(vars(hold)))}
    record_hold(hold, "in_force", "", by=by, reason=why, body=body)
    return hold


@action
def drain(hold_id: UUID, *, by: Actor, clock: Clock) -> Hold:
    """Wait until nobody is left who had not seen the hold, and note what was in flight at that instant."""
    wait_for_scope()
    hold = lock_hold(hold_id)
    if hold.drained_at is not None or hold.status not in HoldStatus.holding_states:
        return hold
    hold.drained_at = clock()
    hold.in_flight = _in_flight(hold)
    hold.save(update_fields=["drained_at", "in_flight"])
    counts = {name: hold.in_flight[name] for name in ("sent", "unknown")}
    record_hold(hold, "drained", hold.status, by=by, body=counts)
    return hold


_IN_FLIGHT = f"""
    FROM workflows_command c JOIN workflows_hold h ON {MATCHES} WHERE h.id = %s AND c.status = ANY(%s)
"""
_COUNTED = f"SELECT c.status, count(*) {_IN_FLIGHT} GROUP BY c.status"
_FIRST = f"SELECT c.id, c.status {_IN_FLIGHT} ORDER BY c.last_sent_at, c.id LIMIT %s"


def _in_flight(hold: Hold) -> dict[str, Any]:
    bound: list[Any] = [hold.pk, list(CommandStatus.in_flight_states)]
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, bound)
        counts = dict.fromkeys(CommandStatus.in_flight_states, 0) | dict(cursor.fetchall())
        cursor.execute(_FIRST, [*bound, LISTED])
        rows = [{"id": str(id_), "status": status} for id_, status in cursor.fetchall()]
    return {**counts, "commands": rows}


def lift(*, hold_id: UUID, tenant_id: UUID | None, why: str, by: Actor, clock: Clock) -> Hold:
    """A person lifts a freeze or closes a circuit. What it held is checked one by one, and let go a few at a time.

    ``tenant_id`` is the caller's; another's holds are unknown to it, and those of the installation not its to lift.
    Raises UnknownHold, RoleMissing, WhyMissing, AlreadyLifted.
    """
    hold = Hold.objects.filter(pk=hold_id).first()
    if hold is None:
        raise UnknownHold()
    _check_may_lift(hold, tenant_id, why, by)
    # What is not called held by now would be claimed at full speed, all at once; what comes later is new work.
    hold_back_all(by=by, clock=clock, budget_s=HOLD_BACK_S)
    return _lift(hold_id=hold_id, tenant_id=tenant_id, why=why.strip(), by=by, clock=clock)


@action
def _lift(*, hold_id: UUID, tenant_id: UUID | None, why: str, by: Actor, clock: Clock) -> Hold:
    hold = lock_hold(hold_id)
    _check_may_lift(hold, tenant_id, why, by)
    move_hold(hold, "lift", by, why, at=clock(), by=by.performed_by, why=why)
    return hold


def _check_may_lift(hold: Hold, tenant_id: UUID | None, why: str, by: Actor) -> None:
    if hold.tenant_id != tenant_id:
        raise UnknownHold()
    _check_may(by, hold.tenant_id)
    if not why.strip():
        raise WhyMissing()
    if hold.status not in HoldStatus.holding_states:
        raise AlreadyLifted(status=hold.status)


def lock_hold(hold_id: UUID) -> Hold:
    # No key update: whoever makes a command name this hold only needs the row to stay.
    hold = Hold.objects.select_for_update(of=("self",), no_key=True).filter(pk=hold_id).first()
    if hold is None:
        raise UnknownHold()
    return hold


def move_hold(hold: Hold, move: str, actor: Actor, reason: str, /, **arguments: Any) -> None:
    """Make one transition of a locked hold, save it and write its event."""
    before = hold.status
    getattr(hold, move)(**arguments)
    hold.save()
    record_hold(hold, hold.status, before, by=actor, reason=reason)


def record_hold(
    hold: Hold, kind: str, before: str, *, by: Actor, reason: str = "", body: Mapping[str, Any] | None = None
) -> None:
    record(
        by=by, kind=f"hold.{kind}", tenant_id=hold.tenant_id or INSTALLATION, subject_type="hold", subject_id=hold.pk,
        from_state=before, to_state=hold.status, reason=reason, body=body,
    )  # fmt: skip
