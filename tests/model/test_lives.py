"""Whole lives, played at random on the declared states, with every invariant checked after each step.

Pure: the rows are in memory, the provider and the clock are simulated. A failure prints the life that led
to it.
"""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from approvals.enums import DecisionKind, Mode, ProposalStatus
from tests import rows
from tests.model import invariants
from tests.model.people import OTHER_AMOUNT, Refused
from tests.model.provider import SETTLE_TIME
from tests.model.world import World
from workflows.classify import Meaning
from workflows.enums import CommandStatus, OnExpiry, RunStatus, StepStatus, WaitingFor

P, C, T = ProposalStatus, CommandStatus, StepStatus
MAX_RUNS = 4
ARGUMENTS = st.sampled_from([rows.REFUND, OTHER_AMOUNT, {**rows.REFUND, "order": "7"}])
pick = st.integers(0, 11)


def one(nth: int, rows_: list):
    """One of the rows; small numbers first, so that a failing life shrinks to a readable one."""
    return rows_[nth % len(rows_)]


class Lives(RuleBasedStateMachine):
    """One tenant, a few people and workers, a provider that may or may not remember keys."""

    @initialize(remembers=st.booleans(), second=st.booleans())
    def begin(self, remembers: bool, second: bool) -> None:
        self.world = World(second_person_needed=second)
        self.world.provider.remembers_keys = remembers
        self.finals = invariants.Finals()

    @invariant()
    def all_invariants_hold(self) -> None:
        if hasattr(self, "world"):
            invariants.check(self.world)
            self.finals.check(self.world)

    # -- choosing a row -----------------------------------------------------------------------------------

    def steps(self, status: str, *, reads: bool, waits_for: tuple[str, ...] = ()):
        everything = [step for steps in self.world.steps.values() for step in steps if step.status == status]
        return [
            step for step in everything
            if (step.key != "refund") == reads and (not waits_for or step.waiting_for in waits_for)
        ]  # fmt: skip

    def proposals(self, *statuses: str):
        return [proposal for proposal in self.world.proposals if proposal.status in statuses]

    def commands(self, *statuses: str):
        return [command for command in self.world.commands if command.status in statuses]

    # -- time, scope, people ------------------------------------------------------------------------------

    @rule(by=st.sampled_from([1, 25, 35, 125, 400, 3700, 15000]))
    def time_passes(self, by: int) -> None:
        self.world.advance(timedelta(seconds=by))

    @rule()
    def freeze_or_lift(self) -> None:
        self.world.frozen = not self.world.frozen

    @precondition(lambda self: self.world.circuit_open)
    @rule()
    def close_circuit(self) -> None:
        self.world.circuit_open = False

    @rule()
    def bump_policy(self) -> None:
        self.world.policy_version += 1

    @rule(person=st.sampled_from(["ann", "ben", "cleo", "dan"]), active=st.booleans())
    def deactivate_or_return(self, person: str, active: bool) -> None:
        self.world.active[person] = active

    # -- preparation --------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.world.runs) < MAX_RUNS)
    @rule(replay=st.booleans(), nth=pick)
    def start_run(self, replay: bool, nth: int) -> None:
        original = one(nth, self.world.runs) if replay and self.world.runs else None
        self.world.start_run(replay_of=original)

    @rule(
        result=st.sampled_from(["done", "done", "done", "data", "children", "provider", "person", "fail"]),
        nth=pick,
    )
    def work_a_stage(self, result: str, nth: int) -> None:
        due = [
            step for run in self.world.runs if (step := self.world.next_step(run)) and step.key != "refund"
        ]
        if due:
            self.world.work(one(nth, due), result)

    @rule(nth=pick, late=st.booleans())
    def supply_data(self, nth: int, late: bool) -> None:
        waiting = self.steps(T.WAITING, reads=True, waits_for=(WaitingFor.DATA, WaitingFor.CHILDREN))
        if waiting:
            step = one(nth, waiting)
            wait_id = step.wait_id
            if late:
                self.world.advance(timedelta(hours=2))
            in_time = self.world.now < step.waiting_until
            try:
                self.world.supply(step, wait_id)
                assert in_time
            except Refused:
                assert not in_time

    @rule(nth=pick)
    def child_ends(self, nth: int) -> None:
        waiting = self.steps(T.WAITING, reads=True, waits_for=(WaitingFor.CHILDREN,))
        ended = [run for run in self.world.runs if run.status in RunStatus.final_states]
        if waiting and ended:
            self.world.child_ended(one(nth, waiting), one(nth, ended))

    @rule(nth=pick)
    def stage_wait_expires(self, nth: int) -> None:
        over = [
            step for step in self.steps(T.WAITING, reads=True)
            if step.waiting_for != WaitingFor.PERSON and self.world.now >= step.waiting_until
        ]  # fmt: skip
        if over:
            self.world.expire_wait(one(nth, over))

    @rule(
        mode=st.sampled_from([Mode.LIVE, Mode.LIVE, Mode.LIVE, Mode.SHADOW, Mode.CANARY]),
        needed=st.sampled_from([0, 1, 1, 2]), on_expiry=st.sampled_from(OnExpiry), arguments=ARGUMENTS, nth=pick,
    )  # fmt: skip
    def propose(self, mode, needed, on_expiry, arguments, nth: int) -> None:
        due = [run for run in self.world.runs if (s := self.world.next_step(run)) and s.key == "refund"]
        if due:
            self.world.propose(
                one(nth, due), mode=mode, needed=needed, on_expiry=on_expiry, arguments=arguments
            )

    # -- deciding -----------------------------------------------------------------------------------------

    @rule(
        person=st.sampled_from(["ann", "ben", "cleo", "dan"]), nth=pick,
        kind=st.sampled_from([DecisionKind.APPROVE] * 5 + [DecisionKind.REJECT, DecisionKind.REQUEST_CHANGES]),
    )  # fmt: skip
    def vote(self, person: str, kind: str, nth: int) -> None:
        pending = self.proposals(P.PENDING)
        if pending:
            self.try_(lambda: self.world.vote(one(nth, pending), person, kind))

    @rule(nth=pick)
    def expire(self, nth: int) -> None:
        due = [p for p in self.proposals(P.PENDING, P.CHANGES_REQUESTED) if self.world.now >= p.decide_by]
        if due:
            self.world.expire(one(nth, due))

    @rule(nth=pick)
    def withdraw(self, nth: int) -> None:
        if self.world.proposals:
            self.try_(lambda: self.world.withdraw(one(nth, self.world.proposals)))

    @rule(nth=pick, arguments=ARGUMENTS)
    def supersede(self, nth: int, arguments) -> None:
        if self.world.proposals:
            self.try_(lambda: self.world.supersede(one(nth, self.world.proposals), arguments))

    @rule(nth=pick)
    def cancel_run(self, nth: int) -> None:
        if self.world.runs:
            self.try_(lambda: self.world.cancel_run(one(nth, self.world.runs)))

    @rule(nth=pick, how=st.sampled_from(["again", "complete", "fail", "skip", "cancel"]))
    def a_person_goes_on(self, nth: int, how: str) -> None:
        stopped = [
            step for reads in (True, False)
            for step in self.steps(T.WAITING, reads=reads, waits_for=(WaitingFor.PERSON,))
            if not any(p.run_id == step.run_id and p.status == P.CHANGES_REQUESTED for p in self.world.proposals)
        ]  # fmt: skip
        if stopped:
            step = one(nth, stopped)
            again = how == "again" and step.proposal_id is not None
            if again:
                self.world.ask_again(step)
            elif how != "again":
                self.world.finish_by_hand(step, how)

    # -- workers ------------------------------------------------------------------------------------------

    @rule(nth=pick)
    def claim(self, nth: int) -> None:
        due = self.commands(C.READY, C.RETRY_WAIT)
        if due:
            self.try_(lambda: self.world.claim(one(nth, due)))

    @rule(nth=pick, pin_changed=st.sampled_from([False, False, False, True]))
    def send(self, nth: int, pin_changed: bool) -> None:
        """Any worker that ever claimed may wake up and try."""
        claimed = [attempt for attempt in self.world.attempts if attempt.status == "claimed"]
        if claimed:
            self.try_(lambda: self.world.send(one(nth, claimed), pin_changed=pin_changed))

    @rule(nth=pick)
    def provider_applies(self, nth: int) -> None:
        if self.world.provider.on_its_way():
            self.world.provider.apply(one(nth, self.world.provider.on_its_way()))

    @rule(nth=pick)
    def provider_drops(self, nth: int) -> None:
        if self.world.provider.on_its_way():
            self.world.provider.drop(one(nth, self.world.provider.on_its_way()))

    @rule(nth=pick, meaning=st.sampled_from(Meaning))
    def answer(self, nth: int, meaning: Meaning) -> None:
        """Also a worker whose lease is long over may hear from the provider."""
        open_ = [a for a in self.world.attempts if a.pk in self.world.sent and not a.late_evidence]
        waiting = [a for a in open_ if a.status in ("sent", "no_answer")]
        if waiting:
            attempt = one(nth, waiting)
            request = self.world.sent[attempt.pk]
            if self.world.provider.honest(request, meaning):
                self.world.answer(attempt, meaning)

    @rule(nth=pick)
    def lease_ends(self, nth: int) -> None:
        over = [c for c in self.commands(C.CLAIMED, C.SENT) if self.world.now >= c.lease_until]
        if over:
            self.world.lose_lease(one(nth, over))

    @rule(nth=pick)
    def reconcile(self, nth: int) -> None:
        if unknown := self.commands(C.UNKNOWN):
            self.world.reconcile(one(nth, unknown))

    @rule(nth=pick)
    def send_again(self, nth: int) -> None:
        if unknown := self.commands(C.UNKNOWN):
            self.try_(lambda: self.world.send_again(one(nth, unknown)))

    @rule(nth=pick, person=st.sampled_from(["otto", "olga"]))
    def attest(self, nth: int, person: str) -> None:
        """People say what is so; whether it is too early to say *no*, the rules judge."""
        if unknown := self.commands(C.UNKNOWN):
            command = one(nth, unknown)
            happened = bool(self.world.provider.effects_of(command.idempotency_key))
            self.try_(lambda: self.world.attest(command, person, happened=happened))

    @rule(nth=pick)
    def look_again(self, nth: int) -> None:
        if waiting := self.commands(C.READY, C.RETRY_WAIT, C.HELD):
            self.world.look_again(one(nth, waiting))

    @rule(nth=pick)
    def tamper(self, nth: int) -> None:
        """Somebody with the owner's rights changes the stored bytes."""
        if ready := self.commands(C.READY):
            proposal = one(nth, ready).proposal
            proposal.contract = bytes(proposal.contract).replace(b"25.00", b"95.00")

    def try_(self, move) -> None:
        """A refusal is a normal answer; that it changed nothing, the invariants see."""
        try:
            move()
        except Refused:
            pass

    def teardown(self) -> None:
        """Drained: after the last fault, everything comes to an end or to a person."""
        if hasattr(self, "world"):
            drain(self.world)
            invariants.check(self.world)
            self.finals.check(self.world)


def drain(world: World) -> None:
    """Let the workers, the reconciler and the sweep go on until nothing moves by itself."""
    world.frozen = world.circuit_open = False
    for _ in range(12):
        world.advance(SETTLE_TIME + timedelta(seconds=1))
        for command in list(world.commands):
            if command.status in (C.CLAIMED, C.SENT):
                world.lose_lease(command)
            elif command.status == C.UNKNOWN:
                world.reconcile(command)
            elif command.status in (C.READY, C.RETRY_WAIT, C.HELD):
                world.look_again(command)
    live = [command.status for command in world.commands if command.status in C.live_states]
    assert not live, f"after all faults have stopped, still {live}"


Lives.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
TestLives = pytest.mark.filterwarnings("ignore")(Lives.TestCase)
