"""Stalled work that no rule foresaw: what should be moving is compared with what is, and people are told.

Everything that waits has a clock of its own, and somebody who acts when it is over. This finds what has slipped through
all of that: due and taken by nobody, taken and never heard of again, expired and not ended. It moves nothing; it opens
a packet, and closes it when the thing has moved after all.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from audit.actors import Actor
from common.clock import Clock
from common.rounds import each
from common.tx import action
from repair.actions import close_one
from repair.enums import PacketStatus
from repair.models import RepairPacket
from workflows import registry
from workflows.actions.settle import lock_run
from workflows.hooks import Stop, stopped

CAUSE: Final = "stalled"
AFTER_S: Final = 600
"""Seconds after which what should have moved counts as stalled: many rounds of the sweep, and any lease."""
AT_ONCE: Final = 50
"""Of one workflow so many packets are open at most: the oldest ones stand for the others."""
WENT_ON: Final = "went_on"

NOT_TAKEN: Final = "not_taken"
LOST: Final = "lost"
NOT_LOOKED_UP: Final = "not_looked_up"
NOT_EXPIRED: Final = "not_expired"
SAYS: Final = {
    NOT_TAKEN: "It has been due for more than ten minutes, and no worker has taken it or anything of its kind.",
    LOST: "A worker took it more than ten minutes ago, and nobody has noticed that it did not come back.",
    NOT_LOOKED_UP: "Nobody knows whether it happened, and it should have been looked up more than ten minutes ago.",
    NOT_EXPIRED: "The time to decide was over more than ten minutes ago, and it has not been ended.",
}

# While something of its kind is being worked on, the rest is behind and not stalled; and what waits for an outcome that
# is in doubt on the same record is told of there.
_LATE: Final = "clock_timestamp() - make_interval(secs => %(after)s)"
_STALLED: Final = f"""
    SELECT tenant_id, run_id, step, command_id, proposal_id, what, since FROM (
        SELECT s.tenant_id, s.run_id, s.key AS step, NULL::uuid AS command_id, s.proposal_id, '{NOT_TAKEN}' AS what,
               s.due_at AS since
        FROM workflows_step s JOIN workflows_run r ON r.id = s.run_id
        WHERE s.due_at < {_LATE} AND s.status IN ('pending', 'waiting')
          AND NOT EXISTS (
            SELECT FROM workflows_step o JOIN workflows_run q ON q.id = o.run_id
            WHERE o.status = 'running' AND o.lease_until > clock_timestamp() AND q.workflow = r.workflow
              AND q.workflow_version = r.workflow_version)
        UNION ALL
        SELECT tenant_id, run_id, key, NULL, proposal_id, '{LOST}', lease_until
        FROM workflows_step WHERE status = 'running' AND lease_until < {_LATE}
        UNION ALL
        SELECT c.tenant_id, c.run_id, s.key, c.id, c.proposal_id, '{NOT_TAKEN}', c.due_at
        FROM workflows_command c JOIN workflows_step s ON s.id = c.step_id
        WHERE c.status IN ('ready', 'retry_wait') AND c.due_at < {_LATE}
          AND NOT EXISTS (
            SELECT FROM workflows_command o
            WHERE o.status IN ('claimed', 'sent') AND o.lease_until > clock_timestamp()
              AND o.operation = c.operation AND o.operation_version = c.operation_version)
          AND NOT EXISTS (
            SELECT FROM workflows_command o
            WHERE o.tenant_id = c.tenant_id AND o.provider = c.provider AND o.target = c.target
              AND o.status IN ('claimed', 'sent', 'unknown'))
        UNION ALL
        SELECT c.tenant_id, c.run_id, s.key, c.id, c.proposal_id, '{LOST}', c.lease_until
        FROM workflows_command c JOIN workflows_step s ON s.id = c.step_id
        WHERE c.status IN ('claimed', 'sent') AND c.lease_until < {_LATE}
        UNION ALL
        SELECT c.tenant_id, c.run_id, s.key, c.id, c.proposal_id, '{NOT_LOOKED_UP}', c.due_at
        FROM workflows_command c JOIN workflows_step s ON s.id = c.step_id
        WHERE c.status = 'unknown' AND c.due_at < {_LATE}
        UNION ALL
        SELECT p.tenant_id, p.run_id, p.step, NULL, p.id, '{NOT_EXPIRED}', p.decide_by
        FROM approvals_proposal p WHERE p.status >= 'pending' AND p.status <= 'pending' AND p.decide_by < {_LATE}
    ) found
