"""Claim due commands: SKIP LOCKED over a partial index, an attempt, a lease and a fencing token each. Nothing else.

``ready`` and ``claimed`` give the run the same status, so a claim touches no run.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, InterfaceError, OperationalError, connection

from audit.actions import Entry, record_many
from audit.actors import Actor
from common import prepared
from common.clock import Clock
from common.content_keys import known_names, locked
from common.db import is_deadlock, lock_name, violates
from common.fsm import sources_of
from common.ids import new_id
from common.pipelined import PLANNED_ONCE, Question, ask_then_time, pipeline
from common.tx import action, flush
from workflows import registry
from workflows.enums import CommandStatus, Lane
from workflows.models import Command
from workflows.operations import Operation
from workflows.scope import MATCHES

LEASE = timedelta(seconds=settings.PLACET_CLAIM_LEASE_S)
"""From claim to *sent*; the call has a lease of its own, twice its deadline."""
TRIES = 3


@dataclass(frozen=True, slots=True)
class Claim:
    """One command that this worker holds while ``token`` is the row's."""

    command_id: UUID
    tenant_id: UUID
    proposal_id: UUID
    run_id: UUID
    token: UUID
    first_try: bool
    operation: Operation[Any]
    on_behalf_of: str = ""
    """For whom the run is, which never changes; read along by those who claim many."""


_COLUMNS = (
    "id", "tenant_id", "proposal_id", "run_id", "provider", "target", "status", "tries", "claims", "operation",
    "operation_version", "due_at", "on_behalf_of",
)  # fmt: skip
# `sources_of` is the declaration's own list, so this statement cannot allow a move that the state machine does not.
# What is held is passed over already here; whether it may be sent is decided under the scope lock. The limit stands in
# the text: a plan that does not know how few are wanted reads all that are ready.
_CLAIMABLE = f"""
    SELECT due.* FROM unnest(%(names)s::text[], %(versions)s::int[]) AS known(operation, version)
    CROSS JOIN LATERAL (
        SELECT {", ".join(f"c.{name}" for name in _COLUMNS[:-1])},
            (SELECT r.on_behalf_of FROM workflows_run r WHERE r.id = c.run_id)
        FROM workflows_command c
        WHERE c.status = ANY(%(sources)s) AND c.status IN ('ready', 'retry_wait')
          AND c.lane = %(lane)s AND c.operation = known.operation AND c.operation_version = known.version
          AND c.due_at <= clock_timestamp() AND c.provider <> ALL(%(full)s)
          AND NOT EXISTS (
            SELECT FROM workflows_command o WHERE o.tenant_id = c.tenant_id AND o.provider = c.provider
              AND o.target = c.target AND o.status IN ('claimed', 'sent', 'unknown') AND NOT o.restored)
          AND NOT EXISTS (
            SELECT FROM workflows_command o WHERE o.tenant_id = c.tenant_id AND o.provider = c.provider
              AND o.target = c.target AND o.restored)
          AND NOT EXISTS (SELECT FROM workflows_hold h WHERE {MATCHES})
          AND NOT {locked("c")}
        ORDER BY c.due_at, c.id LIMIT {{limit}}
        FOR NO KEY UPDATE OF c SKIP LOCKED) due
    ORDER BY due.due_at, due.id LIMIT {{limit}}
"""  # noqa: S608 - our own text
_TAKE = """
    UPDATE workflows_command c SET status = 'claimed', claims = c.claims + 1, lease_token = t.token,
        lease_until = %(until)s, due_at = NULL, state_version = c.state_version + 1
    FROM unnest(%(ids)s::uuid[], %(tokens)s::uuid[]) AS t(id, token) WHERE c.id = t.id
"""


_ATTEMPTS = """
    INSERT INTO workflows_attempt
        (worker, claimed_at, status, outcome, detail, id, tenant_id, command_id, token, number)
    SELECT %s, %s, 'claimed', '', '', * FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::uuid[], %s::int[])
"""


IN_ORDER: Final[Question[None]] = Question(
    PLANNED_ONCE.sql + ", set_config('enable_sort', 'off', true)", [], lambda rows: None
)
"""For the rest of the transaction: the look goes along the index, in the order in which rows are due, and ends when it
has its few. Up to some thousands of ready rows the planner would rather look at all of them, each with its target, and
sort them: twenty times the work.
"""


