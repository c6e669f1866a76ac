"""Leases that are over: never sent, back to ready; sent, unknown. Time alone never makes *sent* ready again."""

from uuid import UUID

from django.db import connection

from audit.actors import Actor
from common.clock import Clock
from common.tx import action
from workflows.settling import Move, after_lease
from workflows.worker.held import conclude, hold
from workflows.worker.store import lose_track

_OVER = """
    SELECT tenant_id, proposal_id FROM workflows_command
    WHERE status IN ('claimed', 'sent') AND lease_until < clock_timestamp() ORDER BY lease_until LIMIT %s
"""


def recover_lost(*, by: Actor, clock: Clock, limit: int = 100) -> int:
    """Settle every command whose worker is gone, each in a transaction of its own; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(_OVER, [limit])
        rows = cursor.fetchall()
    return sum(_recover(tenant_id, proposal_id, by=by, clock=clock) for tenant_id, proposal_id in rows)


@action
def _recover(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> bool:
    held = hold(tenant_id, proposal_id, by=by, clock=clock)
    if held is None or held.command.lease_until is None or held.command.lease_until >= held.now:
        return False  # its worker stored an answer, or another process was here first
    attempt = held.attempt()
    move = after_lease(held.command)
    if move is Move.LOSE_TRACK:
        if attempt is not None:
            attempt.no_answer(at=held.now, outcome="lease_over", detail="the worker did not come back")
            attempt.save()
        lose_track(held, "lease_over")
    elif move is Move.FREE:
        if attempt is not None:
            attempt.release(at=held.now, outcome="lease_over")
            attempt.save()
        held.move("free", "lease over", due_at=held.now)
        conclude(held)
    return move is not Move.STAY
