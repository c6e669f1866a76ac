"""The lives that the design names: each ends in a well-defined state of every row, asserted row by row."""

from datetime import timedelta
from typing import Any

import pytest

from tests import rows
from tests.model import invariants
from tests.model.people import Refused
from tests.model.provider import SETTLE_TIME
from tests.model.world import World
from workflows.classify import Meaning
from workflows.enums import OnExpiry
from workflows.models import Attempt, Run

MINUTE = timedelta(minutes=1)


@pytest.fixture
def world() -> World:
    return World()


def asked(world: World, **how: Any) -> Run:
    """A run whose refund waits for people."""
    run = world.start_run()
    world.work(world.step(run, "read"))
    world.propose(run, **how)
    return run


def approved(world: World, **how: Any) -> Run:
    run = asked(world, **how)
    world.vote(world.proposals[-1], "ann")
    if world.proposals[-1].needed == 2:
        world.vote(world.proposals[-1], "ben")
    return run


def sent(world: World) -> tuple[Run, Attempt]:
    run = approved(world)
    attempt = world.claim(world.commands[-1])
    world.send(attempt)
    return run, attempt


def unknown(world: World, *, took_effect: bool = False) -> tuple[Run, Attempt]:
    """Sent, and no answer within the lease."""
    run, attempt = sent(world)
    if took_effect:
        world.provider.apply(world.sent[attempt.pk])
    world.advance(rows.LEASE)
    world.lose_lease(attempt.command)
    return run, attempt


def finish(world: World, run: Run) -> None:
    """The last stage tells the requester."""
    world.work(world.step(run, "tell"))


def state(world: World, run: Run) -> dict[str, Any]:
    """Every row of the run, in one word each; reasons in brackets."""
    invariants.check(world)
    steps = [f"waiting({s.waiting_for})" if s.waiting_for else s.status for s in world.steps[run.pk]]
    commands = [c for c in world.commands if c.run == run]
    return {
        "run": f"{run.status}({run.outcome})" if run.outcome else run.status,
        "steps": steps,
        "proposals": [p.status for p in world.proposals if p.run_id == run.pk],
        "commands": [_command(c) for c in commands],
        "attempts": [a.status for a in world.attempts if a.command in commands],
        "packets": [f"{p.cause}: {p.status}" for p in world.packets if p.run == run],
        "effects": sum(len(world.provider.effects_of(c.idempotency_key)) for c in commands),
    }


def _command(command: Any) -> str:
    why = command.void_reason or command.hold_reason or command.settled_by
    return f"{command.status}({why}), {command.effect}" if why else f"{command.status}, {command.effect}"


# -- the quorum
# ---------------------------------------------------------------------------------------------


def test_reviewer_deactivated_before_the_quorum_of_two_is_met(world: World) -> None:
    run = asked(world, needed=2)
    world.vote(world.proposals[0], "ann")
    world.active["ann"] = False
    world.vote(world.proposals[0], "ben")
    assert state(world, run) == {
        "run": "waiting_for_approval", "steps": ["completed", "waiting(approval)", "pending"],
        "proposals": ["pending"], "commands": [], "attempts": [], "packets": [], "effects": 0,
    }  # fmt: skip
    world.vote(world.proposals[0], "cleo")
    assert state(world, run)["proposals"] == ["approved"]


def test_reviewer_deactivated_after_the_quorum_of_two_was_met(world: World) -> None:
    run = approved(world, needed=2)
    attempt = world.claim(world.commands[0])
    world.active["ben"] = False
    assert world.send(attempt) == "void"
    assert state(world, run) == {
        "run": "waiting_for_approval", "steps": ["completed", "waiting(approval)", "pending"],
        "proposals": ["invalidated", "pending"], "commands": ["void(reviewer), none"], "attempts": ["released"],
        "packets": [], "effects": 0,
    }  # fmt: skip
    assert world.proposals[1].supersedes == world.proposals[0]
    assert world.proposals[1].idempotency_key == world.proposals[0].idempotency_key


# -- time
# ---------------------------------------------------------------------------------------------------


