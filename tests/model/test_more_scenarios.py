"""More of the lives that the design names: versions, withdrawals, automatic approval, children, shadow,
replay.
"""

from datetime import timedelta

import pytest

from approvals.enums import DecisionKind, Mode
from tests import rows
from tests.model.people import OTHER_AMOUNT, Refused
from tests.model.test_scenarios import approved, asked, finish, sent, state, unknown
from tests.model.world import World
from workflows.classify import Meaning
from workflows.enums import VoidReason


@pytest.fixture
def world() -> World:
    return World()


def test_superseded_while_claimed(world: World) -> None:
    run = approved(world)
    attempt = world.claim(world.commands[0])
    successor = world.supersede(world.proposals[0])
    with pytest.raises(Refused, match="stale"):
        world.send(attempt)
    assert state(world, run) == {
        "run": "waiting_for_approval", "steps": ["completed", "waiting(approval)", "pending"],
        "proposals": ["superseded", "pending"], "commands": ["void(superseded), none"], "attempts": ["claimed"],
        "packets": [], "effects": 0,
    }  # fmt: skip
    assert successor.generation == 2, "nothing happened for certain, and the action is another one: a new key"


def test_superseding_what_was_sent_is_too_late(world: World) -> None:
    run, _ = sent(world)
    with pytest.raises(Refused, match="too_late"):
        world.supersede(world.proposals[0])
    assert state(world, run)["proposals"] == ["approved"]


def test_withdrawn_while_claimed(world: World) -> None:
    run = approved(world)
    world.claim(world.commands[0])
    world.withdraw(world.proposals[0])
    finish(world, run)
    assert state(world, run) == {
        "run": "completed(done)", "steps": ["completed", "skipped", "completed"], "proposals": ["withdrawn"],
        "commands": ["void(withdrawn), none"], "attempts": ["claimed"], "packets": [], "effects": 0,
    }  # fmt: skip


def test_changes_requested_then_a_new_version(world: World) -> None:
    run = asked(world)
    world.vote(world.proposals[0], "ann", DecisionKind.REQUEST_CHANGES)
    assert state(world, run)["proposals"] == ["changes_requested"]
    assert state(world, run)["run"] == "waiting_for_approval"
    new = world.supersede(world.proposals[0], OTHER_AMOUNT)
    world.vote(new, "ben")
    assert state(world, run) == {
        "run": "executing", "steps": ["completed", "waiting(provider)", "pending"],
        "proposals": ["superseded", "approved"], "commands": ["ready, none"], "attempts": [], "packets": [],
        "effects": 0,
    }  # fmt: skip
    assert new.version == 2
    assert new.idempotency_key == world.proposals[0].idempotency_key, "no command had this key: it is kept"


def test_rejected(world: World) -> None:
    run = asked(world)
    world.vote(world.proposals[0], "ann", DecisionKind.REJECT)
    finish(world, run)
    assert state(world, run) == {
        "run": "completed(declined)", "steps": ["completed", "skipped", "completed"], "proposals": ["rejected"],
        "commands": [], "attempts": [], "packets": [], "effects": 0,
    }  # fmt: skip


def test_auto_approved(world: World) -> None:
    run = asked(world, needed=0)
    assert world.votes[world.proposals[0].pk] == {}
    attempt = world.claim(world.commands[0])
    world.send(attempt)
    world.provider.apply(world.sent[attempt.pk])
    world.answer(attempt, Meaning.CONFIRMED)
    finish(world, run)
    assert state(world, run) == {
        "run": "completed(done)", "steps": ["completed"] * 3, "proposals": ["consumed"],
        "commands": ["confirmed(answer), happened"], "attempts": ["answered"], "packets": [], "effects": 1,
    }  # fmt: skip


@pytest.mark.parametrize("ends", ["fail", "complete"])
def test_child_ends(world: World, ends: str) -> None:
    parent, child = world.start_run(), world.start_run()
    world.work(world.step(parent, "read"), "children")
    assert state(world, parent)["run"] == "waiting_for_children"
    for key in ("read", "refund", "tell"):
        world.work(world.step(child, key), "fail" if (ends, key) == ("fail", "tell") else "done")
    world.child_ended(world.step(parent, "read"), child)
    if ends == "fail":
        assert state(world, child)["run"] == "failed(failed)"
        assert state(world, parent) == {
            "run": "manual_repair", "steps": ["waiting(person)", "pending", "pending"], "proposals": [],
            "commands": [], "attempts": [], "packets": ["child_failed: open"], "effects": 0,
        }  # fmt: skip
    else:
        assert state(world, parent)["steps"] == ["completed", "pending", "pending"]
        assert state(world, parent)["run"] == "running"


