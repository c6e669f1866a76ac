"""Calling held what a freeze or an open circuit holds, many commands at a time.

What is only passed over by the claim is read by every claim again, and would all be due at once after the lift.
"""

from typing import Final
from uuid import UUID

from django.db import connection

from approvals.models import Proposal
from audit.actions import record_many
from audit.actors import Actor
from common.clock import Clock
from common.deadline import Deadline
from common.fsm import sources_of
from common.rounds import each
from common.stopping import stopping
from common.tx import action
from workflows.actions.decided import command_event
from workflows.actions.settle import settle_run
from workflows.enums import CommandStatus, HoldReason, HoldStatus, RunStatus
from workflows.models import Command, Hold, Run
from workflows.scope import MATCHES

C = CommandStatus
AT_ONCE: Final = 2000
RUNS_AT_ONCE: Final = 100
BUDGET_S: Final = 2.0
LAGGING: Final = (RunStatus.EXECUTING, RunStatus.WAITING_FOR_RETRY)
"""What a run is called while its command waits for a worker: with a held one it is degraded."""

# As the claim does it: commands without their proposals, and whatever somebody has locked just now goes its own way.
# Freezes first, as `holds_in_force` has them. The limit stands in the text for the reason that the claim gives.
_HELD_BACK = f"""
    SELECT c.id, m.id FROM workflows_command c CROSS JOIN LATERAL (
        SELECT h.id FROM workflows_hold h WHERE {MATCHES}
        ORDER BY h.reason <> 'freeze', h.placed_at, h.id LIMIT 1) m
    WHERE c.status = ANY(%s) AND c.status IN ('ready', 'retry_wait')
    ORDER BY c.id LIMIT {{limit}} FOR NO KEY UPDATE OF c SKIP LOCKED
"""  # noqa: S608 - our own text
# All that the model's `hold_back` changes, of rows that it was called on under the same lock.
_SAVE = """
    UPDATE workflows_command c SET status = 'held', hold_reason = t.reason, hold_id = t.hold, due_at = NULL,
        lease_token = NULL, lease_until = NULL, effect = 'none', resent = false, restored = false,
        state_version = c.state_version + 1
    FROM unnest(%s::uuid[], %s::text[], %s::uuid[]) AS t(id, reason, hold)
    WHERE c.id = t.id AND c.status = ANY(%s) AND c.status IN ('ready', 'retry_wait')
"""


def hold_back_all(*, by: Actor, clock: Clock, budget_s: float = BUDGET_S) -> int:
    """Call held what is held, until nothing is left or the time is over; returns how many moved.

    Their runs say *executing* until `follow_held` has seen to them.
    """
    if not Hold.objects.filter(status__in=HoldStatus.holding_states).exists():
        return 0
    until, total = Deadline.after(budget_s), 0
    while moved := _hold_back_some(by=by, clock=clock):
        total += moved
        if until.over() or stopping():
            break
    return total


@action
def _hold_back_some(*, by: Actor, clock: Clock) -> int:
    sources = sources_of(Command, C.HELD)
    with connection.cursor() as cursor:
        cursor.execute(_HELD_BACK.format(limit=AT_ONCE), [sources])
        holds = dict(cursor.fetchall())
    if not holds:
        return 0
    _move(holds, sources, by)
    return len(holds)


def _move(holds: dict[UUID, UUID], sources: list[str], by: Actor) -> None:
    """``holds``: locked commands, each with what holds it."""
    rows, known = Command.objects.in_bulk(list(holds)), Hold.objects.in_bulk(set(holds.values()))
    commands = [(rows[id_], known[hold_id]) for id_, hold_id in holds.items()]
    proposals = Proposal.objects.filter(pk__in=[command.proposal_id for command, _ in commands])
    digests = dict(proposals.values_list("pk", "digest"))
    entries = []
    for command, hold in commands:
        before, reason = command.status, HoldReason(hold.reason)
        command.hold_back(reason=reason, hold=hold)
        digest = digests[command.proposal_id]
        entries.append(command_event(command, before, by=by, reason=reason, digest=digest))
    with connection.cursor() as cursor:
        reasons = [hold.reason for _, hold in commands]
        cursor.execute(_SAVE, [list(holds), reasons, list(holds.values()), sources])
        assert cursor.rowcount == len(commands), "a command that was held back matched no row"
    record_many(entries)


def follow_held(*, by: Actor, clock: Clock, budget_s: float = BUDGET_S) -> int:
    """Let the runs of what was called held show *degraded*; returns how many. Who stops early leaves the rest due."""
    lagging = Command.objects.filter(status=C.HELD, run__status__in=LAGGING).values_list("run_id", flat=True)
    ids, until = list(lagging.distinct()[:AT_ONCE]), Deadline.after(budget_s)
    parts = (ids[first : first + RUNS_AT_ONCE] for first in range(0, len(ids), RUNS_AT_ONCE))
    followed = 0

    def follow(part: list[UUID]) -> None:
        nonlocal followed
        if not until.over():
            followed += _follow(part, by=by, clock=clock)

    each(parts, follow, what="follow_held")
    return followed


@action
def _follow(ids: list[UUID], *, by: Actor, clock: Clock) -> int:
    """Whoever has a run locked just now lets its status follow by himself."""
    runs = Run.objects.select_for_update(of=("self",), no_key=True, skip_locked=True).filter(
        pk__in=ids, status__in=LAGGING
    )
    locked, now = list(runs.order_by("pk")), clock()
    for run in locked:
        settle_run(run, by=by, now=now)
    return len(locked)
