"""Short verbs for the tests of incidents: open one of what is there, and see what became of it."""

from datetime import timedelta
from typing import Any

from django.urls import reverse

from audit.actors import Actor
from common.clock import db_clock
from repair.incidents.acting import Texts, open_incident
from repair.incidents.criteria import Criteria
from repair.models_incidents import Incident, IncidentRun
from tests import rows
from tests.repair.choosing import Operator
from tests.workflows.conftest import Desk, person

TROUBLE = "The refunds look too high"


def criteria(**named: Any) -> Criteria:
    return Criteria(**({"since": rows.now() - timedelta(days=1)} | named))


def opened(desk: Desk, by: Actor, **named: Any) -> Incident:
    """Of the toy workflow, unless something else is named."""
    asked = criteria(**(named or {"workflow": "toy-pay"}))
    texts = Texts(TROUBLE, "A rate is wrong.")
    return open_incident(tenant_id=desk.tenant.pk, criteria=asked, texts=texts, by=by, clock=db_clock)


def opened_by(opal: Operator, **named: Any) -> Incident:
    return opened(opal.desk, person(opal.user), **named)


def about(incident: Incident, by: Actor) -> dict[str, Any]:
    return {"tenant_id": incident.tenant_id, "incident_id": incident.pk, "by": by, "clock": db_clock}


def now(incident: Incident) -> Incident:
    return Incident.objects.get(pk=incident.pk)


def marks(incident: Incident) -> dict[Any, str]:
    return dict(IncidentRun.objects.filter(incident=incident).values_list("run_id", "mark"))


def here(incident: Incident, page: str = "incident") -> str:
    return reverse(f"repair:{page}", args=[incident.pk])
