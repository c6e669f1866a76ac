"""What is read about the whole installation, for `/readyz`, `/metrics` and `manage.py doctor`.

Every statement reads what is open, or the newest end of what has ended, by an index: none takes longer with the years.
No tenant, person or text is among the results.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connections, transaction

from approvals.enums import ProposalStatus
from common import content_keys
from common.dbroles import SYSTEM
from config.context import STANDSTILL
from repair.enums import PacketStatus
from workflows.enums import CommandStatus, HoldStatus, RunStatus

ALIAS: Final = SYSTEM
"""The connection that reads across all tenants."""
LONGEST_S: Final = 2
"""No single statement of these may take longer: whoever watches must not be what slows everything down."""
STALE_S: Final = 60.0
"""A process that has shown no sign for longer counts as gone; signs come every 5 s, a round of work may take 20."""
KINDS: Final = ("worker", "sweep", "beat")
"""Processes that show signs of life. *backup* is one too, but no process."""
COUNTED: Final = 10_000
"""Unsealed events are counted up to this number."""
DECISIONS_WITHIN: Final = timedelta(hours=1)


@contextmanager
def reading() -> Iterator[None]:
    """A short transaction that only reads."""
    with transaction.atomic(using=ALIAS):
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = '{LONGEST_S}s'")
        yield


def rows(statement: str, values: Sequence[Any] | Mapping[str, Any] = (), alias: str = ALIAS) -> list[Any]:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


# -- what is open ---------------------------------------------------------------------------------------------------

# What has ended is left out: it only grows; and so are replays, which are no cases of their own. Runs are read tenant
# by tenant, as their index begins with the tenant.
_AGE: Final = "EXTRACT(EPOCH FROM clock_timestamp() - min({}))::float8"
_RUNS: Final = f"""
    SELECT r.status, sum(r.number)::bigint, max(r.age) FROM common_tenant t CROSS JOIN LATERAL (
        SELECT status, count(*) AS number, {_AGE.format("created_at")} AS age FROM workflows_run
        WHERE tenant_id = t.id AND status = ANY(%s) AND kind <> 'replay' GROUP BY status) r
    GROUP BY r.status
"""  # noqa: S608
_PROPOSALS: Final = f"""
    SELECT status, count(*), {_AGE.format("created_at")} FROM approvals_proposal
    WHERE status = 'pending' GROUP BY status
"""  # noqa: S608
_COMMANDS: Final = f"""
    SELECT status, count(*), {_AGE.format("coalesce(last_sent_at, created_at)")} FROM workflows_command
    WHERE status IN ('ready', 'claimed', 'sent', 'retry_wait', 'held', 'unknown') GROUP BY status
"""  # noqa: S608
_PACKETS: Final = f"""
    SELECT status, count(*), {_AGE.format("opened_at")} FROM repair_repairpacket
    WHERE status IN ('open', 'in_progress', 'awaiting_second') GROUP BY status
"""  # noqa: S608

OPEN_RUNS: Final = tuple(status for status in RunStatus.values if status not in RunStatus.final_states)
THINGS: Final[tuple[tuple[str, str, list[Any], tuple[str, ...]], ...]] = (
    ("run", _RUNS, [list(OPEN_RUNS)], OPEN_RUNS),
    ("proposal", _PROPOSALS, [], ProposalStatus.open_states),
    ("command", _COMMANDS, [], CommandStatus.live_states),
    ("packet", _PACKETS, [], PacketStatus.open_states),
)
"""What waits, the statement that counts it, its values, and the states that are counted."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """So many things are in this state, the oldest for ``age`` seconds since it was made or last sent."""

    what: str
    status: str
    count: int
    age: float


def waiting() -> list[Waiting]:
    """Each thing and open state, those without any included."""
    found = []
    for what, statement, values, states in THINGS:
        known = {status: (count, age) for status, count, age in rows(statement, values)}
        found += [Waiting(what, state, *known.get(state, (0, 0.0))) for state in states]
    return found


_DUE: Final = f"""
    SELECT 'command', lane, count(*), {_AGE.format("due_at")} FROM workflows_command
    WHERE status IN ('ready', 'retry_wait') AND due_at <= clock_timestamp() GROUP BY lane
    UNION ALL
    SELECT 'step', lane, count(*), {_AGE.format("due_at")} FROM workflows_step
    WHERE due_at IS NOT NULL AND due_at <= clock_timestamp() GROUP BY lane
"""  # noqa: S608


def due() -> list[tuple[str, str, int, float]]:
    """(command or step, lane, how many are due, for how long the oldest is)."""
    return rows(_DUE)


# Of one version of an operation: due for a while, and none of them is being executed. Then no running worker has it, or
# none runs at all.
_WITHOUT_WORKER: Final = """
    SELECT operation, operation_version, count(*) FROM workflows_command c
    WHERE status IN ('ready', 'retry_wait') AND due_at <= clock_timestamp()
    GROUP BY operation, operation_version
    HAVING min(due_at) < clock_timestamp() - make_interval(secs => %s) AND NOT EXISTS (
        SELECT FROM workflows_command o WHERE o.status IN ('claimed', 'sent')
          AND o.operation = c.operation AND o.operation_version = c.operation_version)
    ORDER BY operation, operation_version
