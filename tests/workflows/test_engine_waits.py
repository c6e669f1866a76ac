"""Waits and events: data that comes, or does not; events of one record in their order; waits that are over."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from access.enums import Role
from access.models import Membership
from approvals.actions import expire_due
from approvals.models import Proposal
from audit.models import Event
from common.clock import db_clock
from common.ids import new_id
from repair.models import RepairPacket
from tests.factories import make_run
from tests.workflows.conftest import AGENT, Desk, state
from tests.workflows.later import SWEEP, age, open_packets
from tests.workflows.test_engine_stages import ran, step
from tests.workflows.together import at_once
from tests.workflows.toy import ToyFlow
from workflows.actions.cancelling import DataRefused, WaitOver, cancel_run, supply_data
from workflows.actions.overdue import handle_overdue
from workflows.actions.runs import EventConflict, InvalidRunInput, Source, Started, start_run
from workflows.authoring import Done, ExceptionCase, OnExpiry, WaitForData
from workflows.enums import RunStatus
from workflows.models import Document, Run, SourceEvent, Step
from workflows.operations import Verdict
from workflows.selectors import envelope

pytestmark = pytest.mark.django_db

FIELDS = {"order": {"type": "string"}, "times": {"type": "integer"}, "sure": {"type": "boolean"}}
ASK = WaitForData("Which order?", {"properties": FIELDS, "required": [*FIELDS]}, timedelta(hours=1))
GOOD = {"order": "7", "times": 2, "sure": True}


@pytest.fixture
def contract(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Changes the toy's contract for this test."""

    def change(**fields: Any) -> None:
        monkeypatch.setattr(ToyFlow, "contract", replace(ToyFlow.contract, **fields))

    return change


def answer(desk: Desk, run: Run, data: Any, **changes: Any) -> Run:
    wait = {"tenant_id": desk.tenant.pk, "run_id": run.pk, "wait_id": run.wait_id} | changes
    return supply_data(**wait, data=data, by=AGENT, clock=db_clock)


def overdue() -> int:
    return handle_overdue(by=SWEEP, clock=db_clock)


# -- data --------------------------------------------------------------------------------------------------------


def test_data_that_was_asked_for_lets_the_run_go_on(desk: Desk) -> None:
    run = ran(desk, judge=ASK)
    shown = envelope(run)
    assert (shown["status"], shown["next_action"]) == ("waiting_for_data", "provide_data")
    assert shown["waiting"]["for"] == "data"
    assert shown["waiting"]["asks"] == {"question": "Which order?", "schema": dict(ASK.schema)}
    desk.till.stages["judge"] = lambda context: Done(dict(context.data))
    answer(desk, run, GOOD)
    assert state(run.pk)[0] == "running"
    desk.advance()
    assert state(run.pk)[0] == "waiting_for_approval"
    assert Document.objects.filter(run_id=run.pk, kind="result.judge").count() == 1


@pytest.mark.parametrize(
    "data",
    [
        {}, {"order": "7"}, GOOD | {"more": 1}, GOOD | {"order": 7}, GOOD | {"times": "2"}, GOOD | {"times": True},
        GOOD | {"times": 2.5}, GOOD | {"sure": 1}, GOOD | {"sure": None},
    ],
    ids=repr,
)  # fmt: skip
def test_data_that_does_not_fit_is_refused_and_the_run_still_waits(desk: Desk, data: Any) -> None:
    run = ran(desk, judge=ASK)
    with pytest.raises(DataRefused):
        answer(desk, run, data)
    assert state(run.pk)[0] == "waiting_for_data"
    assert not Document.objects.filter(kind="data.judge").exists()


def test_an_answer_names_the_wait_that_it_answers(desk: Desk) -> None:
    run = ran(desk, judge=ASK)
    for wrong in (new_id(), step(run, "pay").wait_id):
        with pytest.raises(WaitOver):
            answer(desk, run, GOOD, wait_id=wrong)
    answer(desk, run, GOOD)
    with pytest.raises(WaitOver):  # a second answer to the same wait
        answer(desk, run, GOOD)


