"""Small stories, each played once as it is and once for each planted defect that it can show."""

from collections.abc import Callable
from dataclasses import dataclass

from audit.actors import clock_actor
from common.clock import db_clock
from tests.faults import mustnot, voting
from tests.faults.flows import OPERATIONS
from tests.faults.nursery import Child
from tests.faults.people import Action
from tests.faults.stage import Stage, superuser_url
from workflows import registry
from workflows.actions import freezing

HANG = {"fault": "accept_then_hang", "seconds": 5}


@dataclass(frozen=True)
class Scenario:
    """A story, the kinds of provider before which it is played, and the defects it shows with what they break."""

    play: Callable[[Stage], None]
    kind: str = "lookup"
    shows: tuple[tuple[str, str], ...] = ()
    together: bool = False
    """Played by workers that send and store several at a time."""

    @property
    def name(self) -> str:
        return self.play.__name__ + ("-together" if self.together else "")


def plain(stage: Stage) -> None:
    """Approved, sent, confirmed."""
    stage.office.approved()
    stage.ends(stage.worker())
    stage.rest()


def killed_before_the_answer_was_stored(stage: Stage) -> None:
    """It happened, and the worker is gone."""
    stage.office.approved()
    stage.ends(stage.worker("CP8:kill"))
    stage.rest()


def no_answer(stage: Stage) -> None:
    """It happened, and the provider says nothing."""
    stage.switch(HANG | {"next": 1})
    stage.office.approved()
    stage.ends(stage.worker())
    stage.rest()


def executed_late(stage: Stage) -> None:
    """It happens a good while after everybody has given up waiting."""
    late = OPERATIONS["faults.lookup"].settle_time.total_seconds()
    stage.switch({"fault": "apply_late", "seconds": late * 0.9, "next": 1})
    stage.office.approved()
    stage.ends(stage.worker())
    stage.rest()
    stage.pause(late)  # also where nobody waited for it


def server_error_after_executing(stage: Stage) -> None:
    """500, and it happened."""
    stage.switch({"fault": "status", "status": 500, "execute": True, "next": 1})
    stage.office.approved()
    stage.ends(stage.worker())
    stage.rest()


def slept_before_the_call(stage: Stage) -> None:
    """It wakes up when another has long made the call."""
    action = stage.office.approved()
    sleeper = stage.worker("CP5:stop")
    stage.stops(sleeper)
    stage.rest()
    assert stage.status(action) == "confirmed"
    sleeper.go_on()
    stage.ends(sleeper)


def slept_with_an_answer(stage: Stage) -> None:
    """It wakes up with *not executed*, while another's request for the same command is under way."""
    stage.switch({"fault": "status", "status": 429, "next": 1})
    action = stage.office.approved()
    sleeper = stage.worker("CP8:stop")
    stage.stops(sleeper)
    stage.sweep()
    stage.becomes(action, "ready", "unknown")
    stage.stop_sweeping()
    second = _second_worker_at(stage, action, "CP8:stop")
    sleeper.go_on()
    stage.ends(sleeper)
    second.kill()
    stage.rest()


def _second_worker_at(stage: Stage, action: Action, point: str) -> Child:
    """Reconciled by hand until it is ready again, then taken by another, which stops there."""
    from workflows.worker.reconcile import reconcile

    def ready() -> bool:
        if stage.status(action) == "unknown":
            reconcile(stage.command(action).pk, by=clock_actor(), clock=db_clock, worker="tester")
        return stage.status(action) == "ready"

    stage.until(ready)
    worker = stage.worker(point)
    stage.stops(worker)
    return worker


def slept_until_the_end(stage: Stage) -> None:
    """It wakes up with *not executed* when the command has been confirmed by another. The last walls are down."""
    stage.switch({"fault": "status", "status": 429, "next": 1})
    with stage.walls_down():
        stage.office.approved()
        sleeper = stage.worker("CP8:stop")
        stage.stops(sleeper)
        stage.rest()
        sleeper.go_on()
        stage.ends(sleeper)


