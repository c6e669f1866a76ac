"""Store what a stage returned: one transaction with the run locked, fenced by the step's token."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from approvals.refusals import PreviouslyRejected
from audit.actions import record
from audit.actors import Actor
from common.clock import Clock
from common.stopping import stopping
from common.tx import action
from workflows import registry
from workflows.actions.cancelling import cancel_steps
from workflows.actions.preflight import AlreadyDone
from workflows.actions.proposing import create_proposal
from workflows.actions.replaying import NotRepeated, lock_effects
from workflows.actions.settle import (
    case_or_none,
    end_by_case,
    lock_run,
    make_wait,
    move_step,
    next_step,
    settle_run,
    steps_of,
    stop_step,
)
from workflows.definitions import Retry
from workflows.documents import store_json
from workflows.engine.claim import Claimed, take
from workflows.engine.replayed import earlier_result, keep_dry
from workflows.enums import RunStatus, StepStatus, WaitingFor
from workflows.hooks import settled
from workflows.models import Run, Step
from workflows.preparing import Prepared
from workflows.replays import NOT_REPEATED, is_dry
from workflows.results import Done, Fail, Finish, ToPerson, WaitForData
from workflows.tenants import slug_of
from workflows.waits import StepWait, wait_for_approval


@dataclass(frozen=True, slots=True)
class Failed:
    """A stage that raised. ``keep``: what was refused is kept as it was, and a person looks."""

    code: str
    transient: bool = False
    retry_after: timedelta | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)
    keep: bool = False
    detail: str = ""


Result = Done | Finish | Prepared | WaitForData | ToPerson | Fail | Failed


@dataclass(frozen=True, slots=True)
class _Held:
    """The locked run with its steps, and the one whose result is stored."""

    run: Run
    step: Step
    steps: list[Step]
    claimed: Claimed
    by: Actor
    now: datetime
    clock: Clock


@action
def store_result(claimed: Claimed, result: Result, *, by: Actor, clock: Clock) -> Claimed | None:
    """Store a result and claim the run's next step, if that is due; None: nothing more to do for this run, here.

    A worker whose token is no longer the step's changes nothing: its late result is dropped, and noted.
    """
    if isinstance(result, Prepared):
        lock_effects(claimed.run, claimed.step.key, result.draft)
    run = lock_run(claimed.run.tenant_id, claimed.run.pk)
    now = clock()
    steps = steps_of(run)
    step = next(step for step in steps if step.pk == claimed.step.pk)
    if step.status != StepStatus.RUNNING or step.lease_token != claimed.token:
        _note_late_result(step, by=by)
        return None
    held = _Held(run, step, steps, claimed, by, now, clock)
    step.lost_leases = 0
    _STORE[type(result)](held, result)
    following = next_step(steps)
    if following is not None and run.status not in RunStatus.final_states and not stopping():
        following.due_at = following.due_at or now
        taken = take(run, following, by=by, now=now, steps=steps)
        if taken is not None:
            return taken
    settle_run(run, by=by, now=now, steps=steps)
    return None


def _note_late_result(step: Step, *, by: Actor) -> None:
    record(
        by=by, kind="step.late_result_dropped", tenant_id=step.tenant_id, subject_type="step", subject_id=step.pk,
        run_id=step.run_id, reason="the lease was over", body={"key": step.key},
    )  # fmt: skip


def _complete(held: _Held, output: Mapping[str, Any]) -> None:
    run, step = held.run, held.step
    document = store_json(run.tenant_id, run.pk, f"result.{step.key}", dict(output), held.now)
    move_step(step, "complete", held.by, at=held.now, result_ref=document.pk)


def _done(held: _Held, result: Done) -> None:
    """Below the contract's threshold a judgement goes to a person; what was judged is kept either way."""
    flow, step = registry.workflow(held.run.workflow), held.step
    step.notes, step.usage, step.confidence = list(result.notes), dict(result.usage), result.confidence
    if result.confidence is not None:
        if not 0 <= result.confidence <= 1:
            raise ValueError("a confidence lies between 0 and 1")
        held.run.confidence = result.confidence
        if result.confidence < flow.contract.confidence:
            _to_person(held, ToPerson("low_confidence", kept=result.output))
            return
    _complete(held, result.output)
    if held.step.key == held.steps[-1].key and "message" in result.output:
        held.run.user_message = str(result.output["message"])


def _finish(held: _Held, result: Finish) -> None:
    case = registry.workflow(held.run.workflow).contract.case(result.case)
    if result.output:
        document = store_json(
            held.run.tenant_id, held.run.pk, f"result.{held.step.key}", dict(result.output), held.now
        )
        held.step.result_ref = document.pk
    end_by_case(held.run, held.step, case, held.steps, by=held.by, now=held.now)


def _fail(held: _Held, result: Fail) -> None:
    case = registry.workflow(held.run.workflow).contract.case(result.case)
    end_by_case(held.run, held.step, case, held.steps, by=held.by, now=held.now)


def _to_person(held: _Held, result: ToPerson) -> None:
    """Keep what was found, as it was, and ask a person, as the exception table says or by itself."""
    if result.kept:
        document = store_json(
            held.run.tenant_id, held.run.pk, f"kept.{held.step.key}", dict(result.kept), held.now
        )
        held.step.notes = [*held.step.notes, f"kept:{document.pk}"]
    case = case_or_none(registry.contract_of(held.run.workflow), result.case)
    if case is not None:
        end_by_case(held.run, held.step, case, held.steps, by=held.by, now=held.now)
        return
    summary = _SUMMARIES.get(result.case, "This case needs a person.")
    stop_step(held.run, held.step, result.case, summary, by=held.by, now=held.now)