def test_older_event_of_a_record_comes_after_a_newer_one(world: World) -> None:
    """A webhook out of order: the late one ends at once, as *stale*, and asks nobody."""
    run = world.start_run()
    run.outcome = "stale"
    for step in world.steps[run.pk]:
        step.cancel(at=world.now)
    world.settle(run)
    assert run.status == "cancelled"
    assert state(world, run)["proposals"] == []


def test_news_of_a_settled_command_changes_nothing(world: World) -> None:
    """The provider tells us twice, on whatever way: the second time only leaves evidence."""
    run, attempt = sent(world)
    world.provider.apply(world.sent[attempt.pk])
    world.answer(attempt, Meaning.CONFIRMED)
    assert world.answer(attempt, Meaning.UNKNOWN) == "late"
    assert attempt.late_evidence == {"meaning": "unknown"}
    assert state(world, run)["commands"] == ["confirmed(answer), happened"]


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.DRAFT, Mode.CANARY])
def test_shadow_proposal_attacked(world: World, mode: str) -> None:
    """However often it is approved, withdrawn, superseded or cancelled: nothing is ever sent for it."""
    run = asked(world, mode=mode)
    world.vote(world.proposals[0], "ann")
    for attack in (
        lambda: world.vote(world.proposals[0], "ben"),
        lambda: world.withdraw(world.proposals[0]),
        lambda: world.supersede(world.proposals[0]),
    ):
        with pytest.raises(Refused):
            attack()
    finish(world, run)
    assert state(world, run) == {
        "run": "completed(done)", "steps": ["completed"] * 3, "proposals": ["approved"], "commands": [],
        "attempts": [], "packets": [], "effects": 0,
    }  # fmt: skip


def test_replay_of_a_run_whose_refund_is_done(world: World) -> None:
    """It carries the original's key, so approving it is refused, and it never becomes a second refund."""
    original, attempt = sent(world)
    world.provider.apply(world.sent[attempt.pk])
    world.answer(attempt, Meaning.CONFIRMED)
    finish(world, original)
    replay = world.start_run(replay_of=original)
    world.work(world.step(replay, "read"))
    again = world.propose(replay)
    assert again.idempotency_key == world.commands[0].idempotency_key
    with pytest.raises(Refused, match="action_in_progress"):
        world.vote(again, "ben")
    assert state(world, replay)["proposals"] == ["pending"]
    assert state(world, replay)["commands"] == []
    assert state(world, original)["effects"] == 1


def test_replay_of_a_run_whose_refund_was_refused(world: World) -> None:
    original, attempt = sent(world)
    world.provider.drop(world.sent[attempt.pk])
    world.answer(attempt, Meaning.REFUSED)
    assert state(world, original) == {
        "run": "manual_repair", "steps": ["completed", "waiting(person)", "pending"], "proposals": ["consumed"],
        "commands": ["refused(answer), none"], "attempts": ["answered"], "packets": ["refused: open"], "effects": 0,
    }  # fmt: skip
    replay = world.start_run(replay_of=original)
    world.work(world.step(replay, "read"))
    same = world.propose(replay)
    assert same.generation == 1, "the same action keeps its key"


def test_replay_while_the_original_is_unknown(world: World) -> None:
    original, _ = unknown(world)
    replay = world.start_run(replay_of=original)
    world.work(world.step(replay, "read"))
    again = world.propose(replay, arguments=OTHER_AMOUNT)
    assert again.generation == 1, "the key does not grow while nobody knows"
    with pytest.raises(Refused, match="action_in_progress"):
        world.vote(again, "ben")


