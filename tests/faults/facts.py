"""What the oracle judges: the provider's journal and our tables, read once after everything has come to rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from tests.examples.refunds.conftest import RunningProvider
from tests.faults.people import Action

Row = Mapping[str, Any]


@dataclass
class Facts:
    """Rows of one tenant as plain mappings, oldest first."""

    actions: Sequence[Action]
    arrivals: Sequence[Row] = ()
    commands: Sequence[Row] = ()
    proposals: Sequence[Row] = ()
    attempts: Sequence[Row] = ()
    lookups: Sequence[Row] = ()
    decisions: Sequence[Row] = ()
    packets: Sequence[Row] = ()
    runs: Sequence[Row] = ()
    steps: Sequence[Row] = ()
    events: Sequence[Row] = ()
    """Each with ``committed_at`` where the server remembers it; else that is the time of the insert."""
    policies: Sequence[Row] = ()
    attestations: Sequence[Row] = ()
    elsewhere: Sequence[Row] = ()
    """What arrived in the name of other tenants."""
    kind: str = "dedup"
    call_deadline: timedelta = timedelta(seconds=1)
    settle_time: timedelta = timedelta(seconds=2)
    key_retention: timedelta | None = None
    chains_hold: bool = True
    chains_say: str = ""
    times: Mapping[str, datetime] = field(default_factory=dict)
    """Instants that the harness noted by the database's clock, such as when a policy was published."""


_ROWS = {
    "commands": """SELECT *, xmin::text::bigint AS row_xid FROM workflows_command WHERE tenant_id = %(tenant)s
        ORDER BY created_at, id""",
    "proposals": """SELECT id, run_id, step, status, operation, digest, view_digest, contract, needed, excluded_users,
        decide_by, execute_by, decided_at, business_key, idempotency_key, state_version, policy, supersedes_id,
        xmin::text::bigint AS row_xid
        FROM approvals_proposal WHERE tenant_id = %(tenant)s ORDER BY created_at, id""",
    "attempts": "SELECT * FROM workflows_attempt WHERE tenant_id = %(tenant)s ORDER BY command_id, number",
    "attestations": """SELECT a.*, coalesce(m.person_id, m.user_id) AS person FROM workflows_attestation a
        LEFT JOIN access_membership m ON m.user_id = a.user_id AND m.tenant_id = a.tenant_id
        WHERE a.tenant_id = %(tenant)s ORDER BY a.at, a.id""",
    "lookups": "SELECT * FROM workflows_lookup WHERE tenant_id = %(tenant)s ORDER BY asked_at, id",
    "decisions": """SELECT d.*, coalesce(m.person_id, m.user_id) AS person FROM approvals_decision d
        LEFT JOIN access_membership m ON m.user_id = d.user_id AND m.tenant_id = d.tenant_id
        WHERE d.tenant_id = %(tenant)s ORDER BY d.at, d.id""",
    "packets": "SELECT * FROM repair_repairpacket WHERE tenant_id = %(tenant)s ORDER BY id",
    "runs": "SELECT *, xmin::text::bigint AS row_xid FROM workflows_run WHERE tenant_id = %(tenant)s ORDER BY id",
    "steps": "SELECT *, xmin::text::bigint AS row_xid FROM workflows_step WHERE tenant_id = %(tenant)s ORDER BY id",
}
_EVENTS = """
    SELECT e.*, coalesce({committed}, e.at) AS committed_at
    FROM audit_event e WHERE e.tenant_id = %(tenant)s ORDER BY e.at, e.id
"""
_COMMITTED = "pg_xact_commit_timestamp((e.xid %% 4294967296)::text::xid)"


def gather(
    url: str, tenant: UUID, slug: str, provider: RunningProvider, actions: Sequence[Action], **more: Any
) -> Facts:
    """Read everything in one snapshot."""
    with psycopg.connect(url, row_factory=dict_row) as database:
        database.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        values = {"tenant": tenant}
        rows = {name: database.execute(sql, values).fetchall() for name, sql in _ROWS.items()}
        remembers = database.execute("SHOW track_commit_timestamp").fetchone()
        committed = _COMMITTED if remembers and remembers["track_commit_timestamp"] == "on" else "NULL"
        events = database.execute(_EVENTS.format(committed=committed), values).fetchall()  # type: ignore[arg-type]
    arrivals, elsewhere = _both(provider, slug)
    return Facts(actions=actions, arrivals=arrivals, elsewhere=elsewhere, events=events, **rows, **more)


def journal(provider: RunningProvider, slug: str) -> list[Row]:
    """Every refund request of the tenant that arrived, with its times as datetimes."""
    return _both(provider, slug)[0]


def _both(provider: RunningProvider, slug: str) -> tuple[list[Row], list[Row]]:
    """What arrived in the tenant's name, and in any other."""
    rows: list[Row] = []
    after = 0
    while after is not None:
        page = provider.call("GET", f"/_admin/journal?after={after}").json
        rows += [
            row | {name: _instant(row[name]) for name in ("first_byte_at", "effect_at")}
            for row in page["arrivals"]
            if row["path"] == "/refunds"
        ]
        after = page["next_after"]
    rows.sort(key=lambda row: row["first_byte_at"])
    return [row for row in rows if row["tenant"] == slug], [row for row in rows if row["tenant"] != slug]


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
