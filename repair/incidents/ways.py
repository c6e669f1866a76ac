"""Ways to an incident from what somebody looks at: the address of all that is alike. Empty for who opens none."""

from datetime import datetime
from uuid import UUID

from access.models import Membership
from access.policies import can_role
from repair.choices.case import REPAIRERS
from repair.incidents.criteria import alike
from repair.models import RepairPacket
from workflows.models import Run


def alike_run(run_id: UUID, membership: Membership, now: datetime) -> str:
    """Runs of the same version of the workflow."""
    if not can_role(membership, *REPAIRERS):
        return ""
    run = (
        Run.objects.filter(tenant_id=membership.tenant_id, pk=run_id)
        .only("workflow", "workflow_version")
        .first()
    )
    return alike(now, workflow=run.workflow, workflow_version=run.workflow_version) if run else ""


def alike_packet(packet: RepairPacket, membership: Membership, now: datetime) -> str:
    """Those of them that stopped for the same cause."""
    if not can_role(membership, *REPAIRERS):
        return ""
    run = packet.run
    return alike(now, workflow=run.workflow, workflow_version=run.workflow_version, cause=packet.cause)