def test_data_that_comes_too_late_without_the_sweep(desk: Desk) -> None:
    run = ran(desk, judge=ASK)
    age(run.pk, 3601)
    with pytest.raises(WaitOver):
        answer(desk, run, GOOD)


@pytest.mark.parametrize(
    ("on_expiry", "status", "steps", "packets"),
    [
        (OnExpiry.MANUAL_QUEUE, "manual_repair", ("waiting", "pending"), ["data_not_supplied"]),
        (OnExpiry.FAIL, "failed", ("failed", "skipped"), []),
        (OnExpiry.CANCEL, "cancelled", ("cancelled", "cancelled"), []),
    ],
)  # fmt: skip
def test_data_that_does_not_come(
    desk: Desk, contract: Any, on_expiry: OnExpiry, status: str, steps: tuple[str, str], packets: list[str]
) -> None:
    """Nothing that would come after it is run then."""
    contract(on_expiry=on_expiry)
    run = ran(desk, judge=ASK)
    assert overdue() == 0
    age(run.pk, 3601)
    assert overdue() == 1
    desk.advance()
    assert (state(run.pk)[0], step(run, "judge").status, step(run, "pay").status) == (status, *steps)
    assert open_packets(run.pk) == packets
    assert desk.till.stage_calls == ["read", "judge"]


def test_data_that_does_not_come_ends_as_the_exception_table_says(desk: Desk, contract: Any) -> None:
    row = ExceptionCase(
        "data_not_supplied", "failed", "no_answer", "No answer came.", "toy-desk", may_submit_new=True
    )
    contract(exceptions=(*ToyFlow.contract.exceptions, row))
    run = ran(desk, judge=ASK)
    age(run.pk, 3601)
    overdue()
    ended = envelope(Run.objects.get(pk=run.pk))
    assert (ended["status"], ended["outcome"], ended["next_action"]) == ("failed", "no_answer", "submit_new")


# -- events ------------------------------------------------------------------------------------------------------


def event(desk: Desk, event_id: str = "e1", *, order: str = "1042", **source: Any) -> Started:
    return start_run(
        tenant_id=desk.tenant.pk, workflow="toy-pay", input={"order": order}, by=AGENT, clock=db_clock,
        source=Source("shop", event_id, **source),
    )  # fmt: skip


def test_the_same_event_again_is_the_same_run_and_is_counted(desk: Desk) -> None:
    first = event(desk)
    for _ in range(3):
        again = event(desk)
        assert (again.run.pk, again.created) == (first.run.pk, False)
    assert SourceEvent.objects.get().duplicates == 3
    assert Event.objects.filter(kind="run.duplicate_prevented").count() == 3
    assert (Run.objects.count(), Step.objects.count(), Document.objects.count()) == (1, 4, 1)


def test_the_same_event_with_other_input_is_a_conflict(desk: Desk) -> None:
    first = event(desk)
    with pytest.raises(EventConflict) as info:
        event(desk, order="7")
    assert info.value.details == {"run_id": str(first.run.pk)}
    assert SourceEvent.objects.get().duplicates == 0


def test_the_same_event_delivered_eight_times_at_once(desk: Desk) -> None:
    answers = at_once(8, lambda _: event(desk).created)
    assert answers == {"True": 1, "False": 7}
    assert (Run.objects.count(), SourceEvent.objects.get().duplicates) == (1, 7)


def test_input_that_does_not_fit_stores_nothing(desk: Desk) -> None:
    with pytest.raises(InvalidRunInput):
        start_run(
            tenant_id=desk.tenant.pk, workflow="toy-pay", input={"order": 7}, by=AGENT, clock=db_clock,
            source=Source("shop", "e1"),
        )  # fmt: skip
    assert not SourceEvent.objects.exists()