"""


def without_worker() -> list[tuple[str, int, int]]:
    """(operation, version, how many actions are due) where nothing of that version has moved for a minute."""
    return rows(_WITHOUT_WORKER, [STANDSTILL.total_seconds()])


def waiting_operations() -> list[tuple[str, int, int]]:
    """(operation, version, how many actions) of all that wait for a worker, due or not."""
    return rows(
        "SELECT operation, operation_version, count(*) FROM workflows_command"
        " WHERE status IN ('ready', 'retry_wait') GROUP BY 1, 2 ORDER BY 1, 2"
    )


_HOLDS: Final = "SELECT reason, status, count(*) FROM workflows_hold WHERE status <> 'lifted' GROUP BY 1, 2"


_TELLING: Final = """
    SELECT
        GREATEST(
            (SELECT EXTRACT(EPOCH FROM clock_timestamp() - min(due_at)) FROM notify_dispatch WHERE status = 'pending'),
            (SELECT EXTRACT(EPOCH FROM clock_timestamp() - min(due_at)) FROM notify_message WHERE due_at IS NOT NULL),
            0)::float8,
        (SELECT count(*) FROM notify_dispatch
         WHERE status = 'dead' AND ended_at > clock_timestamp() - interval '7 days')
"""


@dataclass(frozen=True, slots=True)
class Telling:
    """For how many seconds the oldest message has been due, and how many were given up in the last week."""

    late: float
    dead: int


def telling() -> Telling:
    [row] = rows(_TELLING)
    return Telling(*row)


def holds() -> list[tuple[str, str, int]]:
    """(freeze or circuit, status, how many) of all that are not lifted, those without any included."""
    known = {(reason, status): count for reason, status, count in rows(_HOLDS)}
    states = [status for status in HoldStatus.values if status != HoldStatus.LIFTED]
    return [
        (reason, status, known.get((reason, status), 0))
        for reason in ("freeze", "circuit")
        for status in states
    ]


_CAUSES: Final = """
    SELECT cause, count(*), count(*) FILTER (WHERE waiting_until < clock_timestamp()) FROM repair_repairpacket
    WHERE status IN ('open', 'in_progress', 'awaiting_second') GROUP BY cause
"""


def packet_causes() -> list[tuple[str, int, int]]:
    """(cause, open packets, those whose time is over)."""
    return rows(_CAUSES)


# -- what people decide ---------------------------------------------------------------------------------------------

# Ids are made from the time, so the newest decisions are the end of the primary key.
_DECISIONS: Final = """
    SELECT d.kind, d.via, count(*), percentile_cont(ARRAY[0.5, 0.9]) WITHIN GROUP (
        ORDER BY EXTRACT(EPOCH FROM d.at - p.created_at)::float8)
    FROM approvals_decision d JOIN approvals_proposal p ON p.id = d.proposal_id
    WHERE d.id >= %s AND d.at >= %s GROUP BY d.kind, d.via
"""


def decisions() -> list[tuple[str, str, int, list[float]]]:
    """(kind, session or rule, how many in the last hour, [median, 90th percentile] of the seconds they waited)."""
    [(now,)] = rows("SELECT clock_timestamp()")
    since = now - DECISIONS_WITHIN
    return rows(_DECISIONS, [_first_id(since - timedelta(minutes=10)), since])


def _first_id(at: Any) -> UUID:
    """The lowest UUIDv7 of this instant; those who make ids may have clocks that differ a little."""
    return UUID(int=int(at.timestamp() * 1000) << 80)


# -- the history ----------------------------------------------------------------------------------------------------

# Not NOT EXISTS: how few events lie behind the mark is not known when the statement is planned, and all seals would be
# read for them.
_UNSEALED: Final = """
    SELECT count(*), coalesce(EXTRACT(EPOCH FROM clock_timestamp() - min(at)), 0)::float8 FROM (
        SELECT e.at FROM audit_event e
        WHERE e.xid >= coalesce((SELECT w.sealed_below FROM audit_watermark w
                                 WHERE w.cluster = (SELECT system_identifier FROM pg_control_system())), 0)
          AND (SELECT s.event_id FROM audit_seal s WHERE s.event_id = e.id) IS NULL
        ORDER BY e.xid LIMIT %s) unsealed
