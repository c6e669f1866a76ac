"""One packet as a plain, versioned document: ``placet.packet.v1``. Page, Markdown and signed JSON are made of it.

Texts from outside stand in it as `common.display.visible` shows them. Values leave by their declared class: whatever
goes out of the house goes to somebody to whom personal values are not shown.
"""

from datetime import datetime
from typing import Any, Final

from audit.models import Event
from common import spans
from common.disclosure import Recipient, fingerprint
from repair.choices.declared import Choices
from repair.marks import marks_of
from repair.models import RepairPacket
from repair.packet.action import action_part, approval_part
from repair.packet.alike import in_common
from repair.packet.case import Case
from repair.packet.execution import code_of, command_part, error_part, late_effect, possible_part
from repair.packet.known import known, not_known, sentence
from repair.packet.offers import offers_part
from repair.packet.record import differs, record_part
from repair.packet.runbook import step_for
from repair.packet.texts import Part, instant, said
from repair.tables import cause_words, settled_words
from workflows import registry
from workflows.models import Run
from workflows.screens.words import question_of, title_of
from workflows.selectors import ANSWERED, told_in_list

FORMAT: Final = "placet.packet.v1"


def document_of(
    case: Case, to: Recipient, now: datetime, *, choices: Choices, names: bool = False
) -> dict[str, Any]:
    """Everything that is known, for this recipient, at this instant. ``names``: of colleagues, for the page alone."""
    return {
        "format": FORMAT, "made_at": instant(now), "personal_values": to.personal,
        "sentence": sentence(case.packet, case.command, late_effect(case)), "packet": _packet(case.packet),
        "workflow": _workflow(case),
        "run": _run(case), "step": _step(case), "steps": [_brief(step) for step in case.story.steps],
        "action": action_part(case, to), "approval": approval_part(case),
        "last_good": _event(case.last_good) if case.last_good else None, "command": command_part(case, now),
        "error": error_part(case), "record": record_part(case, now),
        "known": [_point(point) for point in known(case, names=names)],
        "not_known": [_point(point) for point in not_known(case)],
        "possible": possible_part(case, now, pins_differ=differs(case)), "choices": offers_part(choices),
        "similar": [_similar(other) for other in case.similar], "in_common": in_common(case) or None,
        "runbook": _runbook(case),
        "after_effects": [_after(run) for run in case.after], "told": _told(case.run, to),
        "history": [_event(event) for event in case.events],
    }  # fmt: skip


def _packet(packet: RepairPacket) -> Part:
    return {
        "id": str(packet.pk), "tenant_id": str(packet.tenant_id), "cause": said(packet.cause),
        "cause_words": cause_words(packet.cause), "summary": said(packet.summary), "status": packet.status,
        "owner": said(packet.owner), "opened_at": instant(packet.opened_at),
        "until": instant(packet.waiting_until) if packet.ended_at is None else None,
        "on_expiry": packet.on_expiry, "raised_again": packet.escalations, "ended_at": instant(packet.ended_at),
        "resolution": said(packet.resolution) or None,
        "how_it_ended": settled_words(packet.resolution) if packet.ended_at else None,
    }  # fmt: skip


def _workflow(case: Case) -> Part:
    flow = registry.installed(case.run.workflow)
    return {
        "name": case.run.workflow, "title": title_of(case.run.workflow), "version": case.run.workflow_version,
        "installed_version": flow.version if flow else None, "owner": registry.contract_of(case.run.workflow).owner,
        "stage": case.run.stage,
    }  # fmt: skip


def _run(case: Case) -> Part:
    run = case.run
    return {
        "id": str(run.pk), "kind": run.kind, "original_id": str(run.original_id) if run.original_id else None,
        "marks": list(marks_of(case.story)), "status": run.status, "outcome": run.outcome or None,
        "corrected_outcome": run.corrected_outcome or None, "failure_code": said(run.failure_code) or None,
        "source": {"system": said(run.source_system), "event_id": said(run.source_event_id),
                   "record": said(run.source_record) or None},
        "requested_by": said(run.requested_by), "created_at": instant(run.created_at),
        "started_at": instant(run.started_at), "finished_at": instant(run.finished_at),
        "waiting_until": instant(run.waiting_until), "cancel_requested_at": instant(run.cancel_requested_at),
        "state_version": run.state_version,
    }  # fmt: skip


def _after(run: Run) -> Part:
    """A compensation or a remainder that people proposed after an effect."""
    return {
        "kind": run.kind, "run_id": str(run.pk), "steps": [step.key for step in run.steps.all()], "status": run.status,
        "outcome": run.outcome or None, "created_at": instant(run.created_at), "finished_at": instant(run.finished_at),
    }  # fmt: skip


def _step(case: Case) -> Part | None:
    step = case.step
    if step is None:
        return None
    return {
        "key": step.key, "position": step.position + 1, "of": len(case.story.steps), "kind": step.kind,
        "status": step.status, "waiting_for": step.waiting_for or None, "waiting_until": instant(step.waiting_until),
        "attempt": step.attempt, "failure_code": said(step.failure_code) or None, "lost_leases": step.lost_leases,
        "asked_for": question_of(step) or None, "started_at": instant(step.started_at),
        "finished_at": instant(step.finished_at),
    }  # fmt: skip


def _brief(step: Any) -> Part:
    return {"key": step.key, "status": step.status, "waiting_for": step.waiting_for or None}


def _event(event: Event) -> Part:
    """What moved, when, by whom. A reason may be somebody's own words, and stays in the history."""
    return {
        "kind": said(event.kind), "at": instant(event.at), "from": event.from_state or None,
        "to": event.to_state or None, "by": said(event.performed_by), "via": event.via,
        "seq": event.seq,  # type: ignore[attr-defined]
        "step": said(event.body.get("key")) or None if event.subject_type == "step" else None,
    }  # fmt: skip


def _point(point: Any) -> Part:
    return {
        "text": point.text, "code": point.code or None, "digest": point.digest or None, "at": instant(point.at),
    }  # fmt: skip


def _similar(other: RepairPacket) -> Part:
    took = (other.ended_at - other.opened_at).total_seconds() if other.ended_at else None
    return {
        "id": str(other.pk), "opened_at": instant(other.opened_at), "status": other.status,
        "workflow": other.run.workflow, "how_it_ended": settled_words(other.resolution) if other.ended_at else None,
        "took": spans.span(took) if took is not None else None,
    }  # fmt: skip


def _runbook(case: Case) -> Part | None:
    found = step_for(case.run.workflow, case.packet.cause, code_of(case))
    return {"title": found.title, "lines": list(found.lines)} if found else None


def _told(run: Run, to: Recipient) -> Part:
    """What the requester was told: sentences of the contract, and what was written for one user by its class."""
    told = run.user_message if to.personal else told_in_list(run)
    if told == ANSWERED and run.user_message != ANSWERED:
        told = f"⟦personal, fingerprint {fingerprint(run.tenant_id, run.user_message)}⟧"
        return {"message": told, "may_submit_new": run.may_submit_new}
    return {"message": said(told) or None, "may_submit_new": run.may_submit_new}
