"""After a restored backup: what was settled before says nothing about what came after, and no run acts by itself."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from pydantic import BaseModel

from approvals.models import Proposal
from approvals.refusals import Expired
from audit.models import Event
from common.clock import db_clock
from tests.workflows.conftest import AGENT, Desk, state
from tests.workflows.counter import Counter, open_counter, takes_two
from tests.workflows.later import SWEEP, age, as_superuser, end_of, fresh, look_up, open_packets, recover
from tests.workflows.test_carry_over import plan
from tests.workflows.test_freezing import ROOT, release, unfreeze
from tests.workflows.test_restore import restore
from tests.workflows.test_worker_answers import CONFIRMED, answer
from tests.workflows.test_worker_unknown import HAPPENED, NOT_FOUND, SETTLED, sent, unknown
from tests.workflows.toy import PAID
from workflows.actions.cancelling import cancel_run
from workflows.authoring import StageContext, Verdict
from workflows.models import Command, Hold, Run
from workflows.results import RateLimited, StageResult, WaitForData
from workflows.worker.restore import NotAllRestored, after_restore
from workflows.worker.store import store_answer

pytestmark = pytest.mark.django_db


def lift(hold: Hold, desk: Desk) -> None:
    """All goes on by itself that does."""
    unfreeze(hold)
    release()
    for _ in range(2):
        desk.advance()
        desk.work()


# -- what was known before ------------------------------------------------------------------------------------------


def ready_by_a_late_no(desk: Desk) -> Command:
    """Its only request was refused late, so it was ready again when the backup was made."""
    command, claim = sent(desk)
    age(command.run_id, SETTLED, "workflows_command")
    recover()
    store_answer(claim, answer(429), by=SWEEP, clock=db_clock)
    assert look_up(command)
    assert fresh(command).status == "ready"
    return command


def test_a_late_no_from_before_settles_nothing(desk: Desk) -> None:
    """After the backup it may have been sent again, and paid."""
    command = ready_by_a_late_no(desk)
    hold = restore()
    assert not look_up(command)
    assert fresh(command).status == "unknown"
    assert desk.till.lookups == 1, "the provider is asked"
    lift(hold, desk)
    assert fresh(command).status == "unknown"
    assert desk.till.calls == []


def test_a_late_yes_from_before_settles_it(desk: Desk) -> None:
    command, claim = sent(desk)
    age(command.run_id, SETTLED, "workflows_command")
    recover()
    store_answer(claim, PAID, by=SWEEP, clock=db_clock)
    restore()
    assert look_up(command)
    assert end_of(command) == CONFIRMED


def test_what_was_unknown_is_in_doubt_anew(desk: Desk) -> None:
    """Not found since the backup, and sent again a moment before the crash: *not found* counts from now on only."""
    command = unknown(desk)
    age(command.run_id, SETTLED, "workflows_command")
    before = fresh(command)
    assert after_restore(by=ROOT, clock=db_clock).in_doubt == 1
    after = fresh(command)
    assert (after.status, after.restored, after.failure_code) == ("unknown", True, "restored")
    assert after.state_version == before.state_version + 1
    assert after.last_sent_at > before.last_sent_at
    event = Event.objects.filter(kind="command.unknown", subject_id=command.pk).latest("id")
    assert (event.from_state, event.to_state, event.reason) == ("unknown", "unknown", "restored")
    assert open_packets(command.run_id) == ["command_unknown"]
    desk.till.findings = [NOT_FOUND, NOT_FOUND]
    assert not look_up(command), "a request made just before may still be on its way"
    age(command.run_id, SETTLED, "workflows_command")
    assert look_up(command)
    assert fresh(command).status == "held"


def test_and_only_once(desk: Desk) -> None:
    command = unknown(desk)
    restore()
    first = fresh(command)
    found = after_restore(by=ROOT, clock=db_clock)
    assert (found.in_doubt, found.asked_anew, found.stopped) == (0, 0, 0)
    assert (fresh(command).state_version, fresh(command).last_sent_at) == (
        first.state_version,
        first.last_sent_at,
    )


def test_a_reused_key_is_still_for_a_person(desk: Desk) -> None:
    command = desk.approved()
    desk.till.answers = [answer(422, code="key_reused")]
    desk.work()
    assert fresh(command).failure_code == "key_reused"
    restore()
    assert (fresh(command).restored, fresh(command).failure_code) == (True, "key_reused")
    assert open_packets(command.run_id) == ["command_key_reused"]


@pytest.fixture
def counter(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Counter:
    """It takes two; the first has said that it did not happen, and then came the backup, the crash, and a while."""
    counter = open_counter(desk)
    takes_two(monkeypatch)
    counter.wait_until_settled()
    counter.say("did_not_happen")
    restore()
    counter.wait_until_settled()
    as_superuser("UPDATE workflows_attestation SET at = at - interval '1 hour'")
    return counter


def test_a_word_from_before_does_not_count(counter: Counter) -> None:
    assert not counter.say("did_not_happen", counter.otto).settled
    assert fresh(counter.command).status == "unknown"


def test_nor_is_it_contradicted(counter: Counter) -> None:
    assert not counter.say("happened", counter.otto).settled


def test_the_same_person_may_say_the_same_again_and_then_it_counts(counter: Counter) -> None:
    assert not counter.say("did_not_happen").settled
    assert counter.say("did_not_happen", counter.otto).settled


# -- runs that had not asked yet ------------------------------------------------------------------------------------


class Which(BaseModel):
    which: str


def waits_for_data(_: StageContext) -> StageResult:
    return WaitForData("Which?", Which.model_json_schema(), timedelta(hours=1))


def is_limited(_: StageContext) -> StageResult:
    raise RateLimited(timedelta(seconds=7))


ON_THEIR_WAY: dict[str, Callable[[StageContext], StageResult] | None] = {
    "queued": None, "waiting_for_data": waits_for_data, "waiting_for_retry": is_limited,
}  # fmt: skip


@pytest.fixture(params=ON_THEIR_WAY)
def on_its_way(request: pytest.FixtureRequest, desk: Desk) -> Run:
    """A run whose rule would approve, in each of the states before it asks."""
    desk.till.verdict = Verdict("auto", "toy.rule", "small")
    stage = ON_THEIR_WAY[request.param]
    if stage is not None:
        desk.till.stages["pay"] = stage
    run = desk.start(workflow="toy-execute")
    if stage is not None:
        desk.advance()
    assert Run.objects.get(pk=run.pk).status == request.param
    return run


def test_a_run_on_its_way_does_not_act_by_itself(desk: Desk, on_its_way: Run) -> None:
    """Nobody was asked, and it may have been done after the backup."""
    found = after_restore(by=ROOT, clock=db_clock)
    assert found.stopped == 1
    desk.till.stages.clear()
    as_superuser("UPDATE workflows_step SET due_at = now() WHERE due_at IS NOT NULL")
    lift(found.freeze, desk)
    assert state(on_its_way.pk) == (
        "manual_repair",
        {"read": "completed", "judge": "completed", "pay": "waiting", "tell": "pending"},
    )
    assert open_packets(on_its_way.pk) == ["restored"]
    assert not Proposal.objects.exists()
    assert desk.till.calls == []
    assert after_restore(by=ROOT, clock=db_clock).stopped == 0


def test_a_person_ends_it(desk: Desk, on_its_way: Run) -> None:
    restore()
    cancel_run(tenant_id=desk.tenant.pk, run_id=on_its_way.pk, reason="it was done", by=AGENT, clock=db_clock)
    assert state(on_its_way.pk)[0] == "cancelled"
    assert open_packets(on_its_way.pk) == []


def test_a_person_ends_it_also_where_an_earlier_action_happened(desk: Desk) -> None:
    """A run of two actions: one was on its way, and the other comes after it."""
    command = desk.approved()
    as_superuser(
        "UPDATE workflows_step SET kind = 'side_effect' WHERE run_id = %s AND key = 'tell'", command.run_id
    )
    found = after_restore(by=ROOT, clock=db_clock)
    assert (found.in_doubt, found.stopped) == (1, 1)
    desk.till.findings = [HAPPENED]
    assert look_up(command)
    lift(found.freeze, desk)
    assert state(command.run_id)[0] == "manual_repair"
    assert "tell" not in desk.till.stage_calls
    named: dict[str, Any] = {"tenant_id": desk.tenant.pk, "by": AGENT, "clock": db_clock}
    assert cancel_run(run_id=command.run_id, reason="done too", **named) == "cancel_requested"
    run = Run.objects.get(pk=command.run_id)
    assert (run.status, run.outcome) == ("cancelled", "partial")
    assert open_packets(run.pk) == []


def test_what_was_to_be_changed_is_not_changed_by_its_proposer_alone(desk: Desk) -> None:
    """The new version may have been sent, approved and carried out in the time that is lost."""
    old = plan(desk).proposal
    desk.decide(old, "request_changes")
    assert Proposal.objects.get(pk=old.pk).status == "changes_requested"
    restore()
    assert Proposal.objects.get(pk=old.pk).status == "expired"
    assert state(old.run_id) == ("manual_repair", {"action": "waiting"})
    assert open_packets(old.run_id) == ["restored"]
    with pytest.raises(Expired):
        plan(desk, supersedes=old, arguments={"amount": "9.00"})


def test_a_run_that_only_proposes_goes_on(desk: Desk) -> None:
    """Nothing is ever sent for it."""
    run = desk.start()
    as_superuser("UPDATE workflows_run SET stage = 'suggest' WHERE id = %s", run.pk)
    assert after_restore(by=ROOT, clock=db_clock).stopped == 0
    desk.advance()
    assert state(run.pk)[0] == "waiting_for_approval"


# -- what fails is told ---------------------------------------------------------------------------------------------


@pytest.fixture
def impatient() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '100ms'")
    yield
    connection.close()


@pytest.mark.usefixtures("impatient")
def test_what_could_not_be_put_in_doubt_is_told_and_nothing_may_start(desk: Desk) -> None:
    first, second = desk.approved(order="1"), desk.approved(order="2")
    with transaction.atomic(using="owner"):
        with connections["owner"].cursor() as cursor:
            cursor.execute("SELECT id FROM workflows_command WHERE id = %s FOR UPDATE", [first.pk])
        with pytest.raises(CommandError, match=r"1 actions, questions or steps .* START NO WORKER"):
            call_command("after_restore", stdout=StringIO())
        with pytest.raises(NotAllRestored) as told:
            after_restore(by=ROOT, clock=db_clock)
    assert told.value.left == 1
    assert told.value.freeze.status == "in_force"
    assert [fresh(first).status, fresh(second).status] == ["ready", "unknown"]
    said = StringIO()
    call_command("after_restore", stdout=said)
    assert "1 actions are in doubt" in said.getvalue()
    assert fresh(first).status == "unknown"
