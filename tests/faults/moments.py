"""What people and other systems do in the same instant in which an action is sent."""

import random
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import Any

import psycopg
from django.db import connection, connections

from audit.actors import Actor
from common.clock import db_clock
from tests.faults import voting
from tests.faults.people import Action, Office, insist
from tests.faults.site import Site
from workflows import registry
from workflows.actions import freezing
from workflows.actions.freezing import Scope
from workflows.actions.preflight import AlreadyDone
from workflows.enums import HoldStatus
from workflows.models import Hold

MOMENTS = ("withdrawing", "superseding", "revoking", "pinning", "racing", "twin", "cancelling", "ordering")


class Moments:
    """Approves an action, and lets the other thing happen a few milliseconds earlier or later."""

    def __init__(self, site: Site, office: Office, chance: random.Random) -> None:
        self.site, self.office, self.chance = site, office, chance
        self.pool = ThreadPoolExecutor(4, thread_name_prefix="moment")
        self.running: list[Future[Any]] = []
        self.times: dict[str, datetime] = {}

    def meet(self, what: str) -> None:
        getattr(self, f"_{what}")()

    def finish(self) -> None:
        for future in self.running:
            future.result()
        self.running.clear()
        self.pool.shutdown()

    def _soon(self, do: Callable[[], object]) -> None:
        delay = self.chance.choice((0.0, 0.005, 0.02, 0.05, 0.15))

        def run() -> None:
            self.site.pause(delay)
            try:
                do()
            finally:
                connections.close_all()

        self.running.append(self.pool.submit(run))

    def _withdrawing(self) -> None:
        action = self.office.approved("withdrawing")
        self._soon(lambda: self.office.withdraw(action))

    def _superseding(self) -> None:
        action = self.office.approved("superseding")
        self._soon(lambda: self._supersede(action))

    def _supersede(self, action: Action) -> None:
        from common.errors import Refused

        newer = self.office.new("successor", order=action.arguments["order"], amount="33.33")
        try:
            made = self.office.propose(newer, supersedes=action.proposal_id)
        except Refused:
            return  # it was sent before
        newer.proposal_id, newer.digest = made.pk, made.digest
        self.office.approve(newer)

    def _revoking(self) -> None:
        action = self.office.new("revoking", amount=f"12.{self.chance.randrange(100):02}")
        self.office.propose(action)
        reviewer = self.office.another_reviewer(f"leaver{action.number}")
        self.office.vote(action, reviewer)
        self._soon(lambda: self.office.deactivate(reviewer))

    def _pinning(self) -> None:
        action = self.office.approved("pinning")
        self._soon(lambda: self.office.block_customer(action))

    def _racing(self) -> None:
        action = self.office.new("racing", amount=f"14.{self.chance.randrange(100):02}")
        self.office.propose(action)
        self._soon(lambda: self.office.vote(action, self.office.rita))
        self._soon(lambda: self.office.vote(action, self.office.owen, "reject"))

    def _cancelling(self) -> None:
        action = self.office.approved("cancelling")
        self._soon(lambda: self.office.cancel(action))

    def _ordering(self) -> None:
        """Two changes of one order; the one that was proposed later is approved first."""
        older = self.office.new("ordering")
        self.office.propose(older)
        self.office.approved("ordering", order=older.arguments["order"], amount="22.22")
        self._soon(lambda: self.office.approve(older))

    def _twin(self) -> None:
        first = self.office.approved("twin")
        self._soon(lambda: self._again(first))

    def _again(self, first: Action) -> None:
        second = self.office.new("twin", order=first.arguments["order"], amount=first.arguments["amount"])
        second.arguments = dict(first.arguments)
        try:
            self.office.propose(second)
        except AlreadyDone:  # the first one has happened meanwhile: nobody is asked about a second
            self.office.actions.remove(second)
            return
        self.office.approve(second)

    def freeze(self) -> None:
        """The kill switch is pulled while work is under way, and lifted a moment later."""
        by = voting.person(self.office.owen.pk)
        scope = Scope(self.office.tenant.pk)

        def pull() -> None:
            # Broken off at its commit it may have been placed all the same: whoever is not sure looks, and pulls again.
            insist(lambda: self._frozen() or freezing.freeze(scope=scope, why="stop", by=by, clock=db_clock))
            for hold in insist(self._frozen):
                self.times["frozen"] = insist(
                    lambda hold=hold: freezing.drain(hold.pk, by=by, clock=db_clock)
                ).drained_at
            self.site.pause(2)
            self.times["lifted"] = insist(db_clock)
            insist(lambda: self._lift_all(by))

        for _ in range(3):
            self.office.approved("freezing")
        self._soon(pull)

    def _frozen(self) -> list[Hold]:
        rows = Hold.objects.filter(tenant_id=self.office.tenant.pk, reason="freeze")
        return list(rows.filter(status__in=HoldStatus.holding_states))

    def _lift_all(self, by: Actor) -> None:
        for hold in self._frozen():
            freezing.lift(hold_id=hold.pk, tenant_id=self.office.tenant.pk, why="over", by=by, clock=db_clock)

    def publish_policy(self) -> None:
        """A newer version of the moving policy becomes current; its time is read after the lock."""
        read: list[datetime] = []

        def clock() -> datetime:
            read.append(db_clock())
            return read[-1]

        def publish() -> None:
            version = insist(newest_policy) + 1
            insist(
                lambda: registry._register_one("policy", "faults-moving-policy", version, f"{version}", clock)
            )
            self.times["policy"] = read[-1]

        for _ in range(3):
            self.office.approved("moving", "moving")
        self._soon(publish)


def newest_policy() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(version) FROM workflows_definition WHERE name = 'faults-moving-policy'")
        return int(cursor.fetchone()[0])


def restore_policy(url: str) -> None:
    """Back to the version that the code has; no product code could do that."""
    with psycopg.connect(url, autocommit=True) as database:
        sql = "UPDATE workflows_definition SET is_current = %s WHERE name = 'faults-moving-policy'"
        database.execute(sql + " AND version > 1", [False])
        database.execute(sql + " AND version = 1", [True])
