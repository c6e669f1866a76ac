"""After a restored backup: everything that has not ended is unknown until reconciled, and nothing is sent meanwhile."""

from io import StringIO

import pytest
from django.core.management import call_command

from approvals.models import Proposal
from common.clock import db_clock
from repair.models import RepairPacket
from tests.workflows.conftest import Desk
from tests.workflows.later import age, end_of, fresh, look_up
from tests.workflows.test_freezing import HELD, ROOT, frozen, hold_back, release, unfreeze
from tests.workflows.test_worker_answers import CONFIRMED, answer
from tests.workflows.test_worker_unknown import HAPPENED, NOT_FOUND, SETTLED, claimed, sent
from tests.workflows.toy import ToyPay
from workflows.models import Attempt, Command, Hold
from workflows.worker.restore import after_restore

pytestmark = pytest.mark.django_db
DOUBT = {
    "command": "unknown", "effect": "unknown", "proposal": "approved", "step": "waiting(provider)", "run": "unknown",
    "packets": ["command_restored"],
}  # fmt: skip


def restore() -> Hold:
    return after_restore(by=ROOT, clock=db_clock).freeze


def in_retry_wait(desk: Desk) -> Command:
    command = desk.approved()
    desk.till.answers = [answer(429)]
    desk.work()
    return command


def held(desk: Desk) -> Command:
    command = desk.approved()
    frozen(desk)
    hold_back()
    return command


STATES = {
    "ready": lambda desk: desk.approved(),
    "claimed": lambda desk: claimed(desk)[0],
    "sent": lambda desk: sent(desk)[0],
    "retry_wait": in_retry_wait,
    "held": held,
}


@pytest.mark.parametrize("state", STATES)
def test_whatever_has_not_ended_is_in_doubt(desk: Desk, state: str) -> None:
    command = STATES[state](desk)
    assert fresh(command).status == state
    calls = len(desk.till.calls)
    restore()
    assert end_of(command) == DOUBT
    assert not Attempt.objects.filter(ended_at__isnull=True).exists()
    assert desk.work() == 0
    assert len(desk.till.calls) == calls


def test_what_had_ended_stays(desk: Desk) -> None:
    command = desk.approved()
    desk.work()
    restore()
    assert fresh(command).status == "confirmed"


def test_done_after_the_backup_is_found_and_not_done_again(desk: Desk) -> None:
    command = desk.approved()
    restore()
    desk.till.findings = [HAPPENED]
    assert look_up(command)
    assert end_of(command) == CONFIRMED
    assert desk.till.calls == []


def test_not_done_is_held_until_the_freeze_is_lifted_and_then_done_once(desk: Desk) -> None:
    command = desk.approved()
    hold = restore()
    desk.till.findings = [NOT_FOUND, NOT_FOUND]
    assert not look_up(command), "a request made just before may still be on its way"
    age(command.run_id, SETTLED, "workflows_command")
    assert look_up(command)
    assert end_of(command) == HELD
    unfreeze(hold)
    release()
    desk.work()
    assert end_of(command) == CONFIRMED
    assert len(desk.till.calls) == 1


def test_several_of_one_record_may_be_in_doubt_and_go_one_after_the_other(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyPay, "target", lambda self, arguments: "customer:7")
    monkeypatch.setattr(ToyPay, "business_key", lambda self, arguments: f"pay:{arguments.order}")
    monkeypatch.setattr(ToyPay, "pins", lambda self, arguments, facts: {})
    both = [desk.approved(order="1"), desk.approved(order="2")]
    hold = restore()
    assert [fresh(command).status for command in both] == ["unknown", "unknown"]
    desk.till.findings = [NOT_FOUND] * 2
    for command in both:
        age(command.run_id, SETTLED, "workflows_command")
        assert look_up(command)
    unfreeze(hold)
    release()
    assert desk.work() == 1, "one in flight per record"
    assert desk.work() == 1
    assert [fresh(command).status for command in both] == ["confirmed", "confirmed"]


def test_open_questions_are_asked_anew(desk: Desk) -> None:
    """In the lost time they may have been answered, and acted on."""
    proposal = desk.proposed()
    restore()
    assert Proposal.objects.get(pk=proposal.pk).status == "invalidated"
    assert RepairPacket.objects.get(run_id=proposal.run_id).cause == "proposal_invalidated"


def test_run_twice_it_changes_nothing_more(desk: Desk) -> None:
    command = desk.approved()
    restore()
    version = fresh(command).state_version
    found = after_restore(by=ROOT, clock=db_clock)
    assert (found.in_doubt, found.asked_anew) == (0, 0)
    assert fresh(command).state_version == version


def test_at_the_command_line(desk: Desk) -> None:
    desk.approved()
    desk.proposed(order="7")
    said = StringIO()
    call_command("after_restore", stdout=said)
    hold = Hold.objects.get()
    assert "1 actions are in doubt" in said.getvalue()
    assert "1 open questions" in said.getvalue()
    listed = StringIO()
    call_command("freeze", stdout=listed)
    assert str(hold.pk) in listed.getvalue()
    call_command("lift", str(hold.pk), "--why", "all reconciled", stdout=said)
    assert Hold.objects.get().status == "lifting"


def test_the_kill_switch_at_the_command_line(desk: Desk) -> None:
    command = desk.approved()
    said = StringIO()
    call_command(
        "freeze", "--tenant", "harbour", "--operation", "toy.pay", "--why", "looks wrong", stdout=said
    )
    assert "In flight at that instant: 0 sent, 0 of unknown outcome." in said.getvalue()
    desk.work()
    hold_back()
    assert end_of(command) == HELD