"""  # noqa: S608 - our own texts
_NEW: Final = f"""
    {_STALLED} WHERE NOT EXISTS (
        SELECT FROM repair_repairpacket k WHERE k.run_id = found.run_id AND k.step = found.step AND k.cause = '{CAUSE}'
          AND k.status = ANY(%(open)s::text[]))
    ORDER BY since LIMIT %(limit)s
"""
_STILL: Final = f"{_STALLED} WHERE found.run_id = %(run)s AND found.step = %(step)s LIMIT 1"


@dataclass(frozen=True, slots=True)
class Stalled:
    """One thing that should have moved."""

    tenant_id: UUID
    run_id: UUID
    step: str
    command_id: UUID | None
    proposal_id: UUID | None
    what: str
    since: datetime


def look(by: Actor, clock: Clock) -> int:
    """As the sweep calls it: once a minute, when it has run for ten."""
    return tell_stalled(by=by, clock=clock)


def tell_stalled(*, by: Actor, clock: Clock) -> int:
    """Open packets for what is stalled, and close those whose thing has moved; returns how many of both."""
    opened = each(_found(), lambda it: _open(it, by=by, clock=clock), what="stalled")
    packets = RepairPacket.objects.filter(cause=CAUSE, status__in=PacketStatus.open_states)
    ours = packets.filter(summary__in=SAYS.values()).values_list("pk", "tenant_id", "run_id", "step")
    closed = each(list(ours[:500]), lambda row: _close(*row, by=by, clock=clock), what="went_on")
    return opened + closed


def _found() -> list[Stalled]:
    values: dict[str, Any] = {"after": AFTER_S, "open": list(PacketStatus.open_states), "limit": AT_ONCE}
    with connection.cursor() as cursor:
        cursor.execute(_NEW, values)
        return [Stalled(*row) for row in cursor.fetchall()]


def _still(run_id: UUID, step: str) -> Stalled | None:
    with connection.cursor() as cursor:
        cursor.execute(_STILL, {"after": AFTER_S, "run": run_id, "step": step})
        row = cursor.fetchone()
    return Stalled(*row) if row else None


@action
def _open(it: Stalled, *, by: Actor, clock: Clock) -> bool:
    """Under the run's lock it is looked at once more: what has moved meanwhile is no news."""
    run = lock_run(it.tenant_id, it.run_id)
    if _still(it.run_id, it.step) is None or _enough(it.tenant_id, run.workflow):
        return False
    owner = registry.contract_of(run.workflow).owner
    stop = Stop(run, it.step, CAUSE, SAYS[it.what], owner, it.command_id, it.proposal_id)
    stopped(stop, by=by, at=clock())
    return True


def _enough(tenant_id: UUID, workflow: str) -> bool:
    open_ = RepairPacket.objects.filter(
        tenant_id=tenant_id, cause=CAUSE, status__in=PacketStatus.open_states, run__workflow=workflow
    )
    return open_.count() >= AT_ONCE


@action
def _close(packet_id: UUID, tenant_id: UUID, run_id: UUID, step: str, *, by: Actor, clock: Clock) -> bool:
    lock_run(tenant_id, run_id)
    if _still(run_id, step) is not None:
        return False
    return close_one(tenant_id, packet_id, WENT_ON, by=by, at=clock())