def withdrawn_in_the_same_instant(stage: Stage) -> None:
    """Between the check and the commit of *sent* somebody takes it back. The last walls are down."""
    with stage.walls_down():
        action = stage.office.approved()
        worker = stage.worker(pause="workflows.worker.send.before_send")
        stage.stops(worker)
        with stage.meanwhile(lambda: stage.office.withdraw(action)):
            worker.go_on()
        stage.ends(worker)
        if stage.status(action) != "sent":  # with the defect it stays there: its run has ended
            stage.rest()


def approved_and_sent_back(stage: Stage) -> None:
    """Two people decide differently in the same instant. The last walls are down."""
    with stage.walls_down():
        action = stage.office.new()
        stage.office.propose(action)
        first = stage.fork(
            "vote", pause="approvals.actions.check_is_open", office={"tenant": str(stage.office.tenant.pk)},
            proposal_id=str(action.proposal_id), user_id=str(stage.office.rita.pk), kind="approve",
        )  # fmt: skip
        stage.stops(first)
        with stage.meanwhile(lambda: stage.office.vote(action, stage.office.owen, "request_changes")):
            first.go_on()
        stage.ends(first)
        stage.rest()


def execute_by_passes_behind_a_lock(stage: Stage) -> None:
    """The row is locked by somebody else until the time to execute is over."""
    action = stage.office.approved(variant="brief")
    command = stage.command(action)
    worker = stage.worker(pause="workflows.worker.send.hold", PLACET_FAULTS_CALL_S="9")
    stage.stops(worker)
    with stage.holding("workflows_command", command.pk):
        worker.go_on()
        over = command.proposal.execute_by
        assert over is not None
        stage.until(lambda: db_clock() > over)
        stage.pause(0.6)
    stage.ends(worker)
    stage.rest()


def decide_by_passes_behind_a_lock(stage: Stage) -> None:
    """The row is locked by somebody else until the time to decide is over."""
    from approvals.models import Proposal

    action = stage.office.new(variant="brief")
    stage.office.propose(action)
    decide_by = Proposal.objects.get(pk=action.proposal_id).decide_by
    with stage.holding("approvals_proposal", action.proposal_id):
        voter = stage.fork(
            "vote", office={"tenant": str(stage.office.tenant.pk)}, proposal_id=str(action.proposal_id),
            user_id=str(stage.office.rita.pk), kind="approve",
        )  # fmt: skip
        stage.until(lambda: db_clock() > decide_by)
        stage.pause(0.6)
    stage.ends(voter)


def policy_published_after_the_claim(stage: Stage) -> None:
    """A newer version of the policy becomes current while a worker has the command."""
    stage.office.approved("moving", "moving")
    worker = stage.worker("CP3:stop")
    stage.stops(worker)
    registry._register_one("policy", "faults-moving-policy", 2, "2", db_clock)
    stage.times["policy"] = db_clock()
    worker.go_on()
    stage.ends(worker)
    stage.rest()


def reviewer_left_after_the_claim(stage: Stage) -> None:
    """The one who approved is deactivated while a worker has the command."""
    action = stage.office.new()
    stage.office.propose(action)
    leaver = stage.office.another_reviewer("leaver")
    stage.office.vote(action, leaver)
    worker = stage.worker("CP3:stop")
    stage.stops(worker)
    stage.office.deactivate(leaver)
    worker.go_on()
    stage.ends(worker)
    stage.rest()


def record_changed(stage: Stage) -> None:
    """What was pinned is no longer so at the provider."""
    action = stage.office.approved("old_pin")
    stage.office.block_customer(action)
    stage.ends(stage.worker())
    stage.rest()


def bytes_changed(stage: Stage) -> None:
    """Somebody with every right in the database, and all keys, changes the amount."""
    action = stage.office.approved("tampered")
    mustnot.tamper(superuser_url(), action)
    stage.ends(stage.worker())
    stage.rest()
    if not stage.planted:
        _ended_by_the_digest(stage, action)


def seal_broken(stage: Stage) -> None:
    """Somebody with every right in the database, and no key, changes a bit of what is sealed."""
    action = stage.office.approved("seal_broken")
    mustnot.break_seal(superuser_url(), action)
    stage.ends(stage.worker())
    _ended_by_the_digest(stage, action)
    stage.rest()


