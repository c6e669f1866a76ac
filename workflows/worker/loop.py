"""One round of work: claim a few, send and store them. What a wake-up runs, and what the sweep runs without one."""

from collections.abc import Sequence
from uuid import UUID

import structlog
from django.db import connection

from audit.actors import Actor, worker_actor
from common.away import is_away
from common.clock import Clock, db_clock
from common.crashpoints import crashpoint
from common.db import is_lock_timeout
from common.deadline import Deadline
from common.stopping import stopping
from workflows.engine.run import worker_name
from workflows.enums import Lane
from workflows.models import Command
from workflows.worker.batch.calls import look_together, most_at_once
from workflows.worker.batch.round import send_and_store, store_alone
from workflows.worker.batch.send import is_clean
from workflows.worker.batch.store import Answer
from workflows.worker.calling import observe
from workflows.worker.claim import LEASE, Claim, claim_commands
from workflows.worker.send import Looked, commit_sent, give_back, look, make_call

log = structlog.get_logger(__name__)

BATCH = 20


def work(*, limit: int = BATCH, lane: Lane = Lane.NEW, clock: Clock = db_clock) -> int:
    """Execute up to ``limit`` due commands, as many at once as there are threads; returns how many were claimed.

    Those that pass every check are sent and stored together; the others go one by one after them. Losing a lease, a
    race or the database is a normal end of one command, and so is an error that nobody foresaw: the others go on. What
    slow calls left no time for is given back, for other workers to take, and so is what was not sent when this process
    was told to stop.
    """
    if stopping():
        return 0
    name = worker_name()
    by = worker_actor(name)
    patience = Deadline.after(LEASE.total_seconds() / 2)
    if lane == Lane.REPROCESS:
        limit = 1  # perhaps this is what its last worker died of: nobody else goes with it
    claims = claim_commands(limit=limit, lane=lane, worker=name, by=by, clock=clock)
    crashpoint("CP3")
    few = most_at_once()
    for first in range(0, len(claims), few):
        _guarded(claims[first : first + few], patience, by=by, clock=clock)
    return len(claims)


def _guarded(claims: Sequence[Claim], patience: Deadline, *, by: Actor, clock: Clock) -> None:
    try:
        _execute_few(claims, patience, by=by, clock=clock)
    except Exception as error:
        log.exception("commands_left_to_recovery", commands=[str(claim.command_id) for claim in claims])
        if is_away(error):
            connection.close()


def _execute_few(claims: Sequence[Claim], patience: Deadline, *, by: Actor, clock: Clock) -> None:
    looks: dict[UUID, Looked | None] = {claim.command_id: None for claim in claims}
    rest = list(claims)
    if most_at_once() > 1 and _go_on(patience):
        looks = look_together(claims)
        # Whose operation broke while it looked is left to recovery.
        rest = [claim for claim in claims if claim.command_id in looks]
        if _go_on(patience):
            sent = send_and_store(rest, looks, by=by, clock=clock)
            rest = [claim for claim in rest if claim.command_id not in sent]
    for claim in rest:
        _alone(claim, looks[claim.command_id], patience, by=by, clock=clock)


def _go_on(patience: Deadline) -> bool:
    return not (patience.over() or stopping())


def _alone(claim: Claim, looked: Looked | None, patience: Deadline, *, by: Actor, clock: Clock) -> None:
    try:
        if _go_on(patience):
            # What stands in the way still does; that nothing did is read once more, because time has passed.
            known = looked if looked is not None and not is_clean(looked) else None
            execute(claim, known, by=by, clock=clock)
        else:
            give_back(claim, by=by, clock=clock)
    except Exception as error:
        # What was stored decides, and recovery reads it; perhaps it was the commit that raised.
        log.exception("command_left_to_recovery", command_id=str(claim.command_id))
        if is_lock_timeout(error):
            give_back(claim, by=by, clock=clock)  # its worker lives, and this counts against nobody
        elif is_away(error):
            connection.close()


def execute(claim: Claim, looked: Looked | None = None, *, by: Actor, clock: Clock) -> None:
    """One command alone: look, commit *sent*, call without any lock, store."""
    command = Command.objects.select_related("proposal", "run").get(pk=claim.command_id)
    looked = looked or look(claim, command)
    if stopping():
        give_back(claim, by=by, clock=clock)
        return
    # The call's deadline begins before *sent* commits: a worker that sleeps in between wakes up too late to call.
    seconds = claim.operation.call_deadline.total_seconds()
    deadline, lease = Deadline.after(seconds), Deadline.after(2 * seconds)
    contract = commit_sent(claim, looked, by=by, clock=clock)
    if contract is None:
        return
    crashpoint("CP5")
    seen = observe(
        claim.operation, lambda: make_call(command, contract, deadline), deadline, secrets=looked.secrets
    )
    crashpoint("CP8")
    store_alone(Answer(claim, seen, lease), by=by, clock=clock)
    crashpoint("CP10")
