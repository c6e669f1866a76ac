"""One round of work: claim a few, send and store each. What a wake-up runs, and what the sweep runs without one."""

from collections.abc import Mapping
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, connection

from audit.actors import Actor, worker_actor
from common.clock import Clock, db_clock
from common.deadline import Deadline
from workflows.classify import Observation
from workflows.crashpoints import crashpoint
from workflows.engine.run import worker_name
from workflows.enums import Lane
from workflows.models import Command
from workflows.worker.claim import LEASE, Claim, claim_commands
from workflows.worker.send import commit_sent, give_back, look, make_call
from workflows.worker.store import store_answer

log = structlog.get_logger(__name__)

BATCH = 10


def work(*, limit: int = BATCH, lane: Lane = Lane.NEW, clock: Clock = db_clock) -> int:
    """Execute up to ``limit`` due commands, one call at a time; returns how many were claimed.

    Losing a lease, a race or the database is a normal end of one command, and so is an error that nobody foresaw:
    the others go on. What slow calls left no time for is given back, for other workers to take.
    """
    name = worker_name()
    by = worker_actor(name)
    patience = Deadline.after(LEASE.total_seconds() / 2)
    claims = claim_commands(limit=limit, lane=lane, worker=name, by=by, clock=clock)
    crashpoint("CP3")
    for claim in claims:
        do = give_back if patience.over() else execute
        try:
            do(claim, by=by, clock=clock)
        except Exception as error:
            # What was stored decides, and recovery reads it; perhaps it was the commit that raised.
            log.exception("command_left_to_recovery", command_id=str(claim.command_id))
            if isinstance(error, (OperationalError, InterfaceError)):
                connection.close()
    return len(claims)


def execute(claim: Claim, *, by: Actor, clock: Clock) -> None:
    """Look, commit *sent*, call without any lock, store."""
    command = Command.objects.select_related("proposal", "run").get(pk=claim.command_id)
    looked = look(claim, command)
    # The call's deadline begins before *sent* commits: a worker that sleeps in between wakes up too late to call.
    deadline = Deadline.after(claim.operation.call_deadline.total_seconds())
    contract = commit_sent(claim, looked, by=by, clock=clock)
    if contract is None:
        return
    crashpoint("CP5")
    seen = _call(claim, command, contract, deadline)
    crashpoint("CP8")
    store_answer(claim, seen, by=by, clock=clock)
    crashpoint("CP10")


def _call(claim: Claim, command: Command, contract: Mapping[str, Any], deadline: Deadline) -> Observation:
    """The one request. An error of the operation's own code after *sent* is an outcome that nobody knows."""
    if deadline.over():
        return Observation(sent=False, detail="this worker came too late to call")
    try:
        return claim.operation.execute(make_call(command, contract, deadline))
    except Exception as error:
        log.exception("operation_broke", command_id=str(command.pk), operation=command.operation)
        return Observation(sent=True, detail=type(error).__name__)