"""


def unsealed() -> tuple[int, float]:
    """(how many events wait for their seal, up to `COUNTED`; for how many seconds the oldest)."""
    [(count, age)] = rows(_UNSEALED, [COUNTED])
    return count, age


_CHECKS: Final = """
    SELECT coalesce(c.kind, ''), count(*), coalesce(max(EXTRACT(EPOCH FROM clock_timestamp() - c.at)), 0)::float8
    FROM audit_head h LEFT JOIN LATERAL (
        SELECT kind, at FROM audit_event WHERE tenant_id = h.tenant_id AND subject_id = h.tenant_id
          AND kind IN ('chain.verified', 'chain.broken') ORDER BY at DESC LIMIT 1) c ON true
    GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class Checked:
    """Chains by what their last check found, and the age in seconds of the oldest of these checks."""

    holds: int
    broken: int
    never: int
    age: float


def checked() -> Checked:
    known = {kind: (count, age) for kind, count, age in rows(_CHECKS)}
    none = (0, 0.0)
    (holding, since), (broken, other) = known.get("chain.verified", none), known.get("chain.broken", none)
    return Checked(holding, broken, known.get("", none)[0], max(since, other))


_SIGNED: Final = """
    SELECT count(*) FILTER (WHERE refused), count(*) FILTER (WHERE size > 0),
        coalesce(max(EXTRACT(EPOCH FROM clock_timestamp() - waiting)) FILTER (WHERE NOT refused), 0)::float8
    FROM (SELECT coalesce(r.kind = 'refused', false) AS refused, c.size AS size,
            (SELECT s.sealed_at FROM audit_seal s WHERE s.tenant_id = h.tenant_id AND s.seq = coalesce(c.size, 0) + 1)
            AS waiting
        FROM audit_head h
        LEFT JOIN LATERAL (SELECT size FROM audit_checkpoint WHERE tenant_id = h.tenant_id
            ORDER BY recorded_at DESC LIMIT 1) c ON true
        LEFT JOIN LATERAL (SELECT kind FROM audit_signer_report WHERE tenant_id = h.tenant_id
            ORDER BY recorded_at DESC LIMIT 1) r ON true) each
"""


@dataclass(frozen=True, slots=True)
class Signed:
    """Histories that the signer refuses, those with a checkpoint, and the seconds that the oldest seal of the others
    has waited to be signed."""

    refused: int
    signed: int
    waiting: float


def signed() -> Signed:
    [(refused, some, waiting)] = rows(_SIGNED)
    return Signed(refused, some, waiting)


# -- processes and connections --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sign:
    """A process's last sign of life: ``age`` in seconds."""

    kind: str
    name: str
    age: float
    knows: tuple[str, ...]
    keys: tuple[str, ...] = ()
    """Names of the wrapping keys of contents that it has."""

    @property
    def alive(self) -> bool:
        return self.age <= STALE_S


_SIGNS: Final = """
    SELECT kind, name, EXTRACT(EPOCH FROM clock_timestamp() - seen_at)::float8, knows::text, keys::text
    FROM common_heartbeat
    ORDER BY kind, seen_at DESC
"""


def signs() -> list[Sign]:
    """By kind, the newest first. Those of processes that are gone stay for a day."""
    return [
        Sign(kind, name, max(0.0, age), tuple(json.loads(knows)), tuple(json.loads(keys)))
        for kind, name, age, knows, keys in rows(_SIGNS)
    ]


# From one name to the next one by the index, however many runs lie under each.
_WRAPPED_WITH: Final = """
    WITH RECURSIVE names AS (
        SELECT min(wrapped_with) AS name FROM common_contentkey WHERE wrapped IS NOT NULL
        UNION ALL
        SELECT (SELECT min(k.wrapped_with) FROM common_contentkey k
                WHERE k.wrapped IS NOT NULL AND k.wrapped_with > names.name)
        FROM names WHERE names.name IS NOT NULL)
    SELECT name FROM names WHERE name IS NOT NULL
"""


def wrapped_with() -> list[str]:
    """The names of all wrapping keys that the contents of some run lie under."""
    return [name for (name,) in rows(_WRAPPED_WITH)]


def lack_keys(found: Sequence[Sign], needed: Sequence[str]) -> list[tuple[str, list[str]]]:
    """(process, names of the keys that it has not) of those that live and read contents; this one is *here*."""
    working = [(f"{s.kind} {s.name}", s.keys) for s in found if s.alive and s.kind in ("worker", "sweep")]
    processes = [("here", tuple(content_keys.names_or_none())), *working]
    lacking = [(name, [key for key in needed if key not in keys]) for name, keys in processes]
    return [(name, missing) for name, missing in lacking if missing]


_CONNECTIONS: Final = """
    SELECT coalesce(state, 'other'), count(*) FROM pg_stat_activity WHERE datname = current_database() GROUP BY 1
"""


def database_connections() -> tuple[dict[str, int], int]:
    """(connections to our database by state, how many the server takes in all). Other roles' states are *other*."""
    [(most,)] = rows("SELECT current_setting('max_connections')::int")
    return dict(rows(_CONNECTIONS)), most
