"""Start a run from its source event, supply data, cancel, correct the outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError
from pydantic import ValidationError

from audit.actions import record
from audit.actors import Actor
from audit.bound import ROW, row_digest
from common import prepared
from common.clock import Clock
from common.content_key_rows import made
from common.db import violates
from common.digests import same, tenant_hmac
from common.errors import InvalidInput, Refused
from common.ids import new_id
from common.prepared import Reading
from common.strictjson import canonicalize
from common.tx import action
from workflows import registry
from workflows.actions.outbox import registered_name
from workflows.actions.settle import lock_record, move_step, settle_run
from workflows.bound import of_run
from workflows.definitions import STALE_TELL, Workflow
from workflows.documents import store
from workflows.doorbell import ring_on_commit
from workflows.enums import OnExpiry, RunKind, RunStatus
from workflows.models import Run, SourceEvent, Step

WAITS_FOR_ITS_TURN = timedelta(hours=24)
"""How long an event may wait for the run of an earlier event of the same record."""


class EventConflict(Refused):
    """This source event came before with other input. It is refused, and the run of the first stands."""

    code = "event_conflict"
    http_status = 422


class WorkflowHasStages(InvalidInput):
    """This workflow is started by events. It does not accept proposals from outside."""

    code = "workflow_has_stages"


class ProposalsOnly(InvalidInput):
    """This workflow has no stages of its own: it takes proposals, and is not started by events."""

    code = "proposals_only"


class InvalidRunInput(InvalidInput):
    """The input does not fit the workflow's schema."""

    code = "invalid_input"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a run comes from. ``record`` and ``sequence`` order the events of one record."""

    system: str
    event_id: str
    record: str = ""
    sequence: int | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Requester:
    """On whose behalf, and which people therefore never decide on what comes of it."""

    on_behalf_of: str = ""
    excluded_users: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """``created`` is False for a repeated delivery: the same run, counted as a duplicate prevented."""

    run: Run
    created: bool


def start_run(
    *, tenant_id: UUID, workflow: str, source: Source, input: Mapping[str, Any], by: Actor, clock: Clock,
    requester: Requester | None = None, callback: str = "",
) -> Started:  # fmt: skip
    """One source event makes one run, however often it is delivered.

    ``callback``: the name or the address of a registered destination that hears of the run; of a repeated event the
    first one's counts. Raises UnknownWorkflow, ProposalsOnly, InvalidRunInput, CallbackNotRegistered (nothing is
    stored) or EventConflict (same event, other input).
    """
    flow = registry.workflow(workflow)
    if not flow.stages:
        raise ProposalsOnly()
    content = _checked_input(flow, input)
    arguments = _Start(tenant_id, flow, source, content, requester or Requester(), callback)
    try:
        return _start(arguments, by=by, clock=clock)
    except IntegrityError as error:
        # Two deliveries at once: the other one has committed, so this one is the duplicate.
        if not violates(error, "workflows_sourceevent_once"):
            raise
        return _start(arguments, by=by, clock=clock)


@dataclass(frozen=True, slots=True)
class _Start:
    tenant_id: UUID
    flow: type[Workflow]
    source: Source
    content: bytes
    requester: Requester
    callback: str

    @property
    def hash(self) -> str:
        return tenant_hmac(self.tenant_id, "input", self.content)


def _checked_input(flow: type[Workflow], raw: Mapping[str, Any]) -> bytes:
    try:
        flow.contract.input.model_validate(dict(raw))
    except ValidationError as error:
        problems = [
            {"path": "/".join(map(str, problem["loc"])), "code": problem["type"]}
            for problem in error.errors()
        ]
        raise InvalidRunInput(errors=problems) from None
    return canonicalize(dict(raw))


@action
def _start(start: _Start, *, by: Actor, clock: Clock) -> Started:
    known = _known_event(start)
    if known is not None:
        return _count_duplicate(known, start, by=by)
    now = clock()
    run = make_run(
        start.tenant_id, start.flow, start.source, start.content, start.requester, by=by, now=now,
        callback=registered_name(start.tenant_id, start.callback) if start.callback else "",
    )  # fmt: skip
    steps = make_steps(run, [(stage.key, stage.kind) for stage in start.flow.stages])
    source_event = make_source_event(run, start.source, start.hash, now)
    _give_turn(run, steps, source_event, by=by, now=now)
    return Started(run, created=True)


def _known_event(start: _Start) -> SourceEvent | None:
    source = start.source
    found = _KNOWN.rows(start.tenant_id, start.flow.name, source.system, source.event_id, source.key)
    return found[0] if found else None


THIS_EVENT: Final = (
    "WHERE r.tenant_id = %s AND r.workflow = %s AND r.system = %s AND r.event_id = %s AND r.key = %s"
)
_KNOWN: Final = Reading(SourceEvent, THIS_EVENT + " FOR NO KEY UPDATE")


def _count_duplicate(known: SourceEvent, start: _Start, *, by: Actor) -> Started:
    if not same(known.input_hash, start.hash):
        raise EventConflict(run_id=str(known.run_id))
    known.duplicates += 1
    known.save(update_fields=["duplicates"])
    record(
        by=by, kind="run.duplicate_prevented", tenant_id=known.tenant_id, subject_type="run",
        subject_id=known.run_id, run_id=known.run_id, body={"duplicates": known.duplicates},
    )  # fmt: skip
    return Started(Run.objects.get(pk=known.run_id), created=False)


def make_run(
    tenant_id: UUID, flow: type[Workflow], source: Source, content: bytes, requester: Requester, *, by: Actor,
    now: datetime, callback: str = "", kind: RunKind = RunKind.ORIGINAL, after: Run | None = None,
) -> Run:  # fmt: skip
    """Write a queued run and its input, inside the caller's action.

    ``after``: the run whose effect this one follows, as its ``kind`` says. Keys and counts are those of its family, and
    its stage stands: what acted live is taken back live, whatever the workflow may do by now.
    """
    run_id = new_id()
    made(tenant_id, run_id)  # nobody else knows this run yet, so no key is looked for
    document = store(tenant_id, run_id, "input", content, now)
    run = Run(
        id=run_id, tenant_id=tenant_id, workflow=flow.name, workflow_version=flow.version, kind=kind,
        original_id=after.identity if after else None, stage=after.stage if after else flow.stage,
        requested_by=by.performed_by, requested_through=by.through,
        on_behalf_of=requester.on_behalf_of or by.on_behalf_of,
        excluded_users=sorted({str(user) for user in (*requester.excluded_users, by.user_id) if user}),
        source_system=source.system, source_event_id=source.event_id, source_record=source.record,
        source_sequence=source.sequence, request_ids=[by.request_id] if by.request_id else [],
        input_ref=document.pk, input_hash=tenant_hmac(tenant_id, "input", content), callback=callback,
        created_at=now,
    )  # fmt: skip
    prepared.insert(run)
    record(
        by=by, kind="run.queued", tenant_id=run.tenant_id, subject_type="run", subject_id=run.pk, run_id=run.pk,
        to_state=run.status, body={
            "workflow": run.workflow, "version": run.workflow_version, ROW: row_digest(of_run(vars(run))),
        }
        | ({"kind": run.kind, "after": str(after.pk)} if after else {}),
    )  # fmt: skip
    return run


def make_steps(run: Run, stages: Sequence[tuple[str, str]]) -> list[Step]:
    """The steps of a run, none of them due yet."""
    return prepared.insert_all([
        Step(tenant_id=run.tenant_id, run=run, key=key, kind=kind, position=position, lane=run.lane)
        for position, (key, kind) in enumerate(stages)
    ])  # fmt: skip


def make_source_event(
    run: Run, source: Source, input_hash: str, now: datetime, *, proposal_id: UUID | None = None
) -> SourceEvent:
    """Raises IntegrityError where the same event came before, or comes at this moment."""
    event = SourceEvent(
        tenant_id=run.tenant_id, workflow=run.workflow, system=source.system, key=source.key,
        event_id=source.event_id, record=source.record, sequence=source.sequence, input_hash=input_hash, run=run,
        proposal_id=proposal_id, created_at=now,
    )  # fmt: skip
    prepared.insert(event)
    return event


def _give_turn(run: Run, steps: list[Step], event: SourceEvent, *, by: Actor, now: datetime) -> None:
    """Make the first step due, unless another event of the same record is newer, or is being worked on."""
    if event.record and event.sequence is not None:
        lock_record(event.tenant_id, event.workflow, event.system, event.record)
        others = SourceEvent.objects.filter(
            tenant_id=event.tenant_id, workflow=event.workflow, system=event.system, record=event.record
        ).exclude(pk=event.pk)
        if others.filter(sequence__gte=event.sequence).exists():
            _end_stale(run, steps, by=by, now=now)
            return
        if others.exclude(run__status__in=RunStatus.final_states).exists():
            run.wait_id, run.waiting_until = new_id(), now + WAITS_FOR_ITS_TURN
            run.on_expiry = OnExpiry.MANUAL_QUEUE
            run.save(update_fields=["wait_id", "waiting_until", "on_expiry"])
            return
    make_due(steps[0], now)


def make_due(step: Step, now: datetime) -> None:
    step.due_at = now
    prepared.update(step, ["due_at"])
    ring_on_commit()


def _end_stale(run: Run, steps: list[Step], *, by: Actor, now: datetime) -> None:
    run.outcome, run.user_message = "stale", STALE_TELL
    for step in steps:
        move_step(step, "cancel", by, "stale", at=now)
    settle_run(run, by=by, now=now, steps=steps)
