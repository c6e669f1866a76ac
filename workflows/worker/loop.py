"""One round of work: claim a few, send and store each. What a wake-up runs, and what the sweep runs without one."""

import structlog
from django.db import InterfaceError, OperationalError, connection

from audit.actors import Actor, worker_actor
from common.clock import Clock, db_clock
from common.deadline import Deadline
from workflows import registry
from workflows.classify import Observation
from workflows.crashpoints import crashpoint
from workflows.engine.run import worker_name
from workflows.enums import Lane
from workflows.models import Command
from workflows.worker.claim import Claim, claim_commands
from workflows.worker.send import commit_sent, look, make_call
from workflows.worker.store import store_answer

log = structlog.get_logger(__name__)

BATCH = 10


def work(*, limit: int = BATCH, lane: Lane = Lane.NEW, clock: Clock = db_clock) -> int:
    """Execute up to ``limit`` due commands, one call at a time; returns how many were claimed.

    Losing a lease, a race or the database is a normal end of one command: the others go on.
    """
    name = worker_name()
    by = worker_actor(name)
    claims = claim_commands(limit=limit, lane=lane, worker=name, by=by, clock=clock)
    for claim in claims:
        crashpoint("CP3")
        try:
            execute(claim, by=by, clock=clock)
        except (OperationalError, InterfaceError):
            # The database went away, perhaps in a commit: what was stored decides, and recovery reads it.
            log.exception("command_left_to_recovery", command_id=str(claim.command_id))
            connection.close()
    return len(claims)


def execute(claim: Claim, *, by: Actor, clock: Clock) -> None:
    """Look, commit *sent*, call without any lock, store."""
    command = Command.objects.select_related("proposal", "run").get(pk=claim.command_id)
    looked = look(claim, command)
    operation = registry.operation(command.operation, command.operation_version)
    # The call's deadline begins before *sent* commits: a worker that sleeps in between wakes up too late to call.
    deadline = Deadline.after(operation.call_deadline.total_seconds())
    if not commit_sent(claim, looked, by=by, clock=clock):
        return
    crashpoint("CP5")
    seen = _call(command, deadline)
    crashpoint("CP8")
    store_answer(claim, seen, by=by, clock=clock)
    crashpoint("CP10")


def _call(command: Command, deadline: Deadline) -> Observation:
    """The one request. An error of the operation's own code after *sent* is an outcome that nobody knows."""
    operation = registry.operation(command.operation, command.operation_version)
    try:
        return operation.execute(make_call(command, deadline))
    except Exception as error:
        log.exception("operation_broke", command_id=str(command.pk), operation=command.operation)
        return Observation(sent=True, detail=type(error).__name__)
