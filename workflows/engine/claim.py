"""Claim a due step: SKIP LOCKED, a lease, a fencing token. PostgreSQL decides, whoever was woken."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from audit.actors import Actor
from common.clock import Clock
from common.content_keys import known_names, locked
from common.ids import new_id
from common.prepared import Reading, fetch
from common.tx import action
from workflows import registry
from workflows.actions.settle import save_step, settle_run, steps_of, stop_step
from workflows.definitions import Stage
from workflows.engine.replayed import why_no_version
from workflows.enums import Lane, RunStatus, StepStatus
from workflows.models import Run, Step

QUARANTINE_AFTER = 5
"""Claims of one step that ended in nothing (a worker died each time), after which a person looks."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A step that this worker holds until ``step.lease_until``, and the stage that it runs."""

    run: Run
    step: Step
    stage: Stage
    token: UUID


# The run is locked, not the step: its lock covers its steps, and it is the last lock in the one order. A run that
# somebody else holds is passed over. The index on due steps makes this a short scan, whatever waits. A run of a
# workflow, or of a version, that this code does not have is left to a worker that has it.
_CANDIDATE = f"""
    SELECT r.id, s.id FROM workflows_step s JOIN workflows_run r ON r.id = s.run_id
    JOIN unnest(%(names)s::text[], %(versions)s::int[]) AS known(name, version)
      ON known.name = r.workflow AND r.workflow_version <= known.version
    WHERE s.due_at IS NOT NULL AND s.due_at <= clock_timestamp() AND s.lane = %(lane)s
      AND s.status IN ('pending', 'waiting') AND NOT {locked("s")}
    ORDER BY s.due_at, s.id LIMIT 1
    FOR NO KEY UPDATE OF r SKIP LOCKED
"""  # noqa: S608 - our own text
_RUN = Reading(Run, "WHERE r.id = %s")
LOOKS = 5
"""How often one claim looks again when somebody else was faster with what it found."""


@action
def claim_step(*, lane: Lane, by: Actor, clock: Clock) -> Claimed | None:
    """Take one due step of the lane, or None when nothing is due."""
    for _ in range(LOOKS):
        found = _candidate(lane)
        if found is None:
            return None
        [run] = _RUN.rows(found[0])
        steps = steps_of(run)
        step = next(step for step in steps if step.pk == found[1])
        claimed = take(run, step, by=by, now=clock(), steps=steps)
        if claimed is not None:
            return claimed
    return None


def _candidate(lane: Lane) -> tuple[UUID, UUID] | None:
    flows = registry.workflows()
    rows = fetch(_CANDIDATE, {
        "lane": str(lane), "names": [flow.name for flow in flows], "versions": [flow.version for flow in flows],
        "keys": known_names(),
    })  # fmt: skip
    return (rows[0][0], rows[0][1]) if rows else None


def take(
    run: Run, step: Step, *, by: Actor, now: datetime, steps: list[Step] | None = None
) -> Claimed | None:
    """Start the step of a locked run, if it is still due; what nobody can run any more goes to a person instead."""
    if step.due_at is None or step.due_at > now or step.status in StepStatus.final_states:
        return None
    if run.status in RunStatus.final_states:
        return None
    cannot = _why_not(run, step)
    if cannot:
        step.due_at = None
        stop_step(run, step, cannot, _SUMMARIES[cannot], by=by, now=now)
        settle_run(run, by=by, now=now, steps=steps)
        return None
    return _start(run, step, by=by, now=now, steps=steps)


def _why_not(run: Run, step: Step) -> str:
    if step.lost_leases >= QUARANTINE_AFTER:
        return "quarantined"
    stages = registry.workflow(run.workflow).stages
    return why_no_version(run) if any(stage.key == step.key for stage in stages) else "stage_gone"


_SUMMARIES = {
    "quarantined": "A worker ended each time it tried this step: it is set aside until a person has looked.",
    "stage_gone": "The workflow has no such stage any more: it was taken out while this run was on its way.",
    "version_gone": "A newer version was installed while this replay of the older one was on its way.",
}


def _start(run: Run, step: Step, *, by: Actor, now: datetime, steps: list[Step] | None) -> Claimed:
    stage = registry.workflow(run.workflow).get_stage(step.key)
    token, before = new_id(), step.status
    step.start(at=now, token=token, lease_until=now + stage.lease)
    save_step(step, before, by=by)
    run.started_at = run.started_at or now
    settle_run(run, by=by, now=now, steps=steps)
    return Claimed(run, step, stage, token)


def lost_leases(limit: int = 100) -> list[tuple[UUID, UUID]]:
    """(run, step) of steps whose worker has gone."""
    query = """
        SELECT run_id, id FROM workflows_step
        WHERE status = 'running' AND lease_until < clock_timestamp() ORDER BY lease_until LIMIT %s
    """
    with connection.cursor() as cursor:
        cursor.execute(query, [limit])
        return list(cursor.fetchall())


@action
def release_lost(*, run_id: UUID, step_id: UUID, by: Actor, clock: Clock) -> bool:
    """The lease is over and nothing was stored: reading again is harmless, so the step is due again."""
    run = Run.objects.select_for_update(of=("self",), no_key=True).get(pk=run_id)
    step = Step.objects.get(pk=step_id)
    now = clock()
    if step.status != StepStatus.RUNNING or step.lease_until is None or step.lease_until >= now:
        return False
    before = step.status
    step.lost_leases += 1
    step.release(at=now + timedelta(seconds=step.lost_leases))
    save_step(step, before, by=by, reason="lease over")
    settle_run(run, by=by, now=now, steps=steps_of(run))
    return True