def in_record(desk: Desk, sequence: int) -> Run:
    return event(desk, f"e{sequence}", record="order-7", sequence=sequence).run


def cancel(desk: Desk, run: Run) -> None:
    cancel_run(tenant_id=desk.tenant.pk, run_id=run.pk, reason="x", by=AGENT, clock=db_clock)


def began(run: Run) -> bool:
    return step(run, "read").due_at is not None or step(run, "read").started_at is not None


def test_events_of_a_record_take_turns(desk: Desk) -> None:
    first, second = in_record(desk, 1), in_record(desk, 2)
    waiting = Run.objects.get(pk=second.pk)
    assert (waiting.status, waiting.on_expiry, waiting.waiting_until is not None) == (
        "queued",
        "manual_queue",
        True,
    )
    desk.advance()
    assert (began(first), began(second)) == (True, False)
    cancel(desk, first)
    assert began(second)
    desk.advance()
    assert state(second.pk)[0] == "waiting_for_approval"


def test_an_older_event_than_the_last_accepted_is_stale(desk: Desk) -> None:
    newest = in_record(desk, 5)
    for sequence in (4, 5):
        stale = event(desk, f"other{sequence}", record="order-7", sequence=sequence).run
        stale = Run.objects.get(pk=stale.pk)
        assert (stale.status, stale.outcome, envelope(stale)["next_action"]) == ("cancelled", "stale", "stop")
        moves = Event.objects.filter(run_id=stale.pk, subject_type="step").values_list("kind", flat=True)
        assert list(moves) == ["step.cancelled"] * 4
    assert began(newest)


def test_an_event_that_ends_out_of_turn_wakes_nobody(desk: Desk) -> None:
    """While one event of the record is worked on, neither a stale one nor a cancelled waiting one lets the next in."""
    live, waiting, last = in_record(desk, 1), in_record(desk, 5), in_record(desk, 6)
    in_record(desk, 3)  # stale: it ends at once
    assert not began(waiting)
    cancel(desk, waiting)
    assert not began(last)
    cancel(desk, live)
    assert began(last)


def test_a_new_event_and_the_end_of_the_one_before_it_do_not_miss_each_other(desk: Desk) -> None:
    for number in range(5):
        record = f"order-{number}"
        first = event(desk, f"a{number}", record=record, sequence=1).run

        def race(which: int, record: str = record, first: Run = first) -> str:
            if which:
                return str(event(desk, f"b-{record}", record=record, sequence=2).created)
            cancel(desk, first)
            return "ended"

        assert at_once(2, race) == {"True": 1, "ended": 1}
        assert began(Run.objects.get(source_record=record, source_sequence=2))


def test_a_turn_that_never_comes_goes_to_a_person(desk: Desk) -> None:
    in_record(desk, 1)
    second = in_record(desk, 2)
    age(second.pk, 24 * 3600 + 1)
    assert overdue() == 1
    assert state(second.pk)[0] == "manual_repair"
    assert open_packets(second.pk) == ["turn_never_came"]


# -- approvals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_expiry", "status", "after"),
    [
        (OnExpiry.MANUAL_QUEUE, "manual_repair", "pending"), (OnExpiry.FAIL, "failed", "skipped"),
        (OnExpiry.CANCEL, "cancelled", "cancelled"),
    ],
)  # fmt: skip
def test_an_approval_that_expired(
    desk: Desk, contract: Any, on_expiry: OnExpiry, status: str, after: str
) -> None:
    contract(on_expiry=on_expiry)
    proposal = desk.proposed()
    age(proposal.run_id, 4 * 3600 + 1)
    assert expire_due(clock=db_clock) == 1
    desk.advance()
    run = Run.objects.get(pk=proposal.run_id)
    assert (run.status, step(run, "tell").status) == (status, after)
    assert open_packets(run.pk) == (["approval_expired"] if status == "manual_repair" else [])
    assert run.failure_code == ("" if status == "manual_repair" else "approval_expired")
    assert desk.till.stage_calls == ["read", "judge", "pay"]


