"""An incident as a plain, versioned document: ``placet.incident.v1``. Page, Markdown and signed JSON are made of it.

It goes out of the house, to somebody to whom personal values are not shown: of a run it has ids, states and codes, of
the three runs what differs first. What people wrote about the incident as a whole is in it; what they wrote about one
run, and their notes, stay with the incident.
"""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from hashlib import sha256
from typing import Final
from uuid import UUID

from audit.actors import Actor
from common.clock import Clock
from common.disclosure import Recipient
from common.signing import sign
from common.strictjson import canonicalize
from common.tx import action
from common.verify_packet import DOMAINS, INCIDENT
from repair.comparing import Difference, compare_runs
from repair.enums import Mark, NoteKind, PacketStatus
from repair.incidents.acting import get_incident, may_read, record_incident
from repair.incidents.criteria import Criteria
from repair.incidents.freezing import freezes_of
from repair.incidents.markdown import markdown
from repair.incidents.traces import Trace, traces_of
from repair.models import RepairPacket
from repair.models_incidents import Incident, IncidentNote, IncidentRun
from repair.packet.texts import Part, instant, said
from workflows.enums import HoldStatus
from workflows.models import Hold

FORMAT: Final = INCIDENT
DOMAIN: Final = DOMAINS[INCIDENT]
JSON: Final = "json"
MARKDOWN: Final = "md"
DIFFERENCES: Final = 20


@action
def export_report(*, tenant_id: UUID, incident_id: UUID, kind: str, by: Actor, clock: Clock) -> bytes:
    """The report as a file; who took it is an event, with its digest. Raises NotFound, RoleMissing."""
    may_read(by, tenant_id)
    incident = get_incident(tenant_id, incident_id)
    document = report_of(incident, clock())
    made = signed(document) if kind == JSON else markdown(document).encode()
    record_incident(
        incident, "incident.exported", by=by, digest=sha256(made).hexdigest(),
        body={"as": kind, "bytes": len(made)},
    )  # fmt: skip
    return made


def signed(document: Part) -> bytes:
    """As packets are: over the domain line and the RFC 8785 bytes without the member ``signature``."""
    return canonicalize(document | {"signature": asdict(sign(DOMAIN, canonicalize(document)))})


def report_of(incident: Incident, now: datetime) -> Part:
    """Everything that may leave, as it stands now."""
    rows, freezes = _affected(incident), freezes_of(incident)
    return {
        "format": FORMAT, "made_at": instant(now), "incident": _incident(incident),
        "criteria": [{"name": name, "value": value} for name, value in _criteria(incident)],
        "unfinished": unfinished(incident, freezes), "runs": _counts(incident, rows),
        "freezes": [_freeze(hold) for hold in freezes], "traces": [_trace(it) for it in traces_of(incident)],
        "differences": [_compared(*pair) for pair in pairs_of(incident)],
        "affected": [_row(row) for row in rows], "history": [_note(note) for note in notes_of(incident)],
    }  # fmt: skip


def _criteria(incident: Incident) -> list[tuple[str, str]]:
    return Criteria.from_json(incident.criteria).words()


def _incident(incident: Incident) -> Part:
    return {
        "id": str(incident.pk), "tenant_id": str(incident.tenant_id), "trouble": said(incident.trouble),
        "status": incident.status, "opened_by": f"user:{incident.opened_by_id}", "owner": f"user:{incident.owner_id}",
        "hypothesis": said(incident.hypothesis) or None, "remedy": said(incident.remedy) or None,
        "signal": said(incident.signal) or None, "opened_at": instant(incident.opened_at),
        "contained_at": instant(incident.contained_at), "closed_at": instant(incident.closed_at),
        "cause": said(incident.root_cause.title) if incident.root_cause else None,
    }  # fmt: skip


# -- its runs -----------------------------------------------------------------------------------------------------


def _affected(incident: Incident) -> list[IncidentRun]:
    return list(IncidentRun.objects.filter(incident=incident).select_related("run").order_by("-run_id"))


