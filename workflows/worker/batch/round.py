"""One batch, from its claims to its last stored answer."""

import time
from collections.abc import Mapping, Sequence
from uuid import UUID

import structlog
from django.db import connection

from audit.actors import Actor
from common.away import is_away
from common.clock import Clock
from common.crashpoints import crashpoint
from workflows.enums import AttemptStatus
from workflows.models import Attempt
from workflows.worker.batch.calls import call_together
from workflows.worker.batch.send import Sent, commit_sent_together
from workflows.worker.batch.store import Answer, store_together
from workflows.worker.claim import Claim
from workflows.worker.send import Looked
from workflows.worker.store import store_answer

log = structlog.get_logger(__name__)

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0


def send_and_store(
    claims: Sequence[Claim], looks: Mapping[UUID, Looked | None], *, by: Actor, clock: Clock
) -> set[UUID]:
    """Send what passes every check, all at once, and store each answer as it comes.

    Returns the ids of the commands that are seen to: the others are as they were, and may go alone.
    """
    try:
        sent = commit_sent_together(claims, looks, by=by, clock=clock)
    except Exception as error:
        if not is_away(error):
            log.exception("batch_not_sent", commands=len(claims))
            return set()  # alone, each shows what is wrong with it
        # Perhaps it was the commit that raised, and all of them are *sent*: nobody knows, and recovery reads it.
        log.exception("commands_left_to_recovery", commands=_names(claims))
        connection.close()
        return {claim.command_id for claim in claims}
    _call_and_store(sent, by=by, clock=clock)
    return {one.claim.command_id for one in sent}


def _call_and_store(sent: Sequence[Sent], *, by: Actor, clock: Clock) -> None:
    if not sent:
        return
    try:
        crashpoint("CP5")
        for answers in call_together(sent):
            _store(answers, by=by, clock=clock)
    except Exception:
        # What was stored decides, and recovery reads it.
        log.exception("commands_left_to_recovery", commands=_names([one.claim for one in sent]))


def _names(claims: Sequence[Claim]) -> list[str]:
    return [str(claim.command_id) for claim in claims]


# -- answers ------------------------------------------------------------------------------------------------------


def _store(answers: Sequence[Answer], *, by: Actor, clock: Clock) -> None:
    stored, again = set[UUID](), False
    crashpoint("CP8")
    try:
        stored = store_together(answers, by=by, clock=clock)
    except Exception as error:
        # Perhaps it was the commit that raised, and all of them are stored.
        log.exception("batch_not_stored", commands=len(answers))
        _drop_connection_if_away(error)
        again = True
    for answer in answers:
        if answer.claim.command_id not in stored:
            store_alone(answer, again, by=by, clock=clock)
    crashpoint("CP10")


def store_alone(answer: Answer, again: bool = False, *, by: Actor, clock: Clock) -> None:
    """Store one answer. While the database is away and the token is ours, it is tried again: an answer that is known
    shall not become unknown because of a restart.
    """
    pause = FIRST_PAUSE_S
    while True:
        try:
            if not (again and _is_stored(answer.claim)):
                store_answer(answer.claim, answer.seen, by=by, clock=clock)
            return
        except Exception as error:
            _drop_connection_if_away(error)
            if not is_away(error) or answer.lease.remaining() <= pause:
                log.exception("command_left_to_recovery", command_id=str(answer.claim.command_id))
                return
        again = True
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)


def _is_stored(claim: Claim) -> bool:
    """Whether the transaction that raised had committed after all."""
    return Attempt.objects.filter(token=claim.token, status=AttemptStatus.ANSWERED).exists()


def _drop_connection_if_away(error: Exception) -> None:
    if is_away(error):
        connection.close()
