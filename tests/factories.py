"""Saved rows with valid defaults. A state is always reached by legal moves, each saved, as the walls demand.

    run = make_run(tenant)                                  a queued run with its source event and input
    step = make_step(run, status=StepStatus.WAITING)
    proposal = make_proposal(run, step, status="approved")
    command = make_command(status="unknown")                and the run, step and proposal that belong to it

`make_command(status="ready")` alone is enough: what is not given is made.
"""

from collections.abc import Collection
from typing import Any

from access.enums import Role
from access.models import Group, GroupMembership, Membership, User
from approvals.enums import DecisionKind, Mode, ProposalStatus
from approvals.models import Decision, Evidence, Proposal
from audit.actions import record
from audit.actors import worker_actor
from common.ids import new_id
from common.models import Tenant
from common.tx import action
from repair.enums import PacketStatus
from repair.models import RepairPacket
from tests import rows
from workflows.enums import CommandStatus, RunStatus, StepStatus, WaitingFor
from workflows.models import Attempt, Command, Lookup, Replay, Run, Step

PASSWORD = "correct horse battery staple"


def make_tenant(slug: str = "", **fields: Any) -> Tenant:
    return Tenant.objects.create(slug=slug or f"tenant-{new_id()}", **({"name": slug or "Tenant"} | fields))


def make_user(
    tenant: Tenant,
    username: str = "",
    *,
    roles: Collection[Role] = (Role.REVIEWER,),
    groups: Collection[Group] = (),
    **fields: Any,
) -> User:
    """A person with a membership of the tenant; signs in with `PASSWORD`."""
    user = User.objects.create_user(username or f"user-{new_id()}", password=PASSWORD, **fields)
    membership = Membership.objects.create(tenant=tenant, user=user, roles=list(roles))
    for group in groups:
        GroupMembership.objects.create(tenant=tenant, membership=membership, group=group)
    return user


def make_group(tenant: Tenant, name: str = "Refund desk") -> Group:
    return Group.objects.create(tenant=tenant, name=name)


def make_run(tenant: Tenant | None = None, *, status: str = RunStatus.QUEUED, **fields: Any) -> Run:
    """A run with its source event and its input document."""
    run = rows.run_row(tenant or make_tenant(), **fields)
    document = rows.document_row(run)
    run.input_ref = document.pk
    document.save()
    run.save()
    rows.source_event_row(run).save()
    if status != RunStatus.QUEUED:
        rows.settled(run, RunStatus(status), rows.now())
        run.save()
    return run


def make_replay(run: Run, user: User, **fields: Any) -> Replay:
    """How a run of kind *replay* was asked for: one that may act, where nothing else is said."""
    defaults = {
        "tenant_id": run.tenant_id, "run": run, "versions": "now", "effects": "propose", "asked_by": user,
        "reason": "the test wants it", "at": rows.now(),
    }  # fmt: skip
    return Replay.objects.create(**(defaults | fields))


def make_step(
    run: Run | None = None,
    *,
    status: str = StepStatus.PENDING,
    waiting_for: str = WaitingFor.APPROVAL,
    **fields: Any,
) -> Step:
    """A step of ``run`` (of a new one where none is given), at the next free position."""
    run = run or make_run()
    fields.setdefault("position", run.steps.count())
    step = rows.step_row(run, **fields)
    step.save()
    return bring(step, status, **({"for_": waiting_for} if status == StepStatus.WAITING else {}))


def make_proposal(
    run: Run | None = None,
    step: Step | None = None,
    *,
    status: str = ProposalStatus.PENDING,
    tenant: Tenant | None = None,
    **fields: Any,
) -> Proposal:
    """A proposal of the step, which then knows its id. Pending ones have their step waiting for approval."""
    run = run or (step.run if step else make_run(tenant))
    step = step or make_step(run, status=StepStatus.WAITING)
    proposal = rows.proposal_row(run, step, **fields)
    proposal.save()
    Step.objects.filter(pk=step.pk).update(proposal_id=proposal.pk, generation=proposal.generation)
    step.refresh_from_db()
    return bring(proposal, status)


@action
def propose_in_history(proposal: Proposal) -> Proposal:
    """The event that the real action writes with a new proposal."""
    record(
        by=worker_actor("w-1"), kind="proposal.made", tenant_id=proposal.tenant_id, subject_type="proposal",
        subject_id=proposal.pk, run_id=proposal.run_id, to_state=proposal.status,
    )  # fmt: skip
    return proposal


def make_evidence(proposal: Proposal, **fields: Any) -> Evidence:
    evidence = rows.evidence_row(proposal, **fields)
    evidence.save()
    return evidence


def make_decision(
    proposal: Proposal, user: User | None, *, kind: str = DecisionKind.APPROVE, **fields: Any
) -> Decision:
    """The recorded vote of a person, or of the rule where ``user`` is None. It does not move the proposal."""
    decision = rows.decision_row(proposal, user, kind=kind, **fields)
    decision.save()
    return decision


def make_command(
    proposal: Proposal | None = None,
    *,
    status: str = CommandStatus.READY,
    tenant: Tenant | None = None,
    **fields: Any,
) -> Command:
    """The command of an approved live proposal."""
    proposal = proposal or make_proposal(status=ProposalStatus.APPROVED, tenant=tenant)
    assert (proposal.status, proposal.mode) == (ProposalStatus.APPROVED, Mode.LIVE)
    run = Run.objects.get(pk=proposal.run_id)
    command = rows.command_row(proposal, run, run.steps.get(key=proposal.step), **fields)
    command.save()
    return bring(command, status)


def make_attempt(command: Command, *, status: str = "claimed", **fields: Any) -> Attempt:
    attempt = rows.attempt_row(command, number=fields.pop("number", command.attempts.count() + 1), **fields)
    attempt.save()
    return bring(attempt, status)


def make_lookup(command: Command, **fields: Any) -> Lookup:
    lookup = rows.lookup_row(command, **fields)
    lookup.save()
    return lookup


def make_packet(run: Run | None = None, *, status: str = PacketStatus.OPEN, **fields: Any) -> RepairPacket:
    packet = rows.packet_row(run or make_run(), **fields)
    packet.save()
    return bring(packet, status)


def bring(row: Any, status: str, **arguments: Any) -> Any:
    """Take a saved row to ``status`` by the shortest declared way, saving every move.

    ``arguments`` go to the last move.
    """
    path = rows.path_to(type(row), status)
    for number, name in enumerate(path, start=1):
        rows.moved(row, name, rows.now(), **(arguments if number == len(path) else {}))
        row.save()
    return row