def test_a_wait_for_approval_is_not_prolonged_while_its_proposal_is_still_to_expire(desk: Desk) -> None:
    proposal = desk.proposed()
    age(proposal.run_id, 4 * 3600 + 1)
    before = step(Run.objects.get(pk=proposal.run_id), "pay").waiting_until
    overdue()
    run = Run.objects.get(pk=proposal.run_id)
    assert (step(run, "pay").waiting_until, run.status) == (before, "waiting_for_approval")
    expire_due(clock=db_clock)
    assert state(run.pk)[0] == "manual_repair"


def test_changes_requested_goes_to_a_person(desk: Desk) -> None:
    proposal = desk.proposed()
    desk.decide(proposal, "request_changes")
    assert Proposal.objects.get().status == "changes_requested"
    assert state(proposal.run_id)[0] == "manual_repair"
    assert open_packets(proposal.run_id) == ["changes_requested"]


def test_a_rejection_is_an_outcome_and_the_later_stages_run(desk: Desk) -> None:
    proposal = desk.proposed()
    desk.decide(proposal, "reject")
    desk.advance()
    run = Run.objects.get(pk=proposal.run_id)
    assert state(run.pk) == (
        "completed", {"read": "completed", "judge": "completed", "pay": "skipped", "tell": "completed"},
    )  # fmt: skip
    assert (run.outcome, run.user_message) == ("declined", "A person looked at it and declined.")


def test_when_nobody_may_decide_people_are_told(desk: Desk) -> None:
    Membership.objects.update(roles=[Role.OPERATOR])
    proposal = desk.proposed()
    assert open_packets(proposal.run_id) == ["nobody_eligible"]
    Membership.objects.update(roles=[Role.REVIEWER])
    desk.decide(proposal)
    assert open_packets(proposal.run_id) == []
    desk.till.verdict = Verdict("ask_two", "toy.two", "It is big.", group="An empty group")
    assert open_packets(desk.proposed(order="7").run_id) == ["nobody_eligible"]


# -- waits that are over -----------------------------------------------------------------------------------------


def test_a_person_who_does_not_look_is_reminded(desk: Desk) -> None:
    run = ran(desk, judge=ASK)
    age(run.pk, 3601)
    overdue()
    age(run.pk, 24 * 3600 + 1)
    assert overdue() == 1
    assert open_packets(run.pk) == ["data_not_supplied", "nobody_looked"]
    assert Run.objects.get(pk=run.pk).waiting_until > db_clock()
    age(run.pk, 24 * 3600 + 1)
    overdue()
    assert RepairPacket.objects.get(cause="nobody_looked").escalations == 1


def test_a_command_that_does_not_move_is_reported_and_keeps_its_clocks(desk: Desk) -> None:
    """Field report O4."""
    command = desk.approved()
    age(command.run_id, 3601, "workflows_run")
    assert overdue() == 1
    assert open_packets(command.run_id) == ["stalled"]
    assert state(command.run_id)[0] == "executing"
    desk.work()
    assert open_packets(command.run_id) == []


@pytest.mark.parametrize(
    "status", [status for status in RunStatus if status not in RunStatus.unclocked_states]
)
def test_no_run_waits_without_a_clock(desk: Desk, status: RunStatus) -> None:
    """A silent queue cannot exist: not even by SQL."""
    run = make_run(desk.tenant, status=status)
    assert run.waiting_until is not None and run.on_expiry and run.wait_id
    for missing in ({"waiting_until": None}, {"wait_id": None}, {"on_expiry": ""}):
        with pytest.raises(IntegrityError, match="workflows_run_waits_with_a_clock"), transaction.atomic():
            Run.objects.filter(pk=run.pk).update(**missing)
