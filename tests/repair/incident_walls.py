"""The walls of incidents, of their runs and of their notes: what `tests.workflows.test_walls` breaks of them."""

from collections.abc import Callable
from typing import Any

from django.db.models import Model

from common.ids import new_id
from repair.enums import IncidentStatus
from repair.models_incidents import Incident, IncidentNote, IncidentRun
from tests import factories as f
from tests import rows
from tests.repair.repair_walls import cause_row, saved

NOW = rows.now()
I = IncidentStatus  # noqa: E741 - as the model names them


def incident_row(**fields: Any) -> Incident:
    """An open one, not saved."""
    tenant = fields.pop("tenant", None) or f.make_tenant()
    user = fields.pop("user", None) or f.make_user(tenant)
    return rows.made(Incident, {
        "tenant": tenant, "trouble": "The refunds look too high", "opened_by": user, "owner": user,
        "hypothesis": "A rate is wrong.", "criteria": {"since": NOW.isoformat(), "workflow": "toy-pay"},
        "opened_at": NOW, "looked_at": NOW,
    }, fields)  # fmt: skip


def make_incident(status: str = I.OPEN, **fields: Any) -> Incident:
    incident = saved(incident_row(**fields))
    for name in rows.path_to(Incident, status):
        cause = {"cause": saved(cause_row(tenant=incident.tenant))} if name == "close" else {}
        rows.moved(incident, name, NOW, **cause)
        incident.save()
    return incident


def affected_row(incident: Incident | None = None, **fields: Any) -> IncidentRun:
    incident = incident or make_incident()
    return rows.made(IncidentRun, {
        "tenant": incident.tenant, "incident": incident, "run": f.make_run(incident.tenant), "joined_at": NOW,
    }, fields)  # fmt: skip


def second_of_a_run() -> IncidentRun:
    first = saved(affected_row())
    return affected_row(first.incident, run=first.run)


def note_row(incident: Incident | None = None, **fields: Any) -> IncidentNote:
    incident = incident or make_incident()
    return rows.made(IncidentNote, {
        "tenant": incident.tenant, "incident": incident, "kind": "note", "user": incident.owner, "at": NOW,
        "words": "We are looking.",
    }, fields)  # fmt: skip


def second_of_a_freeze() -> IncidentNote:
    first = saved(note_row(kind="frozen", hold_id=new_id()))
    return note_row(first.incident, kind="frozen", hold_id=first.hold_id)


INSERTS: list[tuple[str, Callable[[], Model]]] = [
    ("repair_incident_moves", lambda: incident_row(status=I.CONTAINED, contained_at=NOW)),
    ("repair_incident_closed_with_a_cause", lambda: incident_row(closed_at=NOW)),
    ("repair_incident_cause_tenant", lambda: incident_row(root_cause=saved(cause_row()))),
    ("repair_incident_clean_tenant", lambda: incident_row(trace_clean=f.make_run())),
    ("repair_incident_corrected_tenant", lambda: incident_row(trace_corrected=f.make_run())),
    ("repair_incident_failed_tenant", lambda: incident_row(trace_failed=f.make_run())),
    ("repair_incident_run_incident_tenant", lambda: affected_row(
        tenant=(other := f.make_tenant()), run=f.make_run(other))),
    ("repair_incident_run_run_tenant", lambda: affected_row(run=f.make_run())),
    ("repair_incident_run_mark_known", lambda: affected_row(
        mark="perhaps", marked_by=f.make_user(f.make_tenant()), marked_at=NOW)),
    ("repair_incident_run_marked_by_somebody", lambda: affected_row(mark="fine")),
    ("repair_incident_run_once", second_of_a_run),
    ("repair_incident_note_incident_tenant", lambda: note_row(tenant=f.make_tenant())),
    ("repair_incident_note_kind_known", lambda: note_row(kind="whistled")),
    ("repair_incident_note_names_the_freeze", lambda: note_row(kind="frozen")),
    ("repair_incident_note_one_per_freeze", second_of_a_freeze),
]  # fmt: skip

UPDATES: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("repair_incident_moves", lambda: make_incident(I.CLOSED), {"status": I.OPEN}),
    ("repair_incident_closed_with_a_cause", make_incident, {"status": I.CLOSED}),
    ("repair_incident_contained_says_when", make_incident, {"status": I.CONTAINED}),
]  # fmt: skip

FROZEN: list[tuple[str, Callable[[], Model], list[str]]] = [
    ("repair_incident_bound", make_incident, ["tenant", "criteria", "opened_by", "opened_at"]),
    ("repair_incident_run_bound", lambda: saved(affected_row()), ["tenant", "incident", "run", "joined_at"]),
    ("repair_incident_note_frozen", lambda: saved(note_row(kind="frozen", hold_id=new_id())), [
        "tenant", "incident", "kind", "hold_id", "words", "user", "at"]),
]  # fmt: skip

MACHINES: list[tuple[str, type[Model], type, Callable[[str], Model]]] = [
    ("repair_incident_moves", Incident, I, make_incident),
]

ON_OWNER: list[tuple[str, Callable[[], Model], dict[str, Any]]] = [
    ("repair_incident_status_known", make_incident, {}),
]

TARGETS = {"repair_incident_tenant_id", "repair_incident_run_tenant_id"}
"""Targets of composite foreign keys."""