def test_approved_at_the_last_second_and_execute_by_passes(world: World) -> None:
    run = asked(world)
    world.advance(rows.DECIDE_WITHIN - timedelta(seconds=1))
    world.vote(world.proposals[0], "ann")
    world.advance(rows.EXECUTE_WITHIN)
    assert world.send(world.claim(world.commands[0])) == "void"
    assert state(world, run) == {
        "run": "manual_repair", "steps": ["completed", "waiting(person)", "pending"], "proposals": ["lapsed"],
        "commands": ["void(lapsed), none"], "attempts": ["released"], "packets": ["lapsed: open"], "effects": 0,
    }  # fmt: skip
    world.ask_again(world.step(run))
    assert state(world, run)["run"] == "waiting_for_approval"
    assert state(world, run)["packets"] == ["lapsed: resolved"]


def test_a_click_in_the_instant_of_expiry_says_expired_and_records_nobody(world: World) -> None:
    run = asked(world)
    world.advance(rows.DECIDE_WITHIN)
    with pytest.raises(Refused, match="expired"):
        world.vote(world.proposals[0], "ann")
    assert world.votes[world.proposals[0].pk] == {}
    assert state(world, run)["proposals"] == ["pending"]


@pytest.mark.parametrize(
    ("on_expiry", "run_ends", "step", "last", "packets"),
    [
        (OnExpiry.MANUAL_QUEUE, "manual_repair", "waiting(person)", "pending", ["expired: open"]),
        (OnExpiry.ESCALATE, "manual_repair", "waiting(person)", "pending", ["expired: open"]),
        (OnExpiry.FAIL, "failed(failed)", "failed", "completed", []),
        (OnExpiry.CANCEL, "cancelled(cancelled)", "cancelled", "completed", []),
    ],
)
def test_nobody_decides(
    world: World, on_expiry: OnExpiry, run_ends: str, step: str, last: str, packets: list[str]
) -> None:
    run = asked(world, on_expiry=on_expiry)
    world.advance(rows.DECIDE_WITHIN)
    world.expire(world.proposals[0])
    if run.status == "running":
        finish(world, run)
    assert state(world, run) == {
        "run": run_ends, "steps": ["completed", step, last],
        "proposals": ["expired"], "commands": [], "attempts": [], "packets": packets, "effects": 0,
    }  # fmt: skip


def test_data_supplied_after_expiry(world: World) -> None:
    run = world.start_run()
    world.work(world.step(run, "read"), "data")
    step = world.step(run, "read")
    wait_id = step.wait_id
    assert state(world, run)["run"] == "waiting_for_data"
    world.advance(timedelta(hours=1))
    with pytest.raises(Refused, match="wait_over"):
        world.supply(step, wait_id)
    world.expire_wait(step)
    with pytest.raises(Refused, match="wait_over"):
        world.supply(step, wait_id)
    assert state(world, run) == {
        "run": "manual_repair", "steps": ["waiting(person)", "pending", "pending"], "proposals": [], "commands": [],
        "attempts": [], "packets": ["expired: open"], "effects": 0,
    }  # fmt: skip


def test_data_supplied_in_time_makes_the_run_go_on_and_not_begin_anew(world: World) -> None:
    run = world.start_run()
    world.work(world.step(run, "read"), "data")
    world.supply(world.step(run, "read"), world.step(run, "read").wait_id)
    assert state(world, run)["run"] == "running"
    assert state(world, run)["steps"] == ["pending", "pending", "pending"]


# -- policy, freeze
# -----------------------------------------------------------------------------------------


def test_policy_bump_while_claimed(world: World) -> None:
    run = approved(world)
    attempt = world.claim(world.commands[0])
    world.policy_version += 1
    assert world.send(attempt) == "void"
    assert state(world, run) == {
        "run": "manual_repair", "steps": ["completed", "waiting(person)", "pending"], "proposals": ["invalidated"],
        "commands": ["void(policy), none"], "attempts": ["released"], "packets": ["policy: open"], "effects": 0,
    }  # fmt: skip


