"""Time and tampering for tests: rows are aged, or changed behind the product's back, through the owner's connection.

The owner alias of the tests is a superuser whose triggers are off: what it does, no wall of ours stops.
"""

from typing import Any

from django.db import connections

from approvals.models import Proposal
from audit.actors import clock_actor
from common.clock import db_clock
from repair.models import RepairPacket
from workflows.models import Command, Run, Step
from workflows.worker.reconcile import reconcile
from workflows.worker.recover import recover_lost

_TIMES = {
    "workflows_command": ("due_at", "lease_until", "first_sent_at", "last_sent_at", "created_at"),
    "approvals_proposal": ("decide_by", "execute_by", "decided_at", "created_at"),
    "workflows_step": ("due_at", "lease_until", "first_tried_at", "waiting_until"),
    "workflows_run": ("waiting_until",),
}
SWEEP = clock_actor()


def as_superuser(sql: str, *params: Any) -> int:
    """Past triggers and policies; returns how many rows it touched."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.rowcount)


def changed_by_hand(proposal_id: Any, column: str, old: str, new: str) -> None:
    """Something else in the text of a proposal's column, as an administrator might write it past the seal."""
    before: bytes = getattr(Proposal.objects.get(pk=proposal_id), column)
    assert old.encode() in before
    after = before.replace(old.encode(), new.encode())
    as_superuser(f"UPDATE approvals_proposal SET {column} = %s WHERE id = %s", after, proposal_id)


def age(run_id: Any, seconds: float, *tables: str) -> None:
    """Let ``seconds`` pass for the rows of a run: all their times move into the past."""
    for table in tables or _TIMES:
        changes = ", ".join(
            f"{name} = {name} - make_interval(secs => {float(seconds)})" for name in _TIMES[table]
        )
        column = "id" if table == "workflows_run" else "run_id"
        as_superuser(f"UPDATE {table} SET {changes} WHERE {column} = %s", run_id)


def recover() -> int:
    return recover_lost(by=SWEEP, clock=db_clock)


def look_up(command: Command) -> bool:
    """One reconciliation now, whenever it is due; whether it settled the command."""
    return reconcile(command.pk, by=SWEEP, clock=db_clock, worker="tester")


def fresh(command: Command) -> Command:
    return Command.objects.get(pk=command.pk)


def end_of(command: Command) -> dict[str, Any]:
    """Where everything about a command stands, in the words of the design's table."""
    command = fresh(command)
    proposal, step = Proposal.objects.get(pk=command.proposal_id), Step.objects.get(pk=command.step_id)
    reason = f"({command.void_reason})" if command.void_reason else ""
    waits = f"({step.waiting_for})" if step.waiting_for else ""
    return {
        "command": command.status + reason, "effect": command.effect, "proposal": proposal.status,
        "step": step.status + waits, "run": Run.objects.get(pk=command.run_id).status,
        "packets": open_packets(command.run_id),
    }  # fmt: skip


def open_packets(run_id: Any) -> list[str]:
    packets = RepairPacket.objects.filter(run_id=run_id).exclude(status__in=("resolved", "abandoned"))
    return sorted(packets.values_list("cause", flat=True))
