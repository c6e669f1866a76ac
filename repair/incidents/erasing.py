"""The end of what people wrote about an incident. It lies under a key of its own: it is about many runs at once.

They go with the last of the runs that the incident touched, once it is closed; or when an admin says so. What was found
about a single run lies under that run's key, and goes with it.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import connection

from access.policies import check_can_manage
from audit.actors import Actor
from common.clock import Clock
from common.content_errors import ContentInUse, ContentOnHold
from common.models import ContentKey
from common.rounds import each
from common.tx import action
from repair.enums import IncidentStatus
from repair.incidents.acting import lock_incident, record_incident
from repair.models_incidents import Incident, IncidentRun
from workflows import legal_holds

PER_ROUND: Final = 20
_DUE: Final = """
    SELECT i.tenant_id, i.id FROM repair_incident i
    JOIN common_contentkey k ON k.tenant_id = i.tenant_id AND k.run_id = i.id
    WHERE i.status = 'closed' AND k.wrapped IS NOT NULL AND k.held_at IS NULL
        AND NOT EXISTS (
            SELECT FROM repair_incidentrun a
            LEFT JOIN common_contentkey r ON r.tenant_id = a.tenant_id AND r.run_id = a.run_id
            WHERE a.incident_id = i.id AND r.erased_at IS NULL)
    ORDER BY i.id LIMIT %s
"""


def look(by: Actor, clock: Clock) -> int:
    """As the sweep calls it, once a minute; returns of how many incidents the words were erased."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, [PER_ROUND])
        rows = cursor.fetchall()
    return each(rows, lambda row: _erase_if_over(*row, by=by, clock=clock), what="erase_incident")


def _erase_if_over(tenant_id: UUID, incident_id: UUID, *, by: Actor, clock: Clock) -> bool:
    try:
        return _erase(tenant_id, incident_id, "retention", by=by, clock=clock)
    except (ContentInUse, ContentOnHold):
        return False


def erase_incident(*, tenant_id: UUID, incident_id: UUID, why: str, by: Actor, clock: Clock) -> bool:
    """Erase what was written about a closed incident; False if it was before. By an admin, or at the command line.

    Raises NotFound, ContentInUse while it is not closed, ContentOnHold where one of its runs is held.
    """
    check_can_manage(by, tenant_id)
    return _erase(tenant_id, incident_id, why, by=by, clock=clock)


@action
def _erase(tenant_id: UUID, incident_id: UUID, why: str, *, by: Actor, clock: Clock) -> bool:
    legal_holds.enter(tenant_id)
    incident = lock_incident(tenant_id, incident_id)
    if incident.status != IncidentStatus.CLOSED:
        raise ContentInUse(status=incident.status)
    keys = ContentKey.objects.select_for_update(of=("self",))
    key = keys.filter(tenant_id=tenant_id, run_id=incident_id).first()
    if key is None or key.erased_at is not None:
        return False
    since = _held_since(incident)
    if since is not None:
        raise ContentOnHold(since=since.isoformat())
    key.wrapped, key.erased_at = None, clock()
    key.save(update_fields=["wrapped", "erased_at"])
    record_incident(incident, "incident.content_erased", by=by, reason=why[:500])
    return True


def _held_since(incident: Incident) -> datetime | None:
    runs = IncidentRun.objects.filter(incident=incident).values_list("run_id", flat=True)
    return legal_holds.all_held_since(incident.tenant_id) or legal_holds.held_since(
        incident.tenant_id, [incident.pk, *runs]
    )