def test_policy_bump_while_sent_changes_nothing(world: World) -> None:
    run, attempt = sent(world)
    world.policy_version += 1
    world.provider.apply(world.sent[attempt.pk])
    world.answer(attempt, Meaning.CONFIRMED)
    finish(world, run)
    assert state(world, run) == {
        "run": "completed(done)", "steps": ["completed"] * 3, "proposals": ["consumed"],
        "commands": ["confirmed(answer), happened"], "attempts": ["answered"], "packets": [], "effects": 1,
    }  # fmt: skip


def test_freeze_during_retry_wait_lifted_after_the_window(world: World) -> None:
    run, attempt = sent(world)
    world.provider.drop(world.sent[attempt.pk])
    assert world.answer(attempt, Meaning.NOT_EXECUTED) == "retry_wait"
    assert run.status == "waiting_for_retry"
    world.frozen = True
    assert world.look_again(attempt.command) == "held"
    assert state(world, run) == {
        "run": "degraded", "steps": ["completed", "waiting(provider)", "pending"], "proposals": ["approved"],
        "commands": ["held(freeze), none"], "attempts": ["answered"], "packets": [], "effects": 0,
    }  # fmt: skip
    world.advance(rows.EXECUTE_WITHIN)
    world.frozen = False
    assert world.look_again(attempt.command) == "void"
    assert state(world, run) == {
        "run": "manual_repair", "steps": ["completed", "waiting(person)", "pending"], "proposals": ["lapsed"],
        "commands": ["void(lapsed), none"], "attempts": ["answered"], "packets": ["lapsed: open"], "effects": 0,
    }  # fmt: skip


def test_freeze_lifted_within_the_window(world: World) -> None:
    run = approved(world)
    world.frozen = True
    assert world.send(world.claim(world.commands[0])) == "held"
    world.frozen = False
    assert world.look_again(world.commands[0]) == "ready"
    assert world.send(world.claim(world.commands[0])) == "sent"
    assert state(world, run)["run"] == "executing"


# -- unknown
# ------------------------------------------------------------------------------------------------


def test_unknown_settled_as_did_not_happen_after_execute_by(world: World) -> None:
    run, attempt = unknown(world)
    assert state(world, run)["run"] == "unknown"
    assert state(world, run)["packets"] == ["unknown: open"]
    world.advance(rows.EXECUTE_WITHIN)
    assert world.reconcile(attempt.command) == "void"
    assert state(world, run) == {
        "run": "manual_repair", "steps": ["completed", "waiting(person)", "pending"], "proposals": ["lapsed"],
        "commands": ["void(lapsed), none"], "attempts": ["no_answer"],
        "packets": ["unknown: open", "lapsed: open"], "effects": 0,
    }  # fmt: skip


def test_unknown_found_to_have_happened(world: World) -> None:
    run, attempt = unknown(world, took_effect=True)
    assert world.reconcile(attempt.command) == "confirmed"
    finish(world, run)
    assert state(world, run) == {
        "run": "completed(done)", "steps": ["completed"] * 3, "proposals": ["consumed"],
        "commands": ["confirmed(lookup), happened"], "attempts": ["no_answer"], "packets": ["unknown: resolved"],
        "effects": 1,
    }  # fmt: skip


def test_not_found_before_the_settle_time_settles_nothing(world: World) -> None:
    run, attempt = unknown(world)
    assert world.reconcile(attempt.command) == "unknown"
    world.provider.apply(world.sent[attempt.pk])  # it was still on its way
    assert world.reconcile(attempt.command) == "confirmed"
    assert state(world, run)["effects"] == 1


def test_cancel_while_unknown_and_it_did_not_happen(world: World) -> None:
    run, attempt = unknown(world)
    assert world.cancel_run(run) == "cancel_requested"
    assert state(world, run)["run"] == "unknown"
    world.advance(SETTLE_TIME)
    assert world.reconcile(attempt.command) == "cancelled"
    assert state(world, run) == {
        "run": "cancelled(cancelled)", "steps": ["completed", "cancelled", "cancelled"], "proposals": ["withdrawn"],
        "commands": ["cancelled(lookup), none"], "attempts": ["no_answer"], "packets": ["unknown: resolved"],
        "effects": 0,
    }  # fmt: skip


