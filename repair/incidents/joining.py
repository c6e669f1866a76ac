"""What fits after an incident was opened joins it by the sweep, until somebody says that it is contained."""

from uuid import UUID

from audit.actors import Actor
from common.clock import Clock
from common.rounds import each
from common.tx import action
from repair.enums import IncidentStatus
from repair.incidents.acting import join, lock_incident
from repair.models_incidents import Incident


def look(by: Actor, clock: Clock) -> int:
    """As the sweep calls it, once a minute; returns how many runs joined."""
    open_ = Incident.objects.filter(status=IncidentStatus.OPEN).order_by("looked_at")
    rows = open_.values_list("tenant_id", "pk")
    return each(rows, lambda row: _join(*row, by=by, clock=clock), what="join_incident")


@action
def _join(tenant_id: UUID, incident_id: UUID, *, by: Actor, clock: Clock) -> int:
    incident = lock_incident(tenant_id, incident_id)
    if incident.status != IncidentStatus.OPEN:
        return 0
    return join(incident, by=by, now=clock())
