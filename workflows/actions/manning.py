"""Who is asked about a proposal: told when nobody who could answer is there, asked wider in time, drawn for later."""

from datetime import datetime
from uuid import UUID

from access.models import Group
from access.presence import rosters
from approvals.actions import lock_proposal
from approvals.enums import ProposalStatus
from approvals.escalating import Step as Widening
from approvals.escalating import plan
from approvals.manning import manning_of, note_manning
from approvals.models import Proposal
from approvals.sampling import draw
from audit.actors import Actor
from common.clock import Clock
from common.rounds import each
from common.tx import action
from workflows import registry
from workflows.actions.settle import lock_run, steps_of
from workflows.hooks import Stop, settled, stopped
from workflows.models import Run, Step
from workflows.modes import BySample

CAUSE = "nobody_eligible"


def group_of(tenant_id: UUID, name: str) -> Group | None:
    """The group that a rule or a workflow names. One that nobody made yet is made, empty: then the proposal says so."""
    return Group.objects.get_or_create(tenant_id=tenant_id, name=name)[0] if name else None


def plan_escalations(proposal: Proposal) -> None:
    """What the workflow declares, as instants of this proposal."""
    flow = registry.installed(proposal.workflow)
    plan(proposal, [
        Widening(
            declared.due_at(proposal.created_at, proposal.decide_by),
            group.pk if (group := group_of(proposal.tenant_id, declared.group)) else None,
            declared.role, declared.because,
        )
        for declared in (flow.escalate if flow else ())
    ])  # fmt: skip


def draw_sample(proposal: Proposal, command_id: UUID | None, *, by: Actor, now: datetime) -> None:
    """Where the workflow is reviewed by sample, draw for what its rule has just approved."""
    flow = registry.installed(proposal.workflow)
    if flow is not None and isinstance(flow.review, BySample) and command_id is not None:
        review = flow.review
        draw(proposal, command_id, share=review.share, wrong_limit=review.wrong_limit, by=by, now=now)


def report_if_unmanned(run: Run, step: Step, proposal: Proposal, *, by: Actor, now: datetime) -> None:
    """The alarm at the moment of proposing: beside the proposal, in the history, and as a packet of the run."""
    found = manning_of(proposal, now)
    note_manning(proposal, found, by=by)
    if found.why:
        _stop(run, step, proposal, found.why, by=by, now=now)


def recheck_manning(*, by: Actor, clock: Clock, limit: int = 200) -> int:
    """Count again for what waits in organisations whose people, absences or hours have changed; returns how many.

    What was counted under the same roster is left alone: that time passes was part of the count.
    """
    waiting = Proposal.objects.filter(status=ProposalStatus.PENDING, decide_by__gt=clock())
    tenants = waiting.order_by("tenant_id").values_list("tenant_id", flat=True).distinct()
    rows = [
        (tenant_id, proposal_id)
        for tenant_id, roster in rosters(list(tenants)).items()
        for proposal_id in waiting.filter(tenant_id=tenant_id)
        .exclude(roster=roster)
        .order_by("decide_by", "pk")
        .values_list("pk", flat=True)[:limit]
    ]
    return each(rows[:limit], lambda row: _recheck(*row, by=by, clock=clock), what="recheck_manning")


@action
def _recheck(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> bool:
    """The row itself is locked for the moment of the count; whoever decides meanwhile is waited for."""
    proposal = lock_proposal(tenant_id, proposal_id)
    now = clock()
    if proposal.status != ProposalStatus.PENDING or now >= proposal.decide_by:
        return False
    found = manning_of(proposal, now)
    if not note_manning(proposal, found, by=by):
        return True
    run = lock_run(tenant_id, proposal.run_id)
    step = next(step for step in steps_of(run) if step.key == proposal.step)
    if found.why:
        _stop(run, step, proposal, found.why, by=by, now=now)
    else:
        settled(run, step.key, "manned", by=by, at=now)
    return True


def _stop(run: Run, step: Step, proposal: Proposal, why: str, *, by: Actor, now: datetime) -> None:
    owner = registry.contract_of(run.workflow).owner
    stopped(Stop(run, step.key, CAUSE, why, owner, None, proposal.pk), by=by, at=now)