def test_same_thing_asked_by_two_runs(world: World) -> None:
    """The second stays pending while the first may act; after the first has acted, the second stops for a
    person.
    """
    _, attempt = sent(world)
    second = asked(world)
    with pytest.raises(Refused, match="action_in_progress"):
        world.vote(world.proposals[1], "ben")
    assert state(world, second)["proposals"] == ["pending"]
    world.provider.apply(world.sent[attempt.pk])
    world.answer(attempt, Meaning.CONFIRMED)
    world.vote(world.proposals[1], "ben")
    world.send(world.claim(world.commands[1]))
    assert state(world, second) == {
        "run": "manual_repair", "steps": ["completed", "waiting(person)", "pending"], "proposals": ["consumed"],
        "commands": ["dead(earlier_effect), none"], "attempts": ["released"], "packets": ["dead: open"],
        "effects": 0,
    }  # fmt: skip
    assert len(world.provider.effects) == 1


def test_cancelled_before_anything_was_sent(world: World) -> None:
    run = approved(world)
    assert world.cancel_run(run) == "cancelled"
    assert state(world, run) == {
        "run": "cancelled(cancelled)", "steps": ["completed", "cancelled", "cancelled"], "proposals": ["withdrawn"],
        "commands": ["cancelled(check), none"], "attempts": [], "packets": [], "effects": 0,
    }  # fmt: skip


def test_handled_outside(world: World) -> None:
    """A person did it by hand and says so: cancelled, with effect *happened*, settled by a person."""
    run = approved(world)
    world.handle_outside(world.commands[0])
    finish(world, run)
    assert state(world, run)["commands"] == ["cancelled(person), happened"]
    assert state(world, run)["proposals"] == ["withdrawn"]
    assert state(world, run)["run"] == "cancelled(cancelled)"


def test_the_record_changed_after_approval(world: World) -> None:
    run = approved(world)
    assert world.send(world.claim(world.commands[0]), pin_changed=True) == "void"
    assert state(world, run)["commands"] == ["void(pin), none"]
    assert state(world, run)["packets"] == ["pin: open"]


def test_the_stored_bytes_were_changed_after_approval(world: World) -> None:
    run = approved(world)
    world.proposals[0].contract = bytes(world.proposals[0].contract).replace(b"25.00", b"95.00")
    world.send(world.claim(world.commands[0]))
    assert state(world, run)["commands"] == [f"void({VoidReason.DIGEST}), none"]
    assert world.provider.requests == []


def test_key_reused_with_other_parameters(world: World) -> None:
    """This command's outcome is unknown, and the provider is not called again until somebody has looked."""
    run, attempt = sent(world)
    world.provider.drop(world.sent[attempt.pk])
    assert world.answer(attempt, Meaning.KEY_REUSED) == "unknown"
    assert world.circuit_open
    other = asked(world, arguments={**OTHER_AMOUNT, "order": "7"})
    world.vote(world.proposals[1], "ann")
    assert world.send(world.claim(world.commands[1])) == "held"
    assert state(world, other)["run"] == "degraded"
    assert state(world, run)["packets"] == ["unknown: open"]


def test_credential_refused_is_never_retried(world: World) -> None:
    run, attempt = sent(world)
    world.provider.drop(world.sent[attempt.pk])
    assert world.answer(attempt, Meaning.NOT_AUTHORIZED) == "dead"
    assert state(world, run)["packets"] == ["dead: open"]


def test_tries_are_capped(world: World) -> None:
    run = approved(world)
    for _ in range(3):
        world.advance(timedelta(seconds=20))
        attempt = world.claim(world.commands[0])
        world.send(attempt)
        world.provider.drop(world.sent[attempt.pk])
        world.answer(attempt, Meaning.NOT_EXECUTED)
    assert state(world, run)["commands"] == ["dead(answer), none"]
    assert state(world, run)["attempts"] == ["answered"] * 3


def test_the_worker_of_the_first_stage_is_lost(world: World) -> None:
    """The stage is due again; the run has begun all the same, and never goes back to *queued*."""
    run = world.start_run()
    step = world.step(run, "read")
    rows.moved(step, "start", world.now)
    world.settle(run)
    step.release(at=world.now)
    world.settle(run)
    assert state(world, run)["steps"] == ["pending", "pending", "pending"]
    assert state(world, run)["run"] == "running"
    world.work(step)
    assert state(world, run)["steps"] == ["completed", "pending", "pending"]
