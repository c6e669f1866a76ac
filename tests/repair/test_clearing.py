"""Stopped runs of every kind, cleared by operators who choose at random among what is offered: nothing happens twice.

Whatever is offered can be done, whatever is not is refused, and in the end the rows say what the ledger says.
PLACET_CLEARING sets how many runs stop (500 takes about half an hour); PLACET_SEED repeats a run.
"""

import contextlib
import os
import random
import sys
from collections import Counter
from typing import Final
from uuid import UUID

import pytest

from access.enums import Role
from access.models import Group
from approvals.models import Proposal
from common.clock import db_clock
from common.errors import Refused
from repair.models import RepairMove, RepairPacket
from tests.repair.choosing import Operator, operator
from tests.repair.ledger import KINDS, LATE, SETTLED, Ledger
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, age, as_superuser
from tests.workflows.toy import ToyPay
from workflows.documents import load_json
from workflows.enums import CommandStatus, Effect, RunStatus
from workflows.models import Command, Document, Run
from workflows.worker.holding import tend_circuits
from workflows.worker.reconcile import reconcile_due

pytestmark = pytest.mark.django_db
RUNS: Final = int(os.environ.get("PLACET_CLEARING", len(KINDS) * 2))
SEED: Final = int(os.environ.get("PLACET_SEED", "20261130"))
ROUNDS: Final = 40
BY_TIME: Final = {"not_settled_yet", "look_up_due"}
"""Reasons that may be over between the look and the click."""
SELDOM: Final = {"take", "give_back", "route", "look_at_record", "cancel", "close"}
"""These move no case on, or end every one: chosen now and then."""


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """The toy's provider keeps it, and the toy lets people change amounts."""
    ledger = Ledger()
    monkeypatch.setattr(ToyPay, "execute", lambda self, call: ledger.execute(call))
    monkeypatch.setattr(ToyPay, "reconcile", lambda self, call: ledger.reconcile(call))
    monkeypatch.setattr(ToyPay, "editable", ("amount",))
    return ledger


class Crew:
    """Two operators, two reviewers and a worker, who go on until no case is open."""

    def __init__(self, desk: Desk, ledger: Ledger, chance: random.Random) -> None:
        self.desk, self.ledger, self.chance = desk, ledger, chance
        self.people = [operator(desk, "opal"), operator(desk, "otto", (Role.OWNER,))]
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def clear(self) -> int:
        """Returns how many rounds it took."""
        for number in range(ROUNDS):
            packets = list(RepairPacket.objects.filter(ended_at=None).order_by("pk"))
            if not packets and not _live():
                return number
            for packet in packets:
                self.visit(packet)
            self.world_goes_on()
        raise AssertionError(f"still open: {[str(packet) for packet in packets]}, {_live()}")

    def visit(self, packet: RepairPacket) -> None:
        self.ledger.land(after=LATE)
        who = self.chance.choice(self.people)
        offered = who.offered(packet)
        closed = [code for code, why in offered.items() if why and why not in BY_TIME]
        for code in self.chance.sample(closed, min(2, len(closed))):
            self.try_in_vain(who, packet, code)
        if code := self.pick(packet, [code for code, why in offered.items() if not why]):
            answer = who.choose(packet, code, **self.typed(packet, code))
            if answer.status_code == 409 and who.offered(packet)[code]:
                return  # its time was over between the look and the click: a look-up had become due by itself
            assert answer.status_code == 302, (code, packet.cause, answer.content.decode()[-3000:])
            self.done[code] += 1

    def try_in_vain(self, who: Operator, packet: RepairPacket, code: str) -> None:
        before = (Command.objects.count(), Proposal.objects.count())
        assert who.choose(packet, code, **self.typed(packet, code)).status_code == 409, code
        assert before == (Command.objects.count(), Proposal.objects.count())
        self.refused[code] += 1

    def pick(self, packet: RepairPacket, offered: list[str]) -> str:
        """Any of them that is no lie: an operator says what the provider's own pages show."""
        if "did_not_happen" in offered:
            self.ledger.land()  # the time to settle is over: whatever was late has come by now
        happened = bool(self.ledger.effects[self.order_of(packet)])
        lies = {"did_not_happen"} if happened else {"happened", "partial"}
        honest = [code for code in offered if code not in lies | {"partial"}]
        often = [code for code in honest if code not in SELDOM]
        if often and self.chance.random() < 0.8:
            return self.chance.choice(often)
        return self.chance.choice(honest) if honest else ""

    def order_of(self, packet: RepairPacket) -> str:
        run = Run.objects.get(pk=packet.run_id)
        order: str = load_json(Document.objects.get(pk=run.input_ref))["order"]
        return order

    def typed(self, packet: RepairPacket, code: str) -> dict[str, str]:
        match code:
            case "happened":
                return {"reference": f"re_{self.order_of(packet)}"}
            case "supply":
                return {"asked_order": "7", "asked_times": "2", "asked_sure": "true"}
            case "correct":
                return {"asked_amount": "7.50"}
            case "route":
                group = Group.objects.get(tenant=self.desk.tenant, name="Night")
                return {"to": f"group:{group.pk}"}
        return {}

    def world_goes_on(self) -> None:
        """Time passes, late effects land before anybody may say that none came, people decide, a worker works."""
        self.ledger.land()
        for command in Command.objects.filter(status=CommandStatus.UNKNOWN):
            age(command.run_id, SETTLED.total_seconds(), "workflows_command")
        reconcile_due(by=SWEEP, clock=db_clock, worker="w-9")
        for proposal in Proposal.objects.filter(status="pending"):
            with contextlib.suppress(Refused):  # nobody may decide on some of them: that is why they stopped
                self.desk.decide(proposal, self.chance.choice(["approve", "approve", "reject"]))
        # A circuit that has opened meanwhile is tried again when its pause is over, and then all that it held goes on.
        as_superuser("UPDATE workflows_hold SET until = now() WHERE until IS NOT NULL AND status <> 'lifted'")
        tend_circuits(by=SWEEP, clock=db_clock)
        while self.desk.work() or self.desk.advance():
            pass


