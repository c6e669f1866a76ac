"""One round: set up what must not run, start the fleet, feed actions while everything breaks, heal, judge."""

import random
from dataclasses import dataclass
from time import monotonic
from typing import Any

from django.db import connection

from audit.actors import INSTALLATION
from audit.sealer import seal
from audit.verify import verify
from common.clock import db_clock
from tests.faults import mustnot
from tests.faults.breaking import Breaking
from tests.faults.facts import Facts, gather
from tests.faults.fleet import Fleet
from tests.faults.flows import OPERATIONS
from tests.faults.moments import MOMENTS, Moments, restore_policy
from tests.faults.oracle import Judgement, judge
from tests.faults.people import Office, insist
from tests.faults.site import Site, slug_of
from tests.faults.testifying import testify
from workflows import registry
from workflows.enums import CommandStatus
from workflows.models import Command

LONGEST_DRAIN_S = 150
LATE_EFFECTS_S = 2.0
"""The provider's latest execution, after which its journal does not change any more."""


@dataclass(frozen=True)
class Plan:
    """What one round does."""

    seed: int
    actions: int
    kind: str
    faults: tuple[str, ...]
    workers: int = 3
    per_second: float = 5.0
    number: int = 0
    plant: str = ""


@dataclass
class Round:
    """What came of it."""

    plan: Plan
    judgement: Judgement
    deaths: int
    stops: int
    faults: dict[str, int]
    seconds: float


def run(site: Site, plan: Plan) -> Round:
    began = monotonic()
    chance = random.Random(f"{plan.seed}/{plan.number}")
    registry.register_definitions(clock=db_clock)
    restore_policy(site.superuser_url())
    office = Office(slug_of(plan.number), plan.kind, site.provider)
    site.provider.call("PUT", "/_admin/switches", {"mode": "dedup"})
    mustnot.set_up(office, site.superuser_url(), plan.actions // 4)
    fleet = Fleet(site, chance, workers=plan.workers, plant=plan.plant)
    breaking = Breaking(site, fleet, office, chance, plan.faults)
    moments = Moments(site, office, chance)
    try:
        fleet.start()
        _feed(plan, office, moments, chance, lambda: _tick(site, fleet, breaking))
        breaking.end()
        moments.finish()
        fleet.heal()
        moments.times["healed"] = insist(db_clock)
        _drain(site, fleet, office, chance)
    finally:
        fleet.close()
    facts = _facts(site, office, moments.times)
    return Round(plan, judge(facts), fleet.deaths, fleet.stops, breaking.done, monotonic() - began)


def _tick(site: Site, fleet: Fleet, breaking: Breaking) -> None:
    fleet.tend()
    breaking.step()
    site.pause(0.03)


def _feed(plan: Plan, office: Office, moments: Moments, chance: random.Random, tick: Any) -> None:
    """Three quarters of the actions, a few a second; every fifth is met by a moment, and one policy is published."""
    count = plan.actions - plan.actions // 4
    due, publish_at = monotonic(), count // 2
    fed = 0
    while fed < count:
        tick()
        if monotonic() < due:
            continue
        due += 1 / plan.per_second
        if fed == publish_at:
            moments.publish_policy()
        elif fed == count // 3:
            moments.freeze()
        elif chance.random() < 0.25:
            moments.meet(chance.choice(MOMENTS))
        else:
            office.approved(amount=_amount(fed, plan.kind))
        if fed > publish_at and fed % 10 == 0 and "policy" in moments.times:
            office.approved("old_policy", "moving")
        fed += 1
    until = monotonic() + 4
    while monotonic() < until:
        tick()


def _amount(fed: int, kind: str) -> str:
    """Much money now and then, of which two people must also say what became of it: often where only people can."""
    return f"9{fed % 10}.{fed % 100:02}" if fed % (3 if kind == "blind" else 8) == 0 else ""


def _drain(site: Site, fleet: Fleet, office: Office, chance: random.Random) -> None:
    """Until every command has ended or, where nobody can look it up, is in the hands of people."""
    end, left_alone = monotonic() + LONGEST_DRAIN_S, set[object]()
    while monotonic() < end and insist(lambda: _open(office, left_alone)):
        fleet.tend()
        if office.kind == "blind":
            testify(office, chance, left_alone)
        site.pause(0.3)
    site.pause(LATE_EFFECTS_S)


def _open(office: Office, left_alone: set[object]) -> bool:
    rows = Command.objects.filter(tenant_id=office.tenant.pk).exclude(status__in=CommandStatus.final_states)
    return rows.exclude(pk__in=left_alone).exists()


def _facts(site: Site, office: Office, times: dict[str, Any]) -> Facts:
    insist(lambda: seal(db_clock))
    chains = insist(lambda: [verify(office.tenant.pk), verify(INSTALLATION)])
    broken = [verdict for verdict in chains if not verdict.holds]
    connection.close()
    operation = OPERATIONS[f"faults.{office.kind}"]
    return gather(
        site.superuser_url(), office.tenant.pk, office.slug, site.provider, office.actions, kind=office.kind,
        call_deadline=operation.call_deadline, settle_time=operation.settle_time,
        key_retention=operation.key_retention, chains_hold=not broken, times=times,
        chains_say="; ".join(f"{verdict.cause} at {verdict.seq}" for verdict in broken),
    )  # fmt: skip