def _counts(incident: Incident, rows: Iterable[IncidentRun]) -> Part:
    listed = list(rows)
    marks = {mark.value: sum(row.mark == mark for row in listed) for mark in Mark}
    return {"total": len(listed), "more_fit": incident.more, "by_mark": marks}


def _row(row: IncidentRun) -> Part:
    run = row.run
    return {
        "run": str(run.pk), "workflow": run.workflow, "version": run.workflow_version, "status": run.status,
        "outcome": said(run.corrected_outcome or run.outcome) or None, "mark": row.mark,
        "marked_by": f"user:{row.marked_by_id}" if row.marked_by_id else None, "marked_at": instant(row.marked_at),
        "joined_at": instant(row.joined_at),
    }  # fmt: skip


def unfinished(incident: Incident, freezes: list[Hold]) -> list[str]:
    """What is still to do, in sentences; empty when nothing is."""
    touched = IncidentRun.objects.filter(incident=incident)
    unlooked = touched.filter(mark=Mark.UNLOOKED).count()
    stopped = RepairPacket.objects.filter(
        tenant_id=incident.tenant_id, run_id__in=touched.values("run_id"), status__in=PacketStatus.open_states
    ).count()
    live = sum(hold.status in HoldStatus.holding_states for hold in freezes)
    says = [
        (unlooked, "run nobody has looked at.", "runs nobody has looked at."),
        (stopped, "case of its runs is open at the repair desk.", "cases of its runs are open at the repair desk."),
        (live, "freeze of it is in force.", "freezes of it are in force."),
    ]  # fmt: skip
    told = [f"{number:,} {one if number == 1 else many}" for number, one, many in says if number]
    return told if incident.contained_at else [*told, "Nobody has said that it is contained."]


# -- what was done ------------------------------------------------------------------------------------------------


def _freeze(hold: Hold) -> Part:
    return {
        "id": str(hold.pk), "scope": said(hold.scope), "status": hold.status, "placed_at": instant(hold.placed_at),
        "drained_at": instant(hold.drained_at), "lifted_at": instant(hold.lifted_at),
        "in_flight": {name: hold.in_flight.get(name, 0) for name in ("sent", "unknown")},
    }  # fmt: skip


def notes_of(incident: Incident) -> list[IncidentNote]:
    """The oldest first."""
    return list(IncidentNote.objects.filter(incident=incident).select_related("user").order_by("at", "id"))


def _note(note: IncidentNote) -> Part:
    """That it was said or done, when and by whom. The words themselves stay in the house."""
    return {"what": NoteKind(note.kind).value, "at": instant(note.at), "by": f"user:{note.user_id}"}


# -- its three runs -----------------------------------------------------------------------------------------------


def _trace(trace: Trace) -> Part:
    run = trace.run
    return {
        "name": trace.name, "run": str(run.pk) if run else None, "status": run.status if run else None,
        "suggested": trace.suggested,
    }  # fmt: skip


def pairs_of(incident: Incident) -> list[tuple[Trace, Trace]]:
    """The clean run beside each of the others, as far as there are such runs."""
    clean, *others = traces_of(incident)
    return [(clean, other) for other in others if clean.run is not None and other.run is not None]


def _compared(left: Trace, right: Trace) -> Part:
    assert left.run is not None
    assert right.run is not None
    found = compare_runs(left.run, right.run, reader=Recipient(left.run.tenant_id))
    return {
        "left": left.name, "right": right.name, "first": _difference(found.first),
        "all": [_difference(it) for it in found.differences[:DIFFERENCES]], "count": len(found.differences),
    }  # fmt: skip


def _difference(found: Difference | None) -> Part | None:
    if found is None:
        return None
    return {
        "step": found.step or None, "what": found.code, "name": found.name or None, "left": found.left,
        "right": found.right, "weight": found.weight.value,
    }  # fmt: skip
