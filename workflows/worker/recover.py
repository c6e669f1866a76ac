"""Leases that are over: never sent, back to ready; sent, unknown. Time alone never makes *sent* ready again.

And commands whose time to execute is over, which nobody can claim any more.
"""

from datetime import timedelta
from itertools import takewhile
from uuid import UUID

from django.db import connection

from audit.actors import Actor
from common.clock import Clock
from common.content_keys import known_names, locked
from common.crashpoints import crashpoint
from common.rounds import each
from common.tx import action
from workflows.enums import CommandStatus, Lane, SettledBy
from workflows.models import Attempt
from workflows.settling import Move, Settlement, after_lease
from workflows.worker.checks import failed_check
from workflows.worker.held import Held, conclude, hold, make_move
from workflows.worker.send import GIVEN_BACK
from workflows.worker.store import lose_track

C = CommandStatus
LEASE_OVER = "lease_over"
QUARANTINE_AFTER = 5
"""Claims of one command from which no worker came back, after which a person looks."""

_OVER = f"""
    SELECT tenant_id, proposal_id FROM workflows_command c
    WHERE status IN ('claimed', 'sent') AND lease_until < clock_timestamp() AND NOT {locked("c")}
    ORDER BY lease_until LIMIT %(limit)s
"""  # noqa: S608 - our own text


def recover_lost(*, by: Actor, clock: Clock, limit: int = 100) -> int:
    """Settle every command whose worker is gone, each in a transaction of its own; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(_OVER, {"limit": limit, "keys": known_names()})
        rows = cursor.fetchall()
    return each(rows, lambda row: _recover(*row, by=by, clock=clock), what="recover")


@action
def _recover(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> bool:
    held = hold(tenant_id, proposal_id, by=by, clock=clock)
    if held is None or held.command.lease_until is None or held.command.lease_until >= held.now:
        return False  # its worker stored an answer, or another process was here first
    move = after_lease(held.command)
    _end_attempt(held, move)
    if move is Move.LOSE_TRACK:
        lose_track(held, "lease_over")
    elif move is Move.FREE:
        _free(held)
    crashpoint("CP13")
    return move is not Move.STAY


_LAPSED = f"""
    SELECT c.tenant_id, c.proposal_id FROM workflows_command c JOIN approvals_proposal p ON p.id = c.proposal_id
    WHERE c.status IN ('ready', 'retry_wait', 'held') AND p.execute_by <= clock_timestamp()
      AND NOT {locked("c")}
    ORDER BY p.execute_by LIMIT %(limit)s
"""  # noqa: S608 - our own text


def void_lapsed(*, by: Actor, clock: Clock, limit: int = 100) -> int:
    """End what nobody can claim any more in time: its target is held by an unknown outcome, its provider is full, or
    no worker has its version. Without this it would look as if it were about to be executed. Returns how many.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LAPSED, {"limit": limit, "keys": known_names()})
        rows = cursor.fetchall()
    return each(rows, lambda row: _void_lapsed(*row, by=by, clock=clock), what="void_lapsed")


@action
def _void_lapsed(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> bool:
    held = hold(tenant_id, proposal_id, by=by, clock=clock)
    if held is None or held.command.status not in (C.READY, C.RETRY_WAIT, C.HELD):
        return False  # a worker has it, and makes the same check before it sends
    reason = failed_check(held)
    if reason is None:
        return False
    make_move(held, Settlement(Move.VOID, void_reason=reason), due_at=held.now)
    return True


def _end_attempt(held: Held, move: Move) -> None:
    attempt = held.attempt
    if attempt is None:
        return
    if move is Move.LOSE_TRACK:
        attempt.no_answer(at=held.now, outcome=LEASE_OVER, detail="the worker did not come back")
    else:
        attempt.release(at=held.now, outcome=LEASE_OVER)
    attempt.save()


def _free(held: Held) -> None:
    """Ready again, a little later each time; set aside when no worker ever came back from it."""
    lost = _lost_in_a_row(held)
    if lost >= QUARANTINE_AFTER:
        held.move("give_up", "quarantined", at=held.now, by=SettledBy.CHECK, code="quarantined")
        conclude(held)
        return
    # From now on it is claimed alone: whoever was claimed together with it shall not be lost with it again.
    held.command.lane = Lane.REPROCESS
    held.move("free", "lease over", due_at=held.now + timedelta(seconds=lost - 1))


def _lost_in_a_row(held: Held) -> int:
    """What was given back in between says nothing: its worker never came to it."""
    attempts = (
        Attempt.objects.filter(command=held.command).exclude(outcome=GIVEN_BACK)
        .order_by("-number").values_list("outcome", flat=True)
    )  # fmt: skip
    return len(list(takewhile(lambda outcome: outcome == LEASE_OVER, attempts[:QUARANTINE_AFTER])))
