"""What leaves the machine, several at a time: each thread reads or calls once, and does nothing else.

A thread has no part in any transaction. If an operation's own code reads the database there, it does so on a connection
of that thread, which is closed behind it.
"""

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections

from common.sealed import prefetch_keys
from workflows.models import Command
from workflows.operations import Operation
from workflows.tenants import slug_of
from workflows.worker.batch.send import Sent
from workflows.worker.batch.store import Answer
from workflows.worker.calling import observe
from workflows.worker.claim import Claim
from workflows.worker.send import Looked, look

log = structlog.get_logger(__name__)
R = TypeVar("R")

GATHER_S = (0.004, 0.02)
"""How long an answer waits for others, so that they are stored together: half of the time that it took itself, but
within these limits. The lower one is less than what storing it alone takes.
"""


def most_at_once() -> int:
    """How many calls are under way at once in one worker; 1: they are made and stored one by one."""
    return int(settings.PLACET_CALLS_AT_ONCE)


def look_together(claims: Sequence[Claim]) -> dict[UUID, Looked | None]:
    """What `look` reads for each claim, by command; None where the operation has nothing to read.

    A claim whose operation broke is left out: recovery sees to it.
    """
    reading = {claim.command_id: claim for claim in claims if _reads(claim)}
    found: dict[UUID, Looked | None] = {
        claim.command_id: None for claim in claims if claim.command_id not in reading
    }
    if reading:
        commands = Command.objects.select_related("proposal", "run").in_bulk(list(reading))
        prefetch_keys([command.proposal for command in commands.values()])
        for command in commands.values():
            slug_of(command.tenant_id)  # here, because the first time it is read from the database
        for looks in _at_once([partial(_look, reading[key], command) for key, command in commands.items()]):
            found |= {key: looked for key, looked in looks if looked is not None}
    return found


def _reads(claim: Claim) -> bool:
    """Whether the operation's own code reads anything before the send."""
    own, base = type(claim.operation), Operation
    has_effects = claim.first_try and own.earlier_effects is not base.earlier_effects
    return has_effects or own.pins is not base.pins


def _look(claim: Claim, command: Command) -> tuple[UUID, Looked | None]:
    try:
        return claim.command_id, look(claim, command)
    except Exception:
        log.exception("command_left_to_recovery", command_id=str(claim.command_id))
        return claim.command_id, None


def call_together(sent: Sequence[Sent]) -> Iterator[list[Answer]]:
    """Make every call now; yields the answers as they come, a few at a time. None waits for a slower one."""
    return _at_once([partial(_call, one) for one in sent])


def _call(sent: Sent) -> Answer:
    claim, call = sent.claim, sent.call
    return Answer(claim, observe(claim.operation, lambda: call, call.deadline), sent.lease)


# -- threads ------------------------------------------------------------------------------------------------------


class _Threads(threading.local):
    """One pool for each thread that works, so that its calls never wait behind another's."""

    pool: ThreadPoolExecutor | None = None

    def start(self, do: Callable[[], object]) -> None:
        self.pool = self.pool or ThreadPoolExecutor(most_at_once(), thread_name_prefix="call")
        self.pool.submit(_alone, do)

    def forget_parent(self) -> None:
        """After a fork: the threads stayed with the parent."""
        self.pool = None


_threads = _Threads()
os.register_at_fork(after_in_child=_threads.forget_parent)


def _alone(do: Callable[[], object]) -> None:
    try:
        do()
    finally:
        connections.close_all()  # of this thread: nobody else's


def _at_once(jobs: Sequence[Callable[[], R]]) -> Iterator[list[R]]:
    """Start all of them, then yield their results as they come. They must not raise."""
    if len(jobs) == 1:
        yield [jobs[0]()]
        return
    assert len(jobs) <= most_at_once(), "the last ones would wait"
    done: queue.SimpleQueue[R] = queue.SimpleQueue()
    for job in jobs:
        _threads.start(lambda job=job: done.put(job()))  # type: ignore[misc]
    began, left = time.monotonic(), len(jobs)
    while left:
        come = _next_few(done, left, began)
        left -= len(come)
        yield come


def _next_few(done: "queue.SimpleQueue[R]", most: int, began: float) -> list[R]:
    """The next result, and those that come shortly after it."""
    come = [done.get()]
    now = time.monotonic()
    until = now + min(max((now - began) / 2, GATHER_S[0]), GATHER_S[1])
    while len(come) < most:
        try:
            come.append(done.get(timeout=max(0.0, until - time.monotonic())))
        except queue.Empty:
            break
    return come
