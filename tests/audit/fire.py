"""Fifty writers at once while sealer, signer, PostgreSQL and Redis are killed, a clock steps back, a backup comes.

``python -m tests.audit.fire`` has engines and processes of its own, and prints what it found as one JSON line. What a
writer was told to be done must be in the history, once; what is signed must hold outside.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import UUID

import psycopg
import redis

from launch import roles
from launch.process import die_with_parent
from tests.faults.site import ROOT, Site

TENANTS, CHILDREN, THREADS = 3, 5, 10
WRITES_S = float(os.environ.get("PLACET_FIRE_S", "12"))
SETTLE_S = 60.0
_STEP_BACK = "CREATE OR REPLACE FUNCTION {} RETURNS trigger LANGUAGE plpgsql AS {}"
_GROUPS = "SELECT count(*) FROM audit_event WHERE kind = 'group.created'"
_MISSING = """
    SELECT count(*) FROM (
        SELECT 1 FROM audit_seal GROUP BY tenant_id HAVING max(seq) <> count(*) OR min(seq) <> 1) x
"""
_LOOSE = """
    SELECT count(*) FROM audit_seal s WHERE NOT EXISTS (SELECT FROM audit_event e WHERE e.id = s.event_id)
"""
_never = threading.Event()


def main() -> int:
    with Site() as site:
        import django

        django.setup()
        found = Fire(site).run()
    sys.stdout.write(json.dumps(found) + "\n")
    return 0 if not found["wrong"] else 1


class Fire:
    """One run. ``wrong`` gathers what must not be."""

    def __init__(self, site: Site) -> None:
        self.site, self.folder = site, site.folder / "signer"
        self.wrong: list[str] = []
        self.began = monotonic()
        self.deaths: Counter[str] = Counter()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.acknowledged: list[str] = []

    def run(self) -> dict[str, Any]:
        self.tenants = made_tenants()
        close_connections()
        self.under_fire()
        found = {"acknowledged": len(self.acknowledged), "deaths": dict(self.deaths), "events": self.judge()}
        self.after_a_restore()
        return found | {"wrong": self.wrong}

    # -- processes ----------------------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        signer = {"PLACET_SIGNER_DIR": str(self.folder), "DATABASE_SIGNER_URL": self.signer_url}
        arguments = {
            "sweep": ("manage.py", "sweep", "--every", "0.25"),
            "other sweep": ("manage.py", "sweep", "--every", "0.25"),
            "signer": ("-m", "signer", "run", "--every", "1", "--poll", "0.3"),
        }[name]
        self.running[name] = self.site.start(name, *arguments, **(signer if name == "signer" else {}))

    @property
    def signer_url(self) -> str:
        return self.site.postgres.url(user=roles.SIGNER, database=roles.DATABASE)

    def kill(self, name: str) -> None:
        os.killpg(self.running[name].pid, signal.SIGKILL)
        self.running[name].wait(10)
        self.deaths[name] += 1
        self.start(name)

    def end_all(self) -> None:
        for process in self.running.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
        self.running.clear()

    # -- writing, and what befalls it ---------------------------------------------------------------------------------

    def under_fire(self) -> None:
        for name in ("sweep", "other sweep", "signer"):
            self.start(name)
        writers = [Child(number, self.tenants) for number in range(CHILDREN)]
        faults: list[Callable[[], object]] = [
            lambda: self.kill("sweep"), lambda: self.kill("signer"), self.crash_postgres, self.empty_redis,
            lambda: self.kill("other sweep"), self.step_back, lambda: self.kill("signer"), lambda: self.kill("sweep"),
        ]  # fmt: skip
        end = monotonic() + WRITES_S
        for fault in faults:
            _never.wait(max(0.1, WRITES_S / (len(faults) + 2)))
            fault()
            self.say(f"after {dict(self.deaths)}")
        _never.wait(max(0.0, end - monotonic()))
        for writer in writers:
            self.acknowledged += writer.stop()

    def crash_postgres(self) -> None:
        self.site.postgres.crash()
        for _ in range(20):
            try:
                self.site.postgres.start()
                break
            except Exception:  # noqa: BLE001 - its socket may not be free yet
                _never.wait(0.3)
        self.deaths["postgres"] += 1

    def empty_redis(self) -> None:
        with redis.Redis(unix_socket_path=str(self.site.valkey.socket)) as client:
            client.flushall()
        self.deaths["redis emptied"] += 1

    def step_back(self) -> None:
        """From now on events are stamped an hour earlier."""
        with psycopg.connect(self.site.superuser_url(), autocommit=True) as connection:
            row = connection.execute(
                "SELECT p.oid::regprocedure::text, p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid"
                " WHERE t.tgrelid = 'audit_event'::regclass AND p.prosrc LIKE '%clock_timestamp%'"
            ).fetchone()
            assert row is not None
            source = row[1].replace("clock_timestamp()", "clock_timestamp() - interval '1 hour'")
            connection.execute(_STEP_BACK.format(row[0], f"$body${source}$body$"))
        self.deaths["clock stepped back"] += 1

    # -- judging ------------------------------------------------------------------------------------------------------

    def judge(self) -> int:
        """Nothing waits, nothing is sealed twice or left out, all of it signed, and it holds outside."""
        self.wait(self.all_sealed, "sealed")
        self.wait(self.all_signed, "signed")
        self.end_all()
        for what, sql in (
            ("places are missing", _MISSING),
            ("seals without an event", _LOOSE),
            ("refusals", "SELECT count(*) FROM audit_signer_report"),
        ):
            self.expect(self.one(sql) == 0, what)
        with psycopg.connect(self.site.superuser_url()) as connection:
            rows = connection.execute(
                "SELECT subject_id::text FROM audit_event WHERE kind = 'group.created'"
            ).fetchall()
        groups = Counter(row[0] for row in rows)
        self.expect(
            all(groups[done] == 1 for done in self.acknowledged), "what was acknowledged is not there once"
        )
        self.expect(self.holds(), "the daily check finds something")
        for slug in self.tenants.values():
            self.expect(self.verified(slug) == 0, f"{slug} does not hold outside")
        return int(self.one("SELECT count(*) FROM audit_event"))

    def all_sealed(self) -> bool:
        sql = "SELECT count(*) FROM audit_event e WHERE NOT EXISTS (SELECT FROM audit_seal s WHERE s.event_id = e.id)"
        return bool(self.one(sql) == 0)

    def all_signed(self) -> bool:
        return self.all_sealed() and bool(self.one(
            "SELECT count(*) FROM audit_head h WHERE h.seq > coalesce((SELECT size FROM audit_checkpoint c"
            " WHERE c.tenant_id = h.tenant_id ORDER BY recorded_at DESC LIMIT 1), 0)"
        ) == 0)  # fmt: skip

    def after_a_restore(self) -> None:
        """The whole database as it was, behind what was signed since: refused, accepted by a person, and signed on."""
        self.copy(roles.DATABASE, "backup")
        for name in ("sweep", "signer"):
            self.start(name)
        before, writer = self.one(_GROUPS), Child(0, self.tenants)
        self.wait(lambda: self.one(_GROUPS) > before + 20, "written on")
        writer.stop()
        self.wait(self.all_signed, "signed again")
        self.end_all()
        self.copy("backup", roles.DATABASE)
        self.expect(self.manage("after_restore") == 0, "after_restore fails")
        self.start("sweep")
        self.wait(self.all_sealed, "sealed after the restore")
        self.expect(self.signer("once") == 1, "a restored history is not refused")
        refused = sorted((self.folder / "refused").glob("*.json"))
        self.expect(bool(refused), "nothing is refused")
        for path in refused:
            code = self.signer("accept", "--tenant", path.stem, "--reason", "Restored the backup of Sunday")
            self.expect(code == 0, f"{path.stem} cannot be accepted")
        self.start("signer")
        told = "SELECT count(*) FROM audit_event WHERE kind = 'chain.accepted' AND body ->> 'chain' = tenant_id::text"
        self.wait(lambda: self.one(told) == len(refused), "written down that it was accepted")
        self.wait(self.all_signed, "signed after the restore")
        self.end_all()
        self.expect(self.holds(), "the daily check finds something after the restore")
        lost, kept = self.grown(refused), self.tenants.values()
        # First: each bundle is an event, and from then on an unsigned one.
        holds = all(self.verified(slug, new=True) == 0 for slug in kept)
        self.expect(holds, "what was signed after the restore does not hold")
        self.expect(all(self.verified(slug) == 1 for slug in lost), "the lost end is not named")

    def grown(self, refused: list[Path]) -> list[str]:
        return [self.tenants[UUID(path.stem)] for path in refused if UUID(path.stem) in self.tenants]

    def copy(self, source: str, target: str) -> None:
        """As a copy of the whole database at rest; what is there under that name is gone."""
        with psycopg.connect(self.site.postgres.url(), autocommit=True) as connection:
            for name in (source, target):
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
                )
            connection.execute(f"DROP DATABASE IF EXISTS {target}")
            connection.execute(f"CREATE DATABASE {target} TEMPLATE {source} OWNER {roles.OWNER}")
        owner = self.site.postgres.url(user=roles.OWNER, database=roles.DATABASE)
        urls = {"owner_url": owner, "app_url": self.site.database_url, "system_url": self.site.system_url}
        roles.bootstrap(self.site.postgres.url(), **urls)

    # -- as people do it ----------------------------------------------------------------------------------------------

    def manage(self, *arguments: str) -> int:
        return self.do("manage.py", *arguments)

    def signer(self, *arguments: str) -> int:
        environment = {"PLACET_SIGNER_DIR": str(self.folder), "DATABASE_SIGNER_URL": self.signer_url}
        return self.do("-m", "signer", *arguments, **environment)

    def do(self, *arguments: str, **environment: str) -> int:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            sys.stderr.write(done.stdout + done.stderr)
        return done.returncode

    def holds(self) -> bool:
        return self.manage("verify_audit") == 0

    def verified(self, slug: str, *, new: bool = False) -> int:
        """What the verifier says of a bundle with what the signer's folder holds; ``new``: with the last one alone."""
        bundle = self.site.folder / f"{slug}-{monotonic()}.zip"
        self.manage("export_bundle", str(bundle), "--tenant", slug)
        tenant = next(pk for pk, known in self.tenants.items() if known == slug)
        kept = self.folder / "checkpoints" / str(tenant)
        if new:
            last = max(kept.iterdir(), key=lambda path: path.stat().st_mtime_ns)
            kept = self.site.folder / f"kept-{monotonic()}"
            kept.mkdir()
            (kept / last.name).write_text(last.read_text())
        arguments = ("--checkpoints", str(kept), "--pubkey", str(self.folder / "signer.pub"))
        done = subprocess.run(
            [sys.executable, "verify_history.py", str(bundle), *arguments], cwd=ROOT, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        sys.stderr.write(f"{slug}\n{done.stdout}{done.stderr}")
        return done.returncode

    # -- looking ------------------------------------------------------------------------------------------------------

    def one(self, sql: str) -> Any:
        with psycopg.connect(self.site.superuser_url()) as connection:
            row = connection.execute(sql).fetchone()
        return row[0] if row else None

    def say(self, what: str) -> None:
        sys.stderr.write(f"{monotonic() - self.began:6.1f} s  {what}\n")

    def wait(self, until: Callable[[], bool], what: str) -> None:
        self.say(f"until it is {what}")
        end = monotonic() + SETTLE_S
        while not until():
            if monotonic() > end:
                self.wrong.append(f"it is never {what}")
                return
            _never.wait(0.3)

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.wrong.append(otherwise)


class Child:
    """A forked process with ten writers, each with its own connection; tells at its end what it was told."""

    def __init__(self, number: int, tenants: dict[UUID, str]) -> None:
        reader, writer = os.pipe()
        dies = die_with_parent(signal.SIGKILL)
        self.pid = os.fork()
        if self.pid:
            os.close(writer)
            self._reader = reader
            return
        os.close(reader)
        dies()
        try:
            from tests.audit.writing import write_until_told

            with os.fdopen(writer, "w") as out:
                out.write(json.dumps(write_until_told(number, tenants, THREADS)))
        finally:
            os._exit(0)  # the engines are the parent's, and so is what ends them

    def stop(self) -> list[str]:
        os.kill(self.pid, signal.SIGTERM)
        with os.fdopen(self._reader) as said:
            found: list[str] = json.loads(said.read())
        os.waitpid(self.pid, 0)
        return found


def made_tenants() -> dict[UUID, str]:
    """By the product's own actions, so that their histories know everybody."""
    from access.actions import create_tenant
    from common.clock import db_clock
    from tests.access.people import INSTALLER

    made = [
        create_tenant(slug=f"fire-{number}", name=f"Fire {number}", by=INSTALLER, clock=db_clock)
        for number in range(TENANTS)
    ]
    return {tenant.pk: tenant.slug for tenant in made}


def close_connections() -> None:
    from django.db import connections

    connections.close_all()


if __name__ == "__main__":
    sys.exit(main())