def _live() -> list[str]:
    return [f"{run.pk} {run.status}" for run in Run.objects.exclude(status__in=RunStatus.final_states)]


def _stop(desk: Desk, ledger: Ledger, runs: int) -> dict[str, tuple[str, UUID]]:
    """So many stopped runs, by order: their kind and id."""
    kinds = list(KINDS)
    made = {}
    for number in range(runs):
        kind, order = kinds[number % len(kinds)], f"{number + 1:05}"
        made[order] = kind, KINDS[kind](desk, ledger, order)
        if number % 3 == 2:
            _go_well(desk, f"well-{number}")
    return made


def _go_well(desk: Desk, order: str) -> None:
    """So that the provider's circuit stays closed, as it does while other work succeeds."""
    desk.approved(order=order)
    desk.work()


def test_all_of_them_are_cleared_and_nothing_happens_twice(desk: Desk, ledger: Ledger) -> None:
    Group.objects.create(tenant=desk.tenant, name="Night")
    made = _stop(desk, ledger, RUNS)
    assert RepairPacket.objects.filter(ended_at=None).count() == RUNS
    crew = Crew(desk, ledger, random.Random(SEED))
    rounds = crew.clear()
    told = f"{RUNS} runs of {len(KINDS)} kinds in {rounds} rounds\n{dict(crew.done)}\n{dict(crew.refused)}\n"
    sys.stdout.write(f"seed {SEED}: {told}")
    for order in made:
        assert len(ledger.effects[order]) <= 1, (order, made[order])
    _rows_say_what_the_ledger_says(ledger, made)
    # Each is in the history; also one that was begun, and that its action then refused because time had passed.
    assert RepairMove.objects.filter(refused="").count() >= sum(crew.done.values())


def _rows_say_what_the_ledger_says(ledger: Ledger, made: dict[str, tuple[str, UUID]]) -> None:
    happened: Counter[str] = Counter()
    for command in Command.objects.select_related("proposal"):
        order = command.target.partition(":")[2]
        happened[order] += command.effect == Effect.HAPPENED
    for order, kind in made.items():
        assert happened[order] == len(ledger.effects[order]), (order, kind)


def test_every_kind_meets_what_may_be_chosen_for_it(desk: Desk, ledger: Ledger) -> None:
    """So that a kind which is offered nothing cannot hide among the others."""
    opal = operator(desk)
    for kind, run_id in _stop(desk, ledger, len(KINDS)).values():
        [packet] = RepairPacket.objects.filter(run_id=run_id, ended_at=None)
        offered = {code for code, why in opal.offered(packet).items() if not why}
        assert offered - {"take", "give_back", "route", "look_at_record"}, kind
