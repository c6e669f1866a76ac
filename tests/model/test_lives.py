"""Whole lives, played at random on the declared states, with every invariant checked after each step.

Pure: the rows are in memory, the provider and the clock are simulated. A failure prints the life that led
to it.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from approvals.enums import DecisionKind, Mode, ProposalStatus
from approvals.models import Proposal
from tests import rows
from tests.model import invariants
from tests.model.driver import drain, natural_moves
from tests.model.people import OTHER_AMOUNT, Refused
from tests.model.world import World
from workflows.classify import Meaning
from workflows.enums import CommandStatus, OnExpiry, RunStatus, StepStatus, WaitingFor
from workflows.models import Attempt, Command, Run, Step

P, C, T = ProposalStatus, CommandStatus, StepStatus
MAX_RUNS = 4
ARGUMENTS = [rows.REFUND, OTHER_AMOUNT, {**rows.REFUND, "order": "7"}]
INTERFERENCES = [
    "freeze",
    "bump_policy",
    "deactivate",
    "withdraw",
    "supersede",
    "cancel",
    "tamper",
    "start_run",
]
STAGE_RESULTS = ["data", "children", "provider", "person", "fail"]
VOTES = [DecisionKind.APPROVE, DecisionKind.APPROVE, DecisionKind.REJECT, DecisionKind.REQUEST_CHANGES]
pick = st.integers(0, 11)


def one(nth: int, choices: list[Any]) -> Any:
    """One of them; small numbers first, so that a failing life shrinks to a readable one."""
    return choices[nth % len(choices)]


class Lives(RuleBasedStateMachine):
    """One tenant, a few people and workers, a provider that may or may not remember keys."""

    @initialize(remembers=st.booleans(), second=st.booleans(), runs=st.integers(1, 2))
    def begin(self, remembers: bool, second: bool, runs: int) -> None:
        self.world = World(second_person_needed=second)
        self.world.provider.remembers_keys = remembers
        self.finals = invariants.Finals()
        for _ in range(runs):
            self.world.work(self.world.step(self.world.start_run(), "read"))

    @invariant()
    def all_invariants_hold(self) -> None:
        if hasattr(self, "world"):
            invariants.check(self.world)
            self.finals.check(self.world)

    def teardown(self) -> None:
        """After the last fault, everything comes to an end or to a person."""
        if hasattr(self, "world"):
            drain(self.world)
            self.all_invariants_hold()

    def try_(self, move: Callable[[], object]) -> None:
        """A refusal is a normal answer; that it changed nothing, the invariants see."""
        with suppress(Refused):
            move()

    # -- what there is to choose from
    # -----------------------------------------------------------------------

    def due_steps(self, *, reads: bool) -> list[Step]:
        steps = [step for run in self.world.runs if (step := self.world.next_step(run))]
        return [step for step in steps if (step.key != "refund") == reads]

    def waiting(self, *for_: str) -> list[Step]:
        steps = [step for steps in self.world.steps.values() for step in steps]
        return [step for step in steps if step.status == T.WAITING and step.waiting_for in for_]

    def stage_waits_over(self) -> list[Step]:
        stages = [s for s in self.waiting(*(w for w in WaitingFor if w != "person")) if s.key != "refund"]
        return [step for step in stages if self.world.now >= step.waiting_until]

    def stopped(self) -> list[Step]:
        asked = {p.run_id for p in self.proposals(P.CHANGES_REQUESTED)}
        return [step for step in self.waiting(WaitingFor.PERSON) if step.run_id not in asked]

    def proposals(self, *statuses: str) -> list[Proposal]:
        return [proposal for proposal in self.world.proposals if proposal.status in statuses]

    def overdue(self) -> list[Proposal]:
        open_ = self.proposals(P.PENDING, P.CHANGES_REQUESTED)
        return [proposal for proposal in open_ if self.world.now >= proposal.decide_by]

    def commands(self, *statuses: str) -> list[Command]:
        return [command for command in self.world.commands if command.status in statuses]

    def leases_over(self) -> list[Command]:
        return [c for c in self.commands(C.CLAIMED, C.SENT) if self.world.now >= c.lease_until]

    def listening(self) -> list[Attempt]:
        """Workers that may still hear from the provider, their lease long over or not."""
        sent = [attempt for attempt in self.world.attempts if attempt.status in ("sent", "no_answer")]
        return [attempt for attempt in sent if not attempt.late_evidence]

    def ended_runs(self) -> list[Run]:
        return [run for run in self.world.runs if run.status in RunStatus.final_states]

    # -- what goes well: several rules, so that lives get somewhere
    # ------------------------------------------

    def something_goes_on(self, nth: int) -> None:
        self.try_(one(nth, natural_moves(self.world)))

    _can_go_on = precondition(lambda self: natural_moves(self.world))
    goes_on = _can_go_on(rule(nth=pick)(something_goes_on))
    goes_further = _can_go_on(rule(nth=pick)(something_goes_on))
    goes_well = _can_go_on(rule(nth=pick)(something_goes_on))

    # -- time, scope, people
    # --------------------------------------------------------------------------------

    @rule(by=st.sampled_from([1, 25, 35, 35, 125, 125, 400, 3700, 15000]))
    def time_passes(self, by: int) -> None:
        self.world.advance(timedelta(seconds=by))

    @rule(what=st.sampled_from(INTERFERENCES), nth=pick)
    def somebody_interferes(self, what: str, nth: int) -> None:
        getattr(self, f"_{what}")(nth)

    def _freeze(self, nth: int) -> None:
        self.world.frozen = not self.world.frozen

    def _bump_policy(self, nth: int) -> None:
        self.world.policy_version += 1

    def _deactivate(self, nth: int) -> None:
        person = one(nth, list(self.world.active))
        self.world.active[person] = not self.world.active[person]

    def _withdraw(self, nth: int) -> None:
        if self.world.proposals:
            self.try_(lambda: self.world.withdraw(one(nth, self.world.proposals)))

    def _supersede(self, nth: int) -> None:
        if self.world.proposals:
            self.try_(lambda: self.world.supersede(one(nth, self.world.proposals), one(nth, ARGUMENTS)))

    def _cancel(self, nth: int) -> None:
        self.try_(lambda: self.world.cancel_run(one(nth, self.world.runs)))

    def _tamper(self, nth: int) -> None:
        """Somebody with the owner's rights changes the stored bytes."""
        if ready := self.commands(C.READY):
            proposal = one(nth, ready).proposal
            proposal.contract = bytes(proposal.contract).replace(b"25.00", b"95.00")

    def _start_run(self, nth: int) -> None:
        """A new one, or a replay of one that is there."""
        if len(self.world.runs) < MAX_RUNS:
            self.world.start_run(replay_of=one(nth, [None, *self.world.runs]))

    @precondition(lambda self: self.world.circuit_open)
    @rule()
    def circuit_closes(self) -> None:
        self.world.circuit_open = False

    # -- preparation
    # ----------------------------------------------------------------------------------------

    @precondition(lambda self: self.due_steps(reads=True))
    @rule(result=st.sampled_from(STAGE_RESULTS), nth=pick)
    def a_stage_stops(self, result: str, nth: int) -> None:
        self.world.work(one(nth, self.due_steps(reads=True)), result)

    @precondition(lambda self: self.waiting(WaitingFor.DATA))
    @rule(nth=pick, late=st.booleans())
    def data_is_supplied(self, nth: int, late: bool) -> None:
        step = one(nth, self.waiting(WaitingFor.DATA))
        wait_id = step.wait_id
        if late:
            self.world.advance(timedelta(hours=2))
        in_time = self.world.now < step.waiting_until
        try:
            self.world.supply(step, wait_id)
            assert in_time
        except Refused:
            assert not in_time

    @precondition(lambda self: self.waiting(WaitingFor.CHILDREN) and self.ended_runs())
    @rule(nth=pick)
    def child_ends(self, nth: int) -> None:
        self.world.child_ended(one(nth, self.waiting(WaitingFor.CHILDREN)), one(nth, self.ended_runs()))

    @precondition(lambda self: self.stage_waits_over())
    @rule(nth=pick)
    def stage_wait_expires(self, nth: int) -> None:
        self.world.expire_wait(one(nth, self.stage_waits_over()))

    @precondition(lambda self: self.due_steps(reads=False))
    @rule(
        mode=st.sampled_from([Mode.LIVE, Mode.LIVE, Mode.SHADOW, Mode.CANARY]), needed=st.sampled_from([0, 2]),
        on_expiry=st.sampled_from(OnExpiry), arguments=st.sampled_from(ARGUMENTS), nth=pick,
    )  # fmt: skip
    def propose(
        self, mode: str, needed: int, on_expiry: OnExpiry, arguments: dict[str, str], nth: int
    ) -> None:
        run = one(nth, self.due_steps(reads=False)).run
        self.world.propose(run, mode=mode, needed=needed, on_expiry=on_expiry, arguments=arguments)

    # -- deciding
    # -------------------------------------------------------------------------------------------

    @precondition(lambda self: self.proposals(P.PENDING))
    @rule(nth=pick, kind=st.sampled_from(VOTES))
    def vote(self, nth: int, kind: str) -> None:
        """The same person may vote again, and people who may not vote try to."""
        person = one(nth, list(self.world.active))
        self.try_(lambda: self.world.vote(one(nth, self.proposals(P.PENDING)), person, kind))

    @precondition(lambda self: self.overdue())
    @rule(nth=pick)
    def proposal_expires(self, nth: int) -> None:
        self.world.expire(one(nth, self.overdue()))

    @precondition(lambda self: self.stopped())
    @rule(nth=pick, how=st.sampled_from(["again", "again", "complete", "fail", "skip", "cancel"]))
    def a_person_goes_on(self, nth: int, how: str) -> None:
        step = one(nth, self.stopped())
        if how != "again":
            self.world.finish_by_hand(step, how)
        elif step.proposal_id is not None:
            self.world.ask_again(step)

    # -- workers
    # --------------------------------------------------------------------------------------------

    @precondition(lambda self: self.commands(C.READY, C.RETRY_WAIT))
    @rule(nth=pick)
    def claim(self, nth: int) -> None:
        self.try_(lambda: self.world.claim(one(nth, self.commands(C.READY, C.RETRY_WAIT))))

    @precondition(lambda self: any(attempt.status == "claimed" for attempt in self.world.attempts))
    @rule(nth=pick, pin_changed=st.sampled_from([False, False, True]))
    def send(self, nth: int, pin_changed: bool) -> None:
        """Any worker that ever claimed may wake up and try."""
        claimed = [attempt for attempt in self.world.attempts if attempt.status == "claimed"]
        self.try_(lambda: self.world.send(one(nth, claimed), pin_changed=pin_changed))

    @precondition(lambda self: self.world.provider.on_its_way())
    @rule(nth=pick, takes_effect=st.booleans())
    def provider_works(self, nth: int, takes_effect: bool) -> None:
        request = one(nth, self.world.provider.on_its_way())
        (self.world.provider.apply if takes_effect else self.world.provider.drop)(request)

    @precondition(lambda self: self.listening())
    @rule(nth=pick, meanings=st.permutations(list(Meaning)))
    def answer(self, nth: int, meanings: list[Meaning]) -> None:
        """The first of these that would be true."""
        attempt = one(nth, self.listening())
        request = self.world.sent[attempt.pk]
        self.world.answer(attempt, next(m for m in meanings if self.world.provider.honest(request, m)))

    @precondition(lambda self: self.commands(C.SENT))
    @rule(nth=pick)
    def a_call_is_lost(self, nth: int) -> None:
        """No answer within the lease; the request is perhaps still on its way, and may yet take effect."""
        command = one(nth, self.commands(C.SENT))
        self.world.advance(max(command.lease_until - self.world.now, timedelta(0)))
        self.world.lose_lease(command)

    @precondition(lambda self: self.leases_over())
    @rule(nth=pick)
    def lease_ends(self, nth: int) -> None:
        self.world.lose_lease(one(nth, self.leases_over()))

    @precondition(lambda self: self.commands(C.UNKNOWN))
    @rule(nth=pick)
    def reconcile(self, nth: int) -> None:
        self.world.reconcile(one(nth, self.commands(C.UNKNOWN)))

    @precondition(lambda self: self.commands(C.UNKNOWN))
    @rule(nth=pick)
    def send_again(self, nth: int) -> None:
        self.try_(lambda: self.world.send_again(one(nth, self.commands(C.UNKNOWN))))

    @precondition(lambda self: self.commands(C.UNKNOWN))
    @rule(nth=pick, person=st.sampled_from(["otto", "olga"]))
    def attest(self, nth: int, person: str) -> None:
        """People say what is so; whether it is too early to say *no*, the rules judge."""
        command = one(nth, self.commands(C.UNKNOWN))
        happened = bool(self.world.provider.effects_of(command.idempotency_key))
        self.try_(lambda: self.world.attest(command, person, happened=happened))

    @precondition(lambda self: self.commands(C.READY, C.RETRY_WAIT, C.HELD))
    @rule(nth=pick)
    def look_again(self, nth: int) -> None:
        self.world.look_again(one(nth, self.commands(C.READY, C.RETRY_WAIT, C.HELD)))


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=60,
    stateful_step_count=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
