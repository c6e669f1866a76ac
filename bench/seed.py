"""Many rows at once, as copies of a real one, written past the triggers by a superuser. What is copied is marked."""

import psycopg
from django.db import models

from approvals.models import Proposal
from bench.site import Site
from workflows.models import Command, Run, Step

MARK = "bench-copy"


class Copies:
    """Copies of one row of a table in which some columns are SQL of their own."""

    def __init__(self, site: Site, model: type[models.Model], changed: dict[str, str], mark: str) -> None:
        self.address, self.changed, self.mark = site.superuser_url, changed, mark
        self.table = model._meta.db_table
        self.columns = [field.column for field in model._meta.concrete_fields]

    def fill_up_to(self, count: int, where: str, *, of: str = "") -> None:
        """Until so many rows are ``where``; one must be there, or be ``of`` what is copied. ``n`` counts these rows."""
        names = ", ".join(f'"{name}"' for name in self.columns)
        values = ", ".join(self.changed.get(name, f'one."{name}"') for name in self.columns)
        with psycopg.connect(self.address, autocommit=True) as database:
            row = database.execute(f"SELECT count(*) FROM {self.table} WHERE {where}").fetchone()
            there = row[0] if row else 0
            database.execute(
                f"INSERT INTO {self.table} ({names}) SELECT {values}"
                f" FROM (SELECT * FROM {self.table} WHERE {of or where} LIMIT 1) one,"
                f" generate_series({there + 1}, {count}) n"
            )
            database.execute(f"VACUUM ANALYZE {self.table}")

    def rows(self) -> int:
        """How many rows the table has."""
        with psycopg.connect(self.address, autocommit=True) as database:
            row = database.execute(f"SELECT count(*) FROM {self.table}").fetchone()
            return int(row[0]) if row else 0

    def remove(self) -> None:
        with psycopg.connect(self.address, autocommit=True) as database:
            database.execute(f"DELETE FROM {self.table} WHERE {self.mark} LIKE '{MARK}%'")
            database.execute(f"VACUUM ANALYZE {self.table}")


def ready_commands(site: Site) -> Copies:
    """Each with a target of its own, due at some time of the last hour."""
    changed = {
        "id": "gen_random_uuid()", "proposal_id": "gen_random_uuid()", "target": f"'{MARK}:' || gen_random_uuid()",
        "business_key": "gen_random_uuid()::text", "idempotency_key": "gen_random_uuid()::text",
        "due_at": "clock_timestamp() - random() * interval '1 hour'",
    }  # fmt: skip
    return Copies(site, Command, changed, "target")


def pending_proposals(site: Site) -> Copies:
    """Each of a run of its own, which is not there: no list reads it.

    Some run out of time within the hour and most within two days; of every fifth the risk is high; amounts differ, and
    every seventh has none; four operations of two workflows; and every hundred are alike.
    """
    changed = _SINGLE | {
        "decide_by": "clock_timestamp() + (5 + n % 2880) * interval '1 minute'",
        "created_at": "clock_timestamp() - (1 + n % 240) * interval '1 minute'",
        "workflow": "'bench-' || n % 2", "operation": "'bench.post-' || n % 4", "risk": "1 + (n % 5 = 0)::int * 2",
        "amount": "CASE WHEN n % 7 > 0 THEN (n * 7919) % 100000 / 100.0 END", "amount_currency": "'EUR'",
        "shape": "'hmac:' || n / 100", "digest": "encode(sha256(n::text::bytea), 'hex')",
    }  # fmt: skip
    return Copies(site, Proposal, changed, "target")


def decided_proposals(site: Site) -> Copies:
    """Of the last year: half of them carried out, a quarter rejected, a quarter expired."""
    changed = _SINGLE | {
        "status": "(ARRAY['consumed', 'consumed', 'rejected', 'expired'])[1 + n % 4]",
        "created_at": _THEN, "decide_by": f"{_THEN} + interval '4 hours'",
        "decided_at": f"CASE WHEN n % 4 < 3 THEN {_THEN} + interval '1 hour' END",
        "execute_by": f"CASE WHEN n % 4 < 2 THEN {_THEN} + interval '70 minutes' END",
        "ended_at": f"{_THEN} + interval '4 hours'",
    }  # fmt: skip
    return Copies(site, Proposal, changed, "target")


def runs(site: Site) -> tuple[Copies, Copies]:
    """Runs of the last weeks, of three workflows, and the one step of each."""
    run, event = "md5('bench-run-' || n)::uuid", "gen_random_uuid()::text"
    made = {
        "id": run, "source_record": f"'{MARK}'", "source_event_id": event, "workflow": "'bench-' || n % 3",
        "created_at": "clock_timestamp() - n * interval '20 seconds'",
    }  # fmt: skip
    steps = {"id": "gen_random_uuid()", "run_id": run, "input_hash": f"'{MARK}'"}
    return Copies(site, Run, made, "source_record"), Copies(site, Step, steps, "input_hash")


_SINGLE = {
    "id": "gen_random_uuid()", "run_id": "gen_random_uuid()", "target": f"'{MARK}:' || gen_random_uuid()",
}  # fmt: skip
_THEN = "clock_timestamp() - interval '1 day' - n * interval '30 seconds'"
