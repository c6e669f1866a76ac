"""Claim due commands: SKIP LOCKED over a partial index, an attempt, a lease and a fencing token each. Nothing else.

``ready`` and ``claimed`` give the run the same status, so a claim touches no run.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, OperationalError, connection

from audit.actions import Entry, record_many
from audit.actors import Actor
from common.clock import Clock
from common.db import is_deadlock, lock_name, violates
from common.fsm import sources_of
from common.ids import new_id
from common.tx import action
from workflows import registry
from workflows.enums import CommandStatus, Lane
from workflows.models import Attempt, Command
from workflows.operations import Operation

LEASE = timedelta(seconds=20)
"""From claim to *sent*; the call has a lease of its own, twice its deadline."""
TRIES = 3


@dataclass(frozen=True, slots=True)
class Claim:
    """One command that this worker holds while ``token`` is the row's."""

    command_id: UUID
    tenant_id: UUID
    proposal_id: UUID
    token: UUID
    first_try: bool
    operation: Operation[Any]


# `sources_of` is the declaration's own list, so this statement cannot allow a move that the state machine does not.
_CLAIMABLE = """
    SELECT c.id, c.tenant_id, c.proposal_id, c.run_id, c.provider, c.target, c.status, c.tries, c.claims,
        c.operation, c.operation_version
    FROM workflows_command c
    WHERE c.status = ANY(%(sources)s) AND c.status IN ('ready', 'retry_wait')
      AND c.lane = %(lane)s AND c.due_at <= clock_timestamp()
      AND (c.operation, c.operation_version) IN (SELECT * FROM unnest(%(names)s::text[], %(versions)s::int[]))
      AND c.provider <> ALL(%(full)s)
      AND NOT EXISTS (
        SELECT FROM workflows_command o WHERE o.tenant_id = c.tenant_id AND o.provider = c.provider
          AND o.target = c.target AND o.status IN ('claimed', 'sent', 'unknown'))
    ORDER BY c.due_at, c.id LIMIT %(limit)s
    FOR NO KEY UPDATE OF c SKIP LOCKED
"""
_TAKE = """
    UPDATE workflows_command c SET status = 'claimed', claims = c.claims + 1, lease_token = t.token,
        lease_until = %(until)s, due_at = NULL, state_version = c.state_version + 1
    FROM unnest(%(ids)s::uuid[], %(tokens)s::uuid[]) AS t(id, token) WHERE c.id = t.id
"""


def claim_commands(*, limit: int, lane: Lane, worker: str, by: Actor, clock: Clock) -> list[Claim]:
    """Up to ``limit`` due commands of versions that this code knows; of one target at most one is in flight."""
    for _ in range(TRIES):
        try:
            return _claim(limit=limit, lane=lane, worker=worker, by=by, clock=clock)
        except (IntegrityError, OperationalError) as error:
            # Another worker took a command of the same target between our look and our update, or each took one that
            # the other wanted. Nothing is lost: this look is undone, and the next one passes over what is taken.
            if not (violates(error, "workflows_command_one_in_flight_per_target") or is_deadlock(error)):
                raise
    return []


@action
def _claim(*, limit: int, lane: Lane, worker: str, by: Actor, clock: Clock) -> list[Claim]:
    free = _free_calls()
    full = [provider for provider, calls in free.items() if calls <= 0]
    rows = _within_limits(_one_per_target(_claimable(limit, lane, full)), free)
    if not rows:
        return []
    now = clock()
    claims = [_claim_of(row) for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, {
            "ids": [claim.command_id for claim in claims], "tokens": [claim.token for claim in claims],
            "until": now + LEASE,
        })  # fmt: skip
    _write_attempts(rows, claims, worker, now)
    record_many([_event(row, by) for row in rows])
    return claims


def _claim_of(row: dict[str, Any]) -> Claim:
    return Claim(
        command_id=row["id"], tenant_id=row["tenant_id"], proposal_id=row["proposal_id"], token=new_id(),
        first_try=row["tries"] == 0, operation=registry.operation(row["operation"], row["operation_version"]),
    )  # fmt: skip


def _claimable(limit: int, lane: Lane, full: list[str]) -> list[dict[str, Any]]:
    known = registry.known_operations()
    with connection.cursor() as cursor:
        cursor.execute(_CLAIMABLE, {
            "sources": sources_of(Command, CommandStatus.CLAIMED), "lane": lane, "limit": limit, "full": full,
            "names": [name for name, _ in known], "versions": [version for _, version in known],
        })  # fmt: skip
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def _one_per_target(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The oldest of each target; the others wait their turn."""
    first = {(row["tenant_id"], row["provider"], row["target"]): row for row in reversed(rows)}
    return [row for row in rows if first[(row["tenant_id"], row["provider"], row["target"])] is row]


def _free_calls() -> dict[str, int]:
    """Of each provider that limits its calls: how many more may be under way. Counted under a lock of its name.

    A full provider is left out of the look altogether: its queue must not stand before everybody else's.
    """
    free = {}
    for provider in registry.limited_providers():
        lock_name(f"provider/{provider}")
        busy = Command.objects.filter(
            provider=provider, status__in=(CommandStatus.CLAIMED, CommandStatus.SENT)
        )
        free[provider] = (registry.most_in_flight(provider) or 0) - busy.count()
    return free


def _within_limits(rows: list[dict[str, Any]], free: dict[str, int]) -> list[dict[str, Any]]:
    kept = []
    for row in rows:
        provider = row["provider"]
        if provider in free:
            free[provider] -= 1
        if free.get(provider, 0) >= 0:
            kept.append(row)
    return kept


def _write_attempts(rows: list[dict[str, Any]], claims: list[Claim], worker: str, now: datetime) -> None:
    Attempt.objects.bulk_create(
        Attempt(
            tenant_id=claim.tenant_id, command_id=claim.command_id, number=row["claims"] + 1, worker=worker,
            token=claim.token, claimed_at=now,
        )
        for row, claim in zip(rows, claims, strict=True)
    )  # fmt: skip


def _event(row: dict[str, Any], by: Actor) -> Entry:
    return Entry(
        by=by, kind="command.claimed", tenant_id=row["tenant_id"], subject_type="command", subject_id=row["id"],
        run_id=row["run_id"], from_state=row["status"], to_state=CommandStatus.CLAIMED,
    )  # fmt: skip