def _ended_by_the_digest(stage: Stage, action: Action) -> None:
    """At the first try: neither taken again and again nor lost to a worker that broke on it."""
    command = stage.command(action)
    assert (command.status, command.void_reason, command.claims) == ("void", "digest", 1)


def frozen_after_the_claim(stage: Stage) -> None:
    """The kill switch is pulled while a worker has the command."""
    stage.office.approved()
    worker = stage.worker("CP3:stop")
    stage.stops(worker)
    _freeze(stage)
    worker.go_on()
    stage.ends(worker)
    _lift(stage)
    stage.rest()


def frozen_in_the_same_instant(stage: Stage) -> None:
    """The kill switch is pulled after the holds were read and before *sent* commits: it returns only after that."""
    stage.office.approved()
    after_the_look = "batch.send._move_to_sent" if stage.together else "send.before_send"
    worker = stage.worker(pause=f"workflows.worker.{after_the_look}")
    stage.stops(worker)
    with stage.meanwhile(lambda: _freeze(stage)):
        worker.go_on()
    stage.ends(worker)
    _lift(stage)
    stage.rest()


def _freeze(stage: Stage) -> None:
    scope = freezing.Scope(stage.office.tenant.pk)
    by = voting.person(stage.office.owen.pk)
    hold = freezing.freeze(scope=scope, why="stop", by=by, clock=db_clock)
    assert hold.drained_at is not None
    stage.times["frozen"], stage.hold_id = hold.drained_at, hold.pk


def _lift(stage: Stage) -> None:
    by = voting.person(stage.office.owen.pk)
    stage.times["lifted"] = db_clock()
    freezing.lift(hold_id=stage.hold_id, tenant_id=stage.office.tenant.pk, why="over", by=by, clock=db_clock)


def the_same_thing_twice(stage: Stage) -> None:
    """It was done before, under another approval; both were asked for before either had happened."""
    first, second = stage.office.new("twin"), stage.office.new("twin")
    second.arguments = dict(first.arguments)
    stage.office.propose(first)
    stage.office.propose(second)
    stage.office.approve(first)
    stage.ends(stage.worker())
    stage.rest()
    stage.office.approve(second)
    stage.rest()


def forged_message(stage: Stage) -> None:
    """A task message names a proposal that nobody has approved."""
    action = stage.office.new("pending")
    stage.office.propose(action)
    stage.ends(stage.fork("message", proposal_id=str(action.proposal_id)))


def one_vote_of_two(stage: Stage) -> None:
    """Much money needs two people, and one has said yes."""
    action = stage.office.new("one_vote", amount="95.00")
    stage.office.propose(action)
    stage.ends(stage.fork(
        "vote", office={"tenant": str(stage.office.tenant.pk)}, proposal_id=str(action.proposal_id),
        user_id=str(stage.office.rita.pk), kind="approve",
    ))  # fmt: skip
    stage.ends(stage.worker())
    stage.rest()


def kills_every_worker(stage: Stage) -> None:
    """A row from which no worker comes back."""
    action = stage.office.approved("poison")
    looker = stage.fork("look")
    for _ in range(9):
        stage.until(lambda: stage.status(action) != "claimed")
        if stage.status(action) != "ready":
            break
        stage.make_due(action)
        stage.ends(stage.worker("CP4:kill", PLACET_FAULTS_CLAIM_S="0.1"))
    looker.kill()
    stage.rest()


I1, I4, I5, I6 = (
    "I1 AT-MOST-ONCE-EFFECT", "I4 INTENT-BEFORE-EFFECT", "I5 UNKNOWN-IS-NOT-FAILED", "I6 NO-BLIND-RETRY",
)  # fmt: skip
I2, I8, I13 = "I2 NO-UNAPPROVED-EFFECT", "I8 FENCING", "I13 EXPIRY"

