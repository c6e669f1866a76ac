"""Where a directed scenario plays: one tenant, forked processes that are stopped where it matters, and the oracle."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event, Thread
from time import monotonic
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.db import connections

from audit.sealer import seal
from audit.verify import Cause, Verdict, verify_all
from common.clock import db_clock
from common.ids import new_id
from tests.examples.refunds.conftest import RunningProvider
from tests.faults.facts import gather, journal
from tests.faults.flows import MODES, OPERATIONS
from tests.faults.nursery import Child, Nursery
from tests.faults.oracle import Judgement, judge
from tests.faults.people import Action, Office
from workflows.enums import CommandStatus
from workflows.models import Command

PATIENCE_S = float(os.environ.get("PLACET_FAULTS_PATIENCE_S", "25"))
TAMPERED = ("tampered", "seal_broken")
WALLS = ("workflows_command", "workflows_attempt", "approvals_proposal", "workflows_step", "workflows_run")


@dataclass
class Stage:
    """One scenario's place. ``planted`` is the defect that its processes have; empty for the run without one."""

    nursery: Nursery
    provider: RunningProvider
    kind: str
    planted: str = ""
    together: bool = False
    """Whether its workers send and store several at a time, as in production, or each alone."""
    times: dict[str, datetime] = field(default_factory=dict)
    hold_id: Any = None

    def __post_init__(self) -> None:
        self.never = Event()
        self.sweeper: Child | None = None
        # Each scenario is a tenant of its own at the provider, whose journal is never emptied.
        self.slug = f"stage-{new_id().hex[-12:]}"
        self.know(self.slug)
        self.switch()
        self.office = Office(self.slug, self.kind, self.provider)

    def know(self, slug: str) -> None:
        """Let this tenant be one of the provider's, with a key of its own."""
        import json

        from django.conf import settings

        self.provider.call("PUT", "/_admin/keys", {f"key-{slug}": slug})
        with open(settings.PLACET_REFUNDS_KEYS, "r+") as file:
            keys = json.load(file) | {slug: f"key-{slug}"}
            file.seek(0)
            json.dump(keys, file)
            file.truncate()

    def switch(self, *rules: dict[str, Any]) -> None:
        """How the provider misbehaves from now on, in the order of the requests."""
        self.provider.call("PUT", "/_admin/switches", {"mode": MODES[self.kind], "rules": list(rules)})

    # -- processes --------------------------------------------------------------------------------------------

    def worker(self, point: str = "", *, pause: str = "", **environment: str) -> Child:
        """One that claims and executes once; it dies or stops at ``point``, or stops before a function ``pause``."""
        wishes = {"PLACET_CRASHPOINT": point, "PLACET_PAUSE": pause, **environment}
        return self.nursery.fork("work", self._conditions(wishes))

    def fork(self, job: str, *, pause: str = "", **arguments: Any) -> Child:
        return self.nursery.fork(job, self._conditions({"PLACET_PAUSE": pause}), **arguments)

    def sweep(self) -> None:
        """From now on everything that is due is done, by one more process."""
        if self.sweeper is None:
            self.sweeper = self.fork("sweep")

    def _conditions(self, wishes: dict[str, str]) -> dict[str, str]:
        few = "10" if self.together else ""
        wishes = wishes | {"PLACET_PLANT": self.planted, "PLACET_FAULTS_CALLS_AT_ONCE": few}
        return {name: value for name, value in wishes.items() if value}

    def stop_sweeping(self) -> None:
        if self.sweeper is not None:
            self.sweeper.kill()
            self.until(lambda: self.sweeper is None or self.sweeper.gone)
            self.sweeper = None

    def stops(self, child: Child) -> None:
        """Wait until it has reached the place where it stops."""
        self.until(lambda: child.stopped or child.gone)
        assert child.stopped, "the process ended before it came to that place"

    def ends(self, child: Child) -> None:
        self.until(lambda: child.gone)

    # -- what is seen -----------------------------------------------------------------------------------------

    def command(self, action: Action) -> Command:
        return Command.objects.get(proposal_id=action.proposal_id)

    def status(self, action: Action) -> str:
        return str(Command.objects.values_list("status", flat=True).get(proposal_id=action.proposal_id))

    def reference_of(self, action: Action) -> str:
        """The provider's, of what it booked for this action."""
        key = self.command(action).idempotency_key
        return next(
            row["ref"] for row in journal(self.provider, self.slug) if row["key"] == key and row["effect"]
        )

    def becomes(self, action: Action, *statuses: str) -> None:
        self.until(lambda: self.status(action) in statuses)

    def rest(self) -> None:
        """Everything that is open is brought to its end; for a blind provider, to a person."""
        self.sweep()
        rows = Command.objects.filter(tenant_id=self.office.tenant.pk).exclude(
            status__in=CommandStatus.final_states
        )
        if self.kind == "blind":
            rows = rows.exclude(status=CommandStatus.UNKNOWN, lookups__gte=3)
        self._until_planted(lambda: not rows.exists())
        self.pause(0.3)  # what a defect still sends

    def until(self, done: Callable[[], bool]) -> None:
        end = monotonic() + PATIENCE_S
        while not done():
            assert monotonic() < end, list(Command.objects.values_list("status", "claims", "failure_code"))
            self.pause(0.03)

    def _until_planted(self, done: Callable[[], bool]) -> None:
        """What a defect leaves open for ever is for the oracle to name."""
        try:
            self.until(done)
        except AssertionError:
            if not self.planted:
                raise

    def pause(self, seconds: float) -> None:
        self.never.wait(seconds)

    # -- hands of others --------------------------------------------------------------------------------------

    @contextmanager
    def meanwhile(self, do: Callable[[], object], *, head_start: float = 0.7) -> Iterator[None]:
        """``do`` in a thread that has begun, and has perhaps to wait for a lock, when the block runs."""

        def run() -> None:
            try:
                do()
            finally:
                connections.close_all()

        thread = Thread(target=run)
        thread.start()
        thread.join(head_start)
        yield
        thread.join(PATIENCE_S)

    @contextmanager
    def holding(self, table: str, id_: Any) -> Iterator[None]:
        """Somebody else has the row locked while the block runs."""
        with psycopg.connect(superuser_url()) as other:
            other.execute(f"SELECT 1 FROM {table} WHERE id = %s FOR UPDATE", [id_])
            yield

    @contextmanager
    def walls_down(self) -> Iterator[None]:
        """Without the database's triggers, the last walls: what holds then are the locks and checks alone."""
        self._walls("DISABLE")
        try:
            yield
        finally:
            self._walls("ENABLE")

    def _walls(self, verb: str) -> None:
        with psycopg.connect(superuser_url(), autocommit=True) as database:
            for table in WALLS:
                database.execute(f"ALTER TABLE {table} {verb} TRIGGER USER")

    def make_due(self, action: Action) -> None:
        """Nobody waits here for the pause that the product makes between two claims."""
        with psycopg.connect(superuser_url(), autocommit=True) as database:
            sql = "UPDATE workflows_command SET due_at = clock_timestamp() WHERE proposal_id = %s"
            database.execute(sql, [action.proposal_id])

    # -- judgement --------------------------------------------------------------------------------------------

    def judge(self) -> Judgement:
        self.stop_sweeping()
        self.nursery.kill_all()
        self.until(lambda: bool(seal(db_clock)) or True)
        broken = [verdict for verdict in verify_all() if not verdict.holds and not self._is_told(verdict)]
        operation = OPERATIONS[f"faults.{self.kind}"]
        return judge(gather(
            superuser_url(), self.office.tenant.pk, self.slug, self.provider, self.office.actions, kind=self.kind,
            call_deadline=operation.call_deadline, settle_time=operation.settle_time,
            key_retention=operation.key_retention, times=self.times, chains_hold=not broken,
            chains_say=", ".join(str(verdict.cause) for verdict in broken),
        ))  # fmt: skip

    def _is_told(self, verdict: Verdict) -> bool:
        """Whether it names a row that somebody changed behind the product's back: so it must."""
        changed = [str(action.proposal_id) for action in self.office.actions if action.what in TAMPERED]
        return verdict.cause == Cause.ROW and any(name in verdict.detail for name in changed)


def superuser_url() -> str:
    """This test's own database, with every right."""
    address = urlsplit(os.environ["DATABASE_OWNER_URL"])
    name = connections["default"].settings_dict["NAME"]
    return urlunsplit(address._replace(path=f"/{name}", query=address.query.split("&")[0]))
