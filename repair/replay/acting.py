"""Make a replay: a run of its own, in the lane of reprocessed work, that shares keys and counts with its original."""

from datetime import datetime
from typing import Final
from uuid import UUID

from access.enums import Role
from access.policies import check_role, membership_of
from access.selectors import accounts_of
from audit.actions import record
from audit.actors import Actor, Via
from common.clock import Clock
from common.digests import tenant_hmac
from common.errors import Refused
from common.ids import new_id
from common.tx import action
from repair.replay.rules import Asked, Plan, plan_of
from workflows.actions.correcting import ReasonMissing
from workflows.actions.runs import make_due, make_steps
from workflows.actions.settle import lock_run
from workflows.documents import store
from workflows.enums import Lane, RunKind
from workflows.models import Replay, Run
from workflows.selectors import get_run

REPLAYERS: Final = (Role.OPERATOR, Role.OWNER, Role.ADMIN)


class TokenCannotReplay(Refused):
    """Only a person in a session replays a run, never a token."""

    code = "token_cannot_replay"
    http_status = 403


def replay_run(*, tenant_id: UUID, run_id: UUID, asked: Asked, by: Actor, clock: Clock) -> Run:
    """Replay a run, or replay it once more: a replay of a replay names the first original.

    Read-only stages run again through the ordinary engine. What becomes of the others, ``asked`` says and
    `workflows.actions.replaying` holds it to: nothing that happened, or may have, is done again. Whoever asks for it
    does not decide on what it proposes. Its requester is told of nothing: it has no callback.

    For operators, owners and admins in a session. Raises TokenCannotReplay, RoleMissing, ReasonMissing, NotFound,
    CannotReplay; nothing is stored then.
    """
    if by.via != Via.SESSION or by.user_id is None:
        raise TokenCannotReplay
    check_role(membership_of(by.user_id, tenant_id), *REPLAYERS)
    if not asked.reason.strip():
        raise ReasonMissing
    return _replay(tenant_id, run_id, asked, by=by, clock=clock)


@action
def _replay(tenant_id: UUID, run_id: UUID, asked: Asked, *, by: Actor, clock: Clock) -> Run:
    """Under the original's lock: of two replays that may act, made at once, one is made."""
    base = get_run(tenant_id, run_id)
    lock_run(tenant_id, base.identity)
    base.refresh_from_db()
    now = clock()
    check_role(membership_of(by.user_id, tenant_id), *REPLAYERS)
    plan = plan_of(base, asked)
    run = _make_run(plan, by=by, now=now)
    _remember(run, plan, asked, by=by, now=now)
    steps = make_steps(run, [(stage.key, stage.kind) for stage in plan.flow.stages])
    make_due(steps[0], now)
    return run


def _make_run(plan: Plan, *, by: Actor, now: datetime) -> Run:
    """It takes no turn among the events of its record: that event came long ago, and newer ones do not wait for it."""
    base, flow, run_id = plan.base, plan.flow, new_id()
    assert by.user_id is not None
    document = store(base.tenant_id, run_id, "input", plan.content, now)
    behind = {str(user) for user in accounts_of(base.tenant_id, [by.user_id])}
    run = Run.objects.create(
        id=run_id, tenant_id=base.tenant_id, kind=RunKind.REPLAY, original_id=base.identity, lane=Lane.REPROCESS,
        workflow=flow.name, workflow_version=flow.version, stage=flow.stage, requested_by=base.requested_by,
        requested_through=base.requested_through, on_behalf_of=base.on_behalf_of,
        excluded_users=sorted({*base.excluded_users, *behind}),
        source_system=base.source_system, source_event_id=base.source_event_id,
        request_ids=[by.request_id] if by.request_id else [], input_ref=document.pk,
        input_hash=tenant_hmac(base.tenant_id, "input", plan.content), created_at=now,
    )  # fmt: skip
    for row in plan.data:
        store(base.tenant_id, run_id, row.kind, bytes(row.content), now)
    return run


def _remember(run: Run, plan: Plan, asked: Asked, *, by: Actor, now: datetime) -> None:
    assert by.user_id is not None
    Replay.objects.create(
        tenant_id=run.tenant_id, run=run, versions=asked.versions, effects=asked.effects, fresh=asked.fresh,
        bound=dict(plan.bound), asked_by_id=by.user_id, reason=asked.reason.strip()[:500], at=now,
    )  # fmt: skip
    about = {"versions": str(asked.versions), "effects": str(asked.effects), "fresh": asked.fresh}
    record(
        by=by, kind="run.queued", tenant_id=run.tenant_id, subject_type="run", subject_id=run.pk, run_id=run.pk,
        to_state=run.status, body={
            "workflow": run.workflow, "version": run.workflow_version, "kind": run.kind,
            "original": str(run.original_id),
        },
    )  # fmt: skip
    record(
        by=by, kind="run.replayed", tenant_id=run.tenant_id, subject_type="run", subject_id=run.identity,
        run_id=run.identity, body={"replay": str(run.pk), "of": str(plan.base.pk), **about},
    )  # fmt: skip