SCENARIOS = [
    Scenario(plain, shows=(
        ("call_before_sent_commits", I4), ("key_for_each_attempt", "I7 KEY-STABILITY"),
        ("body_of_other_values", "I14 BINDING"), ("change_without_an_event", "I23 PROJECTION = LOG"),
        ("change_without_an_event", "I21 AUDIT-ATOMIC"),
    )),
    Scenario(killed_before_the_answer_was_stored, shows=(
        ("lease_over_means_ready", I1), ("lease_over_means_ready", I6),
    )),
    Scenario(no_answer, shows=(("timeout_means_failed", I5),)),
    Scenario(no_answer, kind="blind", shows=(("sent_again_blindly", I1), ("sent_again_blindly", I6))),
    Scenario(executed_late, shows=(("no_settle_time", I1), ("no_settle_time", I6))),
    Scenario(server_error_after_executing, shows=(("server_error_means_not_executed", I6),)),
    Scenario(slept_before_the_call, shows=(
        ("no_deadline_before_the_call", "I9 DEADLINE"), ("no_deadline_before_the_call", I1),
    )),
    Scenario(slept_with_an_answer, shows=(("no_fencing", I8), ("no_fencing", I1))),
    Scenario(slept_until_the_end, shows=(
        ("late_answer_overwrites_the_end", I8), ("event_without_a_change", "I21 AUDIT-ATOMIC"),
    )),
    Scenario(withdrawn_in_the_same_instant, shows=(("no_row_lock", I2), ("no_row_lock", I8))),
    Scenario(approved_and_sent_back, shows=(("no_lock_when_deciding", "I11 ONE-DECISION"),)),
    Scenario(execute_by_passes_behind_a_lock, shows=(("clock_before_the_lock", I13),)),
    Scenario(decide_by_passes_behind_a_lock, shows=(("clock_before_the_lock_when_deciding", I13),)),
    Scenario(policy_published_after_the_claim, shows=(("no_policy_check", "I15 POLICY-FRESH"),)),
    Scenario(reviewer_left_after_the_claim, shows=(("no_reviewer_check", "I16 REVOCATION"),)),
    Scenario(record_changed, shows=(("pins_not_compared", "PIN RECORD-AS-SEEN"),)),
    Scenario(bytes_changed, shows=(("no_digest_check", "I14 BINDING"), ("no_digest_check", I2))),
    Scenario(seal_broken),
    Scenario(frozen_after_the_claim, shows=(("freeze_not_looked_at", "FREEZE NOTHING-SENT-WHILE-FROZEN"),)),
    Scenario(frozen_in_the_same_instant, shows=(
        ("freeze_read_without_the_lock", "FREEZE NOTHING-SENT-WHILE-FROZEN"),
    )),
    Scenario(the_same_thing_twice, shows=(("earlier_effects_not_looked_for", I1),)),
    Scenario(forged_message, shows=(("message_is_trusted", "I20 DB-AUTHORITY"), ("message_is_trusted", I2))),
    Scenario(kills_every_worker, shows=(("never_quarantined", "I18 QUEUE-LIVENESS"),)),
    Scenario(one_vote_of_two, shows=(("one_vote_is_enough", "I12 QUORUM"),)),
]  # fmt: skip
SCENARIOS += [
    Scenario(plain, together=True, shows=(
        ("key_for_each_attempt", "I7 KEY-STABILITY"), ("body_of_other_values", "I14 BINDING"),
        ("change_without_an_event", "I21 AUDIT-ATOMIC"),
    )),
    Scenario(slept_before_the_call, together=True, shows=(("no_deadline_before_the_call", "I9 DEADLINE"),)),
    Scenario(policy_published_after_the_claim, together=True, shows=(("batch_sent_unchecked", "I15 POLICY-FRESH"),)),
    Scenario(reviewer_left_after_the_claim, together=True, shows=(("batch_sent_unchecked", "I16 REVOCATION"),)),
    Scenario(record_changed, together=True, shows=(("batch_sent_whatever_was_read", "PIN RECORD-AS-SEEN"),)),
    Scenario(bytes_changed, together=True, shows=(("no_digest_check", "I14 BINDING"),)),
    Scenario(seal_broken, together=True),
    Scenario(frozen_in_the_same_instant, together=True, shows=(
        ("freeze_read_without_the_lock", "FREEZE NOTHING-SENT-WHILE-FROZEN"),
    )),
    Scenario(the_same_thing_twice, together=True, shows=(("earlier_effects_not_looked_for", I1),)),
]  # fmt: skip