def test_cancel_while_unknown_and_it_had_happened(world: World) -> None:
    """The wish came too late: the run ends with what the user got, not as cancelled."""
    run, attempt = unknown(world, took_effect=True)
    world.cancel_run(run)
    assert world.reconcile(attempt.command) == "confirmed"
    finish(world, run)
    assert state(world, run) == {
        "run": "completed(done)", "steps": ["completed"] * 3, "proposals": ["consumed"],
        "commands": ["confirmed(lookup), happened"], "attempts": ["no_answer"], "packets": ["unknown: resolved"],
        "effects": 1,
    }  # fmt: skip


def test_operator_sends_again_with_a_second_person(world: World) -> None:
    world.second_person_needed = True
    run, attempt = unknown(world)
    with pytest.raises(Refused, match="too_early"):
        world.attest(attempt.command, "otto", happened=False)
    world.advance(SETTLE_TIME)
    assert world.attest(attempt.command, "otto", happened=False) == "awaiting_second"
    assert state(world, run)["packets"] == ["unknown: awaiting_second"]
    with pytest.raises(Refused, match="same_person"):
        world.attest(attempt.command, "otto", happened=False)
    assert world.attest(attempt.command, "olga", happened=False) == "ready"
    assert state(world, run) == {
        "run": "executing", "steps": ["completed", "waiting(provider)", "pending"], "proposals": ["approved"],
        "commands": ["ready, none"], "attempts": ["no_answer"], "packets": ["unknown: resolved"], "effects": 0,
    }  # fmt: skip
    again = world.claim(attempt.command)
    world.send(again)
    world.provider.apply(world.sent[again.pk])
    world.answer(again, Meaning.CONFIRMED)
    finish(world, run)
    assert state(world, run) == {
        "run": "completed(done)", "steps": ["completed"] * 3, "proposals": ["consumed"],
        "commands": ["confirmed(answer), happened"], "attempts": ["no_answer", "answered"],
        "packets": ["unknown: resolved"], "effects": 1,
    }  # fmt: skip
    assert [request.key for request in world.provider.requests] == [attempt.command.idempotency_key] * 2


def test_a_refused_second_send_says_nothing_about_the_first(world: World) -> None:
    world.provider.remembers_keys = True
    run, attempt = unknown(world)
    again = world.send_again(attempt.command)
    world.provider.drop(world.sent[again.pk])
    assert world.answer(again, Meaning.REFUSED) == "unknown"
    world.provider.apply(world.sent[attempt.pk])
    assert world.reconcile(attempt.command) == "confirmed"
    assert state(world, run)["commands"] == ["confirmed(lookup), happened"]
    assert state(world, run)["attempts"] == ["no_answer", "no_answer"]


def test_lease_lost_and_the_late_answer_comes(world: World) -> None:
    run, attempt = unknown(world, took_effect=True)
    assert world.answer(attempt, Meaning.CONFIRMED) == "late"
    assert state(world, run)["commands"] == ["unknown, unknown"], "a stale worker changes no state"
    assert world.reconcile(attempt.command) == "confirmed"
    finish(world, run)
    assert state(world, run) == {
        "run": "completed(done)", "steps": ["completed"] * 3, "proposals": ["consumed"],
        "commands": ["confirmed(late_answer), happened"], "attempts": ["no_answer"],
        "packets": ["unknown: resolved"], "effects": 1,
    }  # fmt: skip


def test_late_no_to_an_earlier_attempt_says_nothing_about_the_last(world: World) -> None:
    run, first = unknown(world)
    world.advance(SETTLE_TIME)
    world.reconcile(first.command)
    last = world.claim(first.command)
    world.send(last)
    world.advance(rows.LEASE)
    world.lose_lease(first.command)
    world.answer(first, Meaning.NOT_SENT)
    assert world.reconcile(first.command) == "unknown"
    assert state(world, run)["attempts"] == ["no_answer", "no_answer"]


def test_lease_lost_before_the_send(world: World) -> None:
    run = approved(world)
    slow = world.claim(world.commands[0])
    world.advance(rows.LEASE)
    assert world.lose_lease(slow.command) == "ready"
    quick = world.claim(slow.command)
    with pytest.raises(Refused, match="stale"):
        world.send(slow)
    assert world.send(quick) == "sent"
    assert state(world, run)["attempts"] == ["released", "sent"]
