"""What is watched costs the same after a million ended things: no statement reads a table that only grows."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from audit.actors import clock_actor
from audit.checks import check_chain
from audit.sealer import seal
from common.clock import db_clock
from config import observed
from tests.factories import make_command, make_decision, make_packet, make_proposal
from tests.workflows.later import as_superuser

pytestmark = pytest.mark.django_db
MANY = 20_000
# The columns of which each copy needs a value of its own, and what makes it something that has ended.
COPIED = {
    "workflows_run": ["id"],
    "workflows_command": ["id", "proposal_id"],
    "approvals_proposal": ["id", "wait_id"],
    "approvals_decision": ["id", "proposal_id"],
    "repair_repairpacket": ["id", "run_id"],
    "workflows_step": ["id", "run_id"],
    "audit_event": ["id", "subject_id"],
}
ENDED = {
    "workflows_run": "status = 'completed', outcome = 'done', finished_at = now(), waiting_until = NULL",
    "workflows_command": "status = 'void', void_reason = 'lapsed', ended_at = now(), due_at = NULL",
    "approvals_proposal": "status = 'expired', ended_at = now()",
    "approvals_decision": "at = at - interval '3 days'",
    "repair_repairpacket": "status = 'resolved', ended_at = now(), resolution = 'done'",
    "workflows_step": "status = 'skipped', finished_at = now(), due_at = NULL, waiting_for = '', wait_id = NULL,"
    " waiting_until = NULL",
    "audit_event": "xid = 3",
}


@pytest.fixture
def full() -> Iterator[None]:
    """A few open things beside many that have ended."""
    command = make_command(status="ready", due_at=db_clock())
    make_packet(command.run)
    make_decision(make_proposal(tenant=command.tenant), None)
    check_chain(command.tenant.pk, by=clock_actor())
    for table, columns in COPIED.items():
        values = ", ".join(f"'{name}', gen_random_uuid()" for name in columns)
        as_superuser(
            f"CREATE TEMP TABLE copies AS SELECT copy.* FROM (SELECT row FROM {table} row LIMIT 1) one(t),"
            f" generate_series(1, {MANY}) n,"
            f" LATERAL jsonb_populate_record(t, jsonb_build_object({values}, 'n', n)) copy"
        )
        if table == "approvals_decision":  # ids are made from the time
            as_superuser("UPDATE copies SET id = ('0000' || substr(id::text, 5))::uuid")
        as_superuser(f"UPDATE copies SET {ENDED[table]}")
        as_superuser(f"INSERT INTO {table} SELECT * FROM copies")
        as_superuser("DROP TABLE copies")
        assert observed.rows(f"SELECT count(*) > {MANY} FROM {table}") == [(True,)], table
    as_superuser(
        "INSERT INTO audit_seal (event_id, tenant_id, seq, previous, hash, sealed_at)"
        " SELECT id, tenant_id, 100 + row_number() OVER (), '', '', now() FROM audit_event WHERE xid = 3"
    )
    as_superuser("ANALYZE")
    yield
    as_superuser("ANALYZE")


def plans() -> dict[str, Any]:
    """The plan of each statement that the whole of `/metrics` and doctor's reads gave to the database."""
    seen: list[tuple[str, Any]] = []

    def remember(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append((sql, params))
        return execute(sql, params, many, context)

    reads = (
        observed.waiting, observed.due, observed.without_worker, observed.waiting_operations, observed.holds,
        observed.packet_causes, observed.decisions, observed.unsealed, observed.checked, observed.signs,
        observed.database_connections,
    )  # fmt: skip
    with connections[observed.ALIAS].execute_wrapper(remember):
        for read in reads:
            read()
    found = {}
    for sql, params in seen:
        with connections[observed.ALIAS].cursor() as cursor:
            cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
            found[sql] = cursor.fetchone()[0]
    return found


def scanned(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from scanned(item)
    elif isinstance(node, dict):
        if node.get("Node Type") == "Seq Scan":
            yield node["Relation Name"]
        for value in node.values():
            yield from scanned(value)


def test_nothing_that_has_ended_is_read(full: None) -> None:
    seal(db_clock)
    found = plans()
    assert len(found) >= 14
    bad = {
        sql: names for sql, plan in found.items() if (names := set(scanned(plan)) & {*COPIED, "audit_seal"})
    }
    assert bad == {}, json.dumps([found[sql] for sql in bad])[:4000]


def test_open_things_are_found_among_them(full: None) -> None:
    counts = {(row.what, row.status): row.count for row in observed.waiting() if row.count}
    assert counts == {
        ("run", "queued"): 2, ("proposal", "pending"): 1, ("command", "ready"): 1, ("packet", "open"): 1,
    }  # fmt: skip
    assert [(kind, count) for kind, _, count, _ in observed.decisions()] == [("approve", 1)]
