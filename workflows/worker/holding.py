"""What is due about holds: move what they match to *held*, try open circuits, and let go of what was lifted, paced.

None of this decides whether something may be sent; the transaction that commits ``sent`` does, under the scope lock.
"""

from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Q

from audit.actors import Actor
from common.clock import Clock
from common.rounds import each
from common.tx import action
from workflows import registry
from workflows.actions.freezing import drain, lock_hold, move_hold
from workflows.actions.holding_back import follow_held, hold_back_all
from workflows.enums import AttemptStatus, CommandStatus, HoldReason, HoldStatus, SettledBy
from workflows.models import Attempt, Command, Hold, Run
from workflows.scope import MATCHES
from workflows.settling import Move, after_nothing_happened
from workflows.worker.checks import failed_check, tries_left
from workflows.worker.circuit import BAD, GOOD, LONGEST_PAUSE_S
from workflows.worker.held import conclude, hold, make_move

C = CommandStatus
PACE: Final = timedelta(seconds=1)
TRIES_EXHAUSTED: Final = "tries_exhausted"


def hold_back_due(*, by: Actor, clock: Clock) -> int:
    """Call held what is held, so that its run shows *degraded* and not *executing*; returns how many moved."""
    undrained = Hold.objects.filter(
        reason=HoldReason.FREEZE, status__in=HoldStatus.holding_states, drained_at__isnull=True
    )
    each(undrained.values_list("pk", flat=True), lambda pk: drain(pk, by=by, clock=clock), what="drain")
    moved = hold_back_all(by=by, clock=clock)
    follow_held(by=by, clock=clock)
    return moved


# -- letting go -------------------------------------------------------------------------------------------------


def release_due(*, by: Actor, clock: Clock) -> int:
    """Of each hold that is being lifted let a few commands go, the oldest first; returns how many moved.

    And of what is lifted already: a worker that had seen the hold may have called a command held only after that.
    """
    lifting = Hold.objects.filter(status=HoldStatus.LIFTING).values_list("pk", flat=True)
    late = Command.objects.filter(status=C.HELD, hold__status=HoldStatus.LIFTED)
    turns = [*lifting, *late.values_list("hold_id", flat=True).distinct()]
    return each(turns, lambda pk: _release_some(pk, by=by, clock=clock), what="release")


def _release_some(hold_id: UUID, *, by: Actor, clock: Clock) -> int:
    turn = _take_turn(hold_id, by=by, clock=clock)
    return each(turn, lambda row: _release(*row, by=by, clock=clock), what="release_one")


@action
def _take_turn(hold_id: UUID, *, by: Actor, clock: Clock) -> list[tuple[UUID, UUID]]:
    """The commands whose turn it is. The pace stands in the row, so that more sweeps do not make it faster.

    What no code here knows stays held for code that does, or until it lapses, and stands before nobody.
    """
    it = lock_hold(hold_id)
    now = clock()
    if it.status in HoldStatus.holding_states or (
        it.next_release_at is not None and it.next_release_at > now
    ):
        return []
    waiting = Command.objects.filter(hold=it, status=C.HELD)
    known = waiting.filter(_of_known_operations()).order_by("created_at")
    rows = list(known.values_list("tenant_id", "proposal_id")[: settings.PLACET_RELEASES_PER_SECOND])
    if rows:
        it.next_release_at = now + PACE
        it.save(update_fields=["next_release_at"])
    elif it.status == HoldStatus.LIFTING and not waiting.exists():
        move_hold(it, "end", by, "nothing is held by it any more", at=now)
    return rows


def _of_known_operations() -> Q:
    known = registry.known_operations()
    each_of_them = (Q(operation=name, operation_version=version) for name, version in known)
    return reduce(or_, each_of_them, Q(pk__in=()))


@action
def _release(tenant_id: UUID, proposal_id: UUID, *, by: Actor, clock: Clock) -> bool:
    """Check one command again: void if it no longer holds, held on by something else, or ready for a worker, who checks
    everything once more before it sends.
    """
    held = hold(tenant_id, proposal_id, by=by, clock=clock)
    if held is None or held.command.status != C.HELD:
        return False
    run = Run.objects.only("cancel_requested_at").get(pk=held.command.run_id)
    settlement = after_nothing_happened(
        held.command, cancel_wished=run.cancel_requested_at is not None, frozen=held.is_frozen,
        circuit_open=held.circuit_is_open, failed_check=failed_check(held),
    )  # fmt: skip
    if settlement.move is Move.FREE and not tries_left(held):
        # The time for all tries goes on while it is held.
        held.move("give_up", TRIES_EXHAUSTED, at=held.now, by=SettledBy.CHECK, code=TRIES_EXHAUSTED)
        conclude(held)
        return True
    make_move(held, settlement, due_at=held.now, code=f"released: {settlement.move.value or 'still held'}")
    return True


# -- circuits ---------------------------------------------------------------------------------------------------


def tend_circuits(*, by: Actor, clock: Clock) -> int:
    """Try the providers whose pause is over, with one call each; returns how many circuits moved."""
    open_ = Hold.objects.filter(
        reason=HoldReason.CIRCUIT, status__in=HoldStatus.holding_states, until__isnull=False
    )
    return each(open_.values_list("pk", flat=True), lambda pk: _tend(pk, by=by, clock=clock), what="circuit")