_SUMMARIES = {
    "low_confidence": "The classifier was not sure enough to go on by itself.",
    "credential_refused": "A source refused our credential: it was revoked, or it is stale.",
    "stage_broke": "The stage raised an error that nobody foresaw.",
    "source_down": "A source did not answer within the time that this stage may wait.",
    "record_gone": "A record that this rests on is not there any more, so nobody is asked.",
    "already_done": "The very same thing was done before, so nobody is asked about it again.",
    "rate_limited": "A source kept asking us to come back later.",
}


def _wait_for_data(held: _Held, result: WaitForData) -> None:
    on_expiry = registry.workflow(held.run.workflow).contract.on_expiry
    held.step.asks = {"question": result.question, "schema": dict(result.schema)}
    make_wait(held.step, StepWait(WaitingFor.DATA, held.now + result.within, on_expiry), by=held.by)


def _propose(held: _Held, prepared: Prepared) -> None:
    if held.run.cancel_requested_at is not None:
        # An earlier action was on its way when the cancel came; nothing new is asked for.
        cancel_steps(held.steps, by=held.by, now=held.now)
        return
    if is_dry(held.run):
        document = keep_dry(held.run, held.step, prepared, held.now)
        held.step.notes = [*held.step.notes, "prepared_not_proposed"]
        move_step(held.step, "complete", held.by, "dry run", at=held.now, result_ref=document.pk)
        return
    # What stopped here before is over; what stops now, such as nobody being eligible, opens a packet of its own.
    settled(held.run, held.step.key, "proposed", by=held.by, at=held.now)
    try:
        create_proposal(
            held.run,
            held.step,
            prepared,
            tenant=slug_of(held.run.tenant_id),
            by=held.by,
            clock=held.clock,
            now=held.now,
        )
    except PreviouslyRejected as refused:
        _decline(held, refused)
    except NotRepeated as refused:
        _not_repeated(held, refused)
    except AlreadyDone as refused:
        _to_person(held, ToPerson(refused.code, kept=refused.details))


def _not_repeated(held: _Held, refused: NotRepeated) -> None:
    """What a replay does not do again: later stages are given what the original had come to, where it happened."""
    run, step, found = held.run, held.step, refused.found
    step.notes = [*step.notes, f"{refused.code}:{found.why}"]
    earlier = earlier_result(run, step, found)
    if earlier is not None:
        _complete(held, earlier)
    else:
        contract = registry.contract_of(run.workflow)
        make_wait(step, wait_for_approval(held.now, contract.on_expiry), by=held.by, reason=refused.code)
        move_step(step, "skip", held.by, refused.code, at=held.now)
    run.outcome = "declined" if found.why == "rejected" else NOT_REPEATED
    record(
        by=held.by, kind="step.not_repeated", tenant_id=run.tenant_id, subject_type="step", subject_id=step.pk,
        run_id=run.pk, reason=found.why, body={"key": step.key} | refused.details,
    )  # fmt: skip


def _decline(held: _Held, refused: PreviouslyRejected) -> None:
    """A person said no to exactly this a while ago, and that answer is remembered: the run takes it at once."""
    run, step, contract = held.run, held.step, registry.contract_of(held.run.workflow)
    make_wait(step, wait_for_approval(held.now, contract.on_expiry), by=held.by, reason=refused.code)
    move_step(step, "skip", held.by, refused.code, at=held.now)
    run.outcome, run.user_message = "declined", contract.declined_tell
    record(
        by=held.by, kind="step.previously_rejected", tenant_id=run.tenant_id, subject_type="step",
        subject_id=step.pk, run_id=run.pk, reason=refused.details["reason_code"],
        body={"key": step.key, "rejected": refused.details["proposal_id"], "until": refused.details["until"]},
    )  # fmt: skip


def _failed(held: _Held, failure: Failed) -> None:
    if failure.transient:
        _retry_or_stop(held, failure)
    else:
        _give_up(held, failure)


def _give_up(held: _Held, failure: Failed) -> None:
    held.step.failure_code = failure.code
    _to_person(held, ToPerson(failure.code, kept=failure.kept if failure.keep else {}))


def _retry_or_stop(held: _Held, failure: Failed) -> None:
    """Backoff with jitter, a cap on tries and on total time; then a person looks."""
    retry, step = held.claimed.stage.retry, held.step
    began = step.first_tried_at or held.now
    delay = failure.retry_after or backoff(retry, step.attempt)
    if step.attempt >= retry.tries or held.now + delay > began + retry.total:
        _give_up(held, failure)
        return
    waits_for = WaitingFor.PROVIDER if failure.code == "source_down" else WaitingFor.RETRY
    wait = StepWait(waits_for, began + retry.total)
    make_wait(step, wait, by=held.by, reason=failure.code, due_at=held.now + delay)


def backoff(retry: Retry, attempt: int) -> timedelta:
    """Full jitter over an exponential delay, never under a tenth of it."""
    full = min(retry.first * float(2 ** max(0, attempt - 1)), retry.cap)
    return full * random.uniform(0.1, 1.0)  # noqa: S311 - spreads load, keeps no secret


_STORE: dict[type, Any] = {
    Done: _done,
    Finish: _finish,
    Prepared: _propose,
    WaitForData: _wait_for_data,
    ToPerson: _to_person,
    Fail: _fail,
    Failed: _failed,
}
