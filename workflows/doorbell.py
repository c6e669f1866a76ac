"""Rings for workers when the transaction that made work has committed."""

from django.db import transaction

from common.crashpoints import crashpoint
from common.doorbell import doorbell

WORK = "workflows.tasks.work"


def ring_on_commit() -> None:
    """After commit, not before: a worker that comes early finds nothing. Lost rings are the sweep's to make good."""
    transaction.on_commit(ring, robust=True)


def ring() -> None:
    """At once, for what is committed already. Never waits, never raises."""
    crashpoint("CP1")
    doorbell.ring(WORK)