def _tend(hold_id: UUID, *, by: Actor, clock: Clock) -> bool:
    chosen = _move_circuit(hold_id, by=by, clock=clock)
    return chosen is not None and _release(*chosen, by=by, clock=clock)


@action
def _move_circuit(hold_id: UUID, *, by: Actor, clock: Clock) -> tuple[UUID, UUID] | None:
    """The circuit's next move under its lock; the command to let through, when a trial begins."""
    it = lock_hold(hold_id)
    now = clock()
    if it.status == HoldStatus.TRIAL:
        _judge_trial(it, by=by, now=now)
    elif it.status == HoldStatus.IN_FORCE and it.until is not None and it.until <= now:
        return _begin_trial(it, by=by, now=now)
    return None


# A trial must say something soon, so it is one that a worker can claim now, by the same conditions as the claim's, and
# that nothing else holds: a freeze would only take it over. One that was given up comes last.
_FOR_TRIAL = f"""
    SELECT c.id, c.tenant_id, c.proposal_id FROM workflows_command c
    WHERE c.status = 'held' AND c.hold_id = %(hold)s
      AND (c.operation, c.operation_version) IN (SELECT * FROM unnest(%(names)s::text[], %(versions)s::int[]))
      AND NOT EXISTS (
        SELECT FROM workflows_command o WHERE o.tenant_id = c.tenant_id AND o.provider = c.provider
          AND o.target = c.target AND o.status IN ('claimed', 'sent', 'unknown') AND NOT o.restored)
      AND NOT EXISTS (
        SELECT FROM workflows_command o WHERE o.tenant_id = c.tenant_id AND o.provider = c.provider
          AND o.target = c.target AND o.restored)
      AND NOT EXISTS (SELECT FROM workflows_hold h WHERE h.id <> %(hold)s AND {MATCHES})
    ORDER BY c.id::text IS NOT DISTINCT FROM %(given_up)s, c.created_at LIMIT 1
"""  # noqa: S608 - our own text
GIVEN_UP: Final = "given_up"
"""In the notes of a circuit: the last trial that nobody took."""


def _begin_trial(it: Hold, *, by: Actor, now: datetime) -> tuple[UUID, UUID] | None:
    chosen = _choose_trial(it)
    if chosen is not None:
        command_id, tenant_id, proposal_id = chosen
        move_hold(it, "try_one", by, "the pause is over", at=now, command_id=command_id)
        return tenant_id, proposal_id
    assert it.tenant_id is not None
    waiting = Command.objects.filter(tenant_id=it.tenant_id, provider=it.provider, status=C.HELD)
    if not waiting.exists():
        # Nothing waits for it; should the next call fail as well, it opens again.
        _close(it, "nothing waits for it", by=by, now=now)
    return None  # or what waits cannot be sent now, circuit or not: it stays open until one can


def _choose_trial(it: Hold) -> tuple[UUID, UUID, UUID] | None:
    known = registry.known_operations()
    with connection.cursor() as cursor:
        cursor.execute(_FOR_TRIAL, {
            "hold": it.pk, "given_up": it.in_flight.get(GIVEN_UP), "names": [name for name, _ in known],
            "versions": [version for _, version in known],
        })  # fmt: skip
        row: tuple[UUID, UUID, UUID] | None = cursor.fetchone()
    return row


def _close(it: Hold, why: str, *, by: Actor, now: datetime) -> None:
    move_hold(it, "lift", by, why, at=now, by=by.performed_by, why=why)


def _judge_trial(it: Hold, *, by: Actor, now: datetime) -> None:
    """By the end of the trial's attempt. A trial that was never sent says nothing: the next one is chosen."""
    assert it.trial_command_id is not None
    assert it.trial_at is not None
    attempts = Attempt.objects.filter(command_id=it.trial_command_id, claimed_at__gte=it.trial_at)
    outcomes = set(attempts.values_list("outcome", flat=True))
    if outcomes & GOOD:
        _close(it, "the trial went through", by=by, now=now)
    elif outcomes & BAD:
        pause_s = min(it.pause_s * 2, LONGEST_PAUSE_S)
        move_hold(
            it, "hold_on", by, "the trial failed", until=now + timedelta(seconds=pause_s), pause_s=pause_s
        )
    elif not _may_still_tell(it.trial_command_id):
        move_hold(it, "hold_on", by, "the trial was not sent", until=now, pause_s=it.pause_s)
    elif not outcomes and now > it.trial_at + timedelta(seconds=it.pause_s):
        it.in_flight = {**it.in_flight, GIVEN_UP: str(it.trial_command_id)}
        move_hold(it, "hold_on", by, "nobody took the trial", until=now, pause_s=it.pause_s)


def _may_still_tell(command_id: UUID) -> bool:
    to_come = Command.objects.filter(pk=command_id, status__in=(C.READY, C.CLAIMED, C.SENT, C.RETRY_WAIT))
    under_way = Attempt.objects.filter(
        command_id=command_id, status__in=(AttemptStatus.CLAIMED, AttemptStatus.SENT)
    )
    return to_come.exists() or under_way.exists()