@cache
def _sources() -> list[str]:
    return sources_of(Command, CommandStatus.CLAIMED)


def claim_commands(*, limit: int, lane: Lane, worker: str, by: Actor, clock: Clock) -> list[Claim]:
    """Up to ``limit`` due commands of versions that this code knows; of one target at most one is in flight."""
    for _ in range(TRIES):
        made: list[Claim] = []
        try:
            return _claim(made, limit=limit, lane=lane, worker=worker, by=by, clock=clock)
        except (IntegrityError, InterfaceError, OperationalError) as error:
            # Another worker took a command of the same target between our look and our update, or each took one that
            # the other wanted. Nothing is lost: this look is undone, and the next one passes over what is taken.
            if violates(error, "workflows_command_one_in_flight_per_target") or is_deadlock(error):
                continue
            if not made:
                raise
            return _still_ours(made)
    return []


def _still_ours(made: list[Claim]) -> list[Claim]:
    """The connection was lost around the commit, which is neither a yes nor a no: the rows say whose they are, by the
    tokens that only this call knows (field report P2).
    """
    connection.close()
    ours = Command.objects.filter(
        lease_token__in=[claim.token for claim in made], status=CommandStatus.CLAIMED
    )
    tokens = set(ours.values_list("lease_token", flat=True))
    return [claim for claim in made if claim.token in tokens]


@action
def _claim(made: list[Claim], *, limit: int, lane: Lane, worker: str, by: Actor, clock: Clock) -> list[Claim]:
    free = _free_calls()
    full = [provider for provider, calls in free.items() if calls <= 0]
    (_, found), now = ask_then_time(clock, IN_ORDER, _claimable(limit, lane, full))
    rows = _within_limits(_one_per_target(found), free)
    if not rows:
        return []
    claims = [_claim_of(row) for row in rows]
    made += claims
    with ExitStack() as stack:
        taking, trying = stack.enter_context(prepared.cursor()), stack.enter_context(prepared.cursor())
        with pipeline():
            taking.execute(_TAKE, {
                "ids": [claim.command_id for claim in claims], "tokens": [claim.token for claim in claims],
                "until": now + LEASE,
            })  # fmt: skip
            trying.execute(_ATTEMPTS, _attempts(rows, claims, worker, now))
            record_many([_event(row, by) for row in rows])
            flush()
        assert taking.rowcount == len(claims), "a claim that matched no row"
    return claims


def _claim_of(row: dict[str, Any]) -> Claim:
    return Claim(
        command_id=row["id"], tenant_id=row["tenant_id"], proposal_id=row["proposal_id"], run_id=row["run_id"],
        token=new_id(), first_try=row["tries"] == 0,
        operation=registry.operation(row["operation"], row["operation_version"]), on_behalf_of=row["on_behalf_of"],
    )  # fmt: skip


def _claimable(limit: int, lane: Lane, full: list[str]) -> Question[list[dict[str, Any]]]:
    known = registry.known_operations()
    parameters = {
        "sources": _sources(), "lane": str(lane), "full": full, "keys": known_names(),
        "names": [name for name, _ in known], "versions": [version for _, version in known],
    }  # fmt: skip
    return Question(
        _CLAIMABLE.format(limit=int(limit)), parameters,
        lambda rows: [dict(zip(_COLUMNS, row, strict=True)) for row in rows],
    )  # fmt: skip


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


def _attempts(rows: list[dict[str, Any]], claims: list[Claim], worker: str, now: datetime) -> list[Any]:
    return [
        worker, now, [new_id() for _ in claims], [claim.tenant_id for claim in claims],
        [claim.command_id for claim in claims], [claim.token for claim in claims], [row["claims"] + 1 for row in rows],
    ]  # fmt: skip


def _event(row: dict[str, Any], by: Actor) -> Entry:
    return Entry(
        by=by, kind="command.claimed", tenant_id=row["tenant_id"], subject_type="command", subject_id=row["id"],
        run_id=row["run_id"], from_state=row["status"], to_state=CommandStatus.CLAIMED,
    )  # fmt: skip
