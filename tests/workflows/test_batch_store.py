"""Several commands at once end as each of them would have ended alone, row by row and event by event."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from access.enums import Role
from approvals.models import Proposal
from audit.models import Event
from common.clock import db_clock
from tests.factories import make_tenant, make_user
from tests.workflows import toy
from tests.workflows.conftest import AGENT, Desk
from tests.workflows.later import SWEEP, age, as_superuser, end_of, fresh, open_packets, recover
from tests.workflows.test_batch_checks import AFTER
from tests.workflows.test_commit_unknown import lose_connection_at_commit, wrote
from tests.workflows.test_worker_answers import CONFIRMED
from tests.workflows.together import in_threads
from tests.workflows.toy import NOT_SENT, NOTHING_CAME, PAID
from workflows.actions.cancelling import cancel_run
from workflows.authoring import Observation
from workflows.hooks import Stop, stopped
from workflows.models import Attempt, Command, Document, Run, Step
from workflows.worker import loop
from workflows.worker.batch import round as batch_round
from workflows.worker.batch import saving

pytestmark = pytest.mark.django_db

ANSWERS: dict[str, Observation] = {
    "paid": PAID,
    "paid_too": Observation(sent=True, status=200, reference="re_2", body={"id": "re_2", "lines": [1, 2]}),
    "refused": Observation(sent=True, status=422, code="too_large", detail="no"),
    "without_reference": Observation(sent=True, status=200, body={"id": "x"}),
    "paid_three": Observation(sent=True, status=201, reference="re_3", detail="a word"),
    "nothing_came": NOTHING_CAME,
    "not_now": Observation(sent=True, status=429),
    "paid_four": Observation(sent=True, status=201, reference="re_4", body={"odd": float("inf")}),
    "not_sent": NOT_SENT,
    "changed": PAID,
    "withdrawn": PAID,
    "last": Observation(sent=True, status=201, reference="re_5"),
}


@pytest.fixture
def by_order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The provider answers by what is asked, in whatever order it is asked; returns the orders of its calls."""
    asked: list[str] = []

    def execute(self: Any, call: Any) -> Observation:
        asked.append(call.arguments.order)
        return ANSWERS[call.arguments.order]

    monkeypatch.setattr(toy.ToyPay, "execute", execute)
    return asked


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The commands whose answers were stored alone."""
    stored: list[Any] = []
    real = batch_round.store_answer

    def store(claim: Any, seen: Any, **others: Any) -> Any:
        stored.append(claim.command_id)
        return real(claim, seen, **others)

    monkeypatch.setattr(batch_round, "store_answer", store)
    return stored


_NOT_COMPARED = {
    "id", "tenant", "proposal", "run", "step", "command", "token", "worker", "business_key", "idempotency_key",
    "contract", "digest", "view", "view_digest", "material_digest", "source_event", "input_ref", "input_hash",
    "roster", "shape",
}  # fmt: skip


def _plain(row: Any) -> dict[str, Any]:
    """The row's values, with ids and times told only by whether they are there."""
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    return {
        name: (value is not None) if hasattr(value, "hex") or hasattr(value, "year") else value
        for name, value in values.items() if name.removesuffix("_id") not in _NOT_COMPARED
    }  # fmt: skip


_IDS_AND_TIMES = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27}|20\d\d-\d\d-\d\d[T ][\d:.+Z]+|(hmac:|sha256:)?[0-9a-f]{64}|[A-Z2-7]{52}"
)


def _told(event: Event) -> tuple[Any, ...]:
    body = _IDS_AND_TIMES.sub("…", json.dumps(event.body, sort_keys=True))
    return (
        event.kind, event.from_state, event.to_state, event.reason, bool(event.digest), body, event.via, event.owner
    )  # fmt: skip


def everything_about(command: Command) -> dict[str, Any]:
    run = command.run_id
    results = Document.objects.filter(run_id=run, kind="result.command")
    return {
        "command": _plain(fresh(command)), "proposal": _plain(Proposal.objects.get(pk=command.proposal_id)),
        "run": _plain(Run.objects.get(pk=run)), "packets": open_packets(run),
        "steps": [_plain(step) for step in Step.objects.filter(run_id=run).order_by("position")],
        "attempts": [_plain(attempt) for attempt in Attempt.objects.filter(command=command)],
        "results": [bytes(document.content) for document in results],
        "events": [_told(event) for event in Event.objects.filter(run_id=run).order_by("id")],
    }  # fmt: skip


def lives(desk: Desk) -> dict[str, dict[str, Any]]:
    """One command for each answer, executed in one round; two of them are spoilt before they are claimed."""
    commands = {order: desk.approved(order=order) for order in ANSWERS}
    desk.till.tags["changed"] = "v2"
    AFTER["withdrawn"](desk, commands["withdrawn"])
    assert desk.work(limit=20) == len(ANSWERS) - 1
    desk.till.tags.clear()
    found = {order: everything_about(command) for order, command in commands.items()}
    as_superuser("UPDATE workflows_command SET due_at = due_at + interval '1 day' WHERE due_at IS NOT NULL")
    return found


def test_together_and_one_by_one_are_the_same_row_by_row(
    desk: Desk, by_order: list[str], alone: list[Any], settings: Any
) -> None:
    settings.PLACET_CALLS_AT_ONCE = 20
    together = lives(desk)
    assert len(alone) == sum(
        1 for order in by_order if order not in ("paid", "paid_too", "paid_three", "last")
    )
    settings.PLACET_CALLS_AT_ONCE = 1
    other = make_tenant("quay")
    ben = make_user(other, "bea", roles=[Role.REVIEWER])
    one_by_one = lives(Desk(other, make_user(other, "abe", roles=[Role.REVIEWER]), ben, desk.till))
    for order in ANSWERS:
        for what, rows in together[order].items():
            assert rows == one_by_one[order][what], f"{what} of {order}"
    assert sorted(by_order[: len(by_order) // 2]) == sorted(by_order[len(by_order) // 2 :])


def test_the_next_step_is_due_and_the_run_goes_on_to_its_end(desk: Desk, alone: list[Any]) -> None:
    commands = [desk.approved(order=str(order)) for order in range(3)]
    desk.work()
    assert alone == []
    assert Step.objects.filter(key="tell", status="pending", due_at__isnull=False).count() == 3
    desk.advance()
    runs = Run.objects.filter(pk__in=[command.run_id for command in commands])
    assert set(runs.values_list("status", "outcome")) == {("completed", "paid")}


# -- what is stored alone -----------------------------------------------------------------------------------------


def test_a_wish_to_cancel_is_for_the_way_alone(desk: Desk, alone: list[Any]) -> None:
    wished, other = desk.approved(order="1"), desk.approved(order="2")

    def wish(_: Any) -> Observation:
        run = Run.objects.get(pk=wished.run_id)
        if run.cancel_requested_at is None:
            cancel_run(tenant_id=desk.tenant.pk, run_id=run.pk, reason="no", by=AGENT, clock=db_clock)
        return PAID

    desk.till.answers = [wish, wish]
    desk.work()
    assert wished.pk in alone
    assert end_of(other) == CONFIRMED
    assert fresh(wished).status == "confirmed"
    assert Event.objects.filter(run_id=wished.run_id, kind="run.cancel_requested").exists()


def test_a_run_of_a_record_wakes_the_next_one_alone(desk: Desk, alone: list[Any]) -> None:
    command, other = desk.approved(order="1", record="r-1", sequence=1), desk.approved(order="2")
    desk.work()
    assert alone == [command.pk]
    assert end_of(other) == end_of(command) == CONFIRMED


def test_an_open_packet_is_closed_by_the_way_alone(desk: Desk, alone: list[Any]) -> None:
    command, other = desk.approved(order="1"), desk.approved(order="2")
    with transaction.atomic():
        stop = Stop(Run.objects.get(pk=command.run_id), "pay", "command_unknown", "Nobody knows.", "toy-desk")
        stopped(stop, by=SWEEP, at=db_clock())
    desk.work()
    assert alone == [command.pk]
    assert open_packets(command.run_id) == []
    assert end_of(other) == CONFIRMED


def test_a_stale_token_changes_nothing_and_keeps_what_it_learned(desk: Desk) -> None:
    late, other = desk.approved(order="1"), desk.approved(order="2")

    def slow(call: Any) -> Observation:
        if call.arguments.order == "1":
            age(late.run_id, 60, "workflows_command")
            recover()
        return PAID

    desk.till.answers = [slow, slow]
    desk.work()
    assert fresh(late).status == "unknown"
    assert Attempt.objects.get(command=late).late_evidence["meaning"] == "confirmed"
    assert end_of(other) == CONFIRMED


# -- together, and not later --------------------------------------------------------------------------------------


def test_all_calls_of_a_batch_are_under_way_at_once_and_none_waits_to_be_stored(desk: Desk) -> None:
    """The slow one goes on only when all the others are stored."""
    commands = [desk.approved(order=str(order)) for order in range(6)]
    began = threading.Barrier(6)

    def call(call: Any) -> Observation:
        began.wait(20)
        if call.arguments.order == "0":
            _until(lambda: [fresh(other).status for other in commands[1:]] == ["confirmed"] * 5)
        return PAID

    desk.till.answers = [call] * 6
    desk.work()
    assert [end_of(command) for command in commands] == [CONFIRMED] * 6


def _until(true: Callable[[], bool]) -> None:
    for _ in range(400):
        if true():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it never became true")


def test_threads_leave_no_connection_behind(desk: Desk) -> None:
    for order in range(4):
        desk.approved(order=str(order))
    desk.till.answers = [lambda _: [Run.objects.count(), PAID][1]] * 4
    before = _connections()
    desk.work()
    assert _connections() == before


def _connections() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


# -- the database goes away ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [True, False], ids=["undone", "committed"])
def test_answers_whose_commit_is_not_known_are_stored_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    commands = [desk.approved(order=str(order)) for order in range(3)]
    lose_connection_at_commit(monkeypatch, 1, before=before, only_if=wrote("command.confirmed"))
    desk.work()
    assert [end_of(command) for command in commands] == [CONFIRMED] * 3
    assert Event.objects.filter(kind="command.confirmed").count() == 3
    assert not Event.objects.filter(kind="attempt.late_evidence").exists()
    assert len(desk.till.calls) == 3


def test_an_answer_outlives_a_database_that_is_away_for_a_moment(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, alone: list[Any]
) -> None:
    commands = [desk.approved(order=str(order)) for order in range(2)]
    away: Iterator[bool] = iter([True, True, True, False])
    real = batch_round.store_answer

    def store(claim: Any, seen: Any, **others: Any) -> Any:
        if next(away, False):
            raise OperationalError("the database system is shutting down")
        return real(claim, seen, **others)

    def broken(*_: Any, **__: Any) -> Any:
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(batch_round, "store_answer", store)
    monkeypatch.setattr(batch_round, "store_together", broken)
    desk.work()
    assert [end_of(command) for command in commands] == [CONFIRMED] * 2
    assert len(desk.till.calls) == 2


def test_fewer_rows_than_were_moved_are_stored_alone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, alone: list[Any]
) -> None:
    commands = [desk.approved(order=str(order)) for order in range(3)]
    made = saving._update

    def none_of_the_runs(model: Any, names: Any) -> str:
        return made(model, names) + (" AND false" if model is Run else "")

    monkeypatch.setattr(saving, "_update", none_of_the_runs)
    desk.work()
    assert sorted(alone) == sorted(command.pk for command in commands)
    assert [end_of(command) for command in commands] == [CONFIRMED] * 3
    assert Event.objects.filter(kind="command.confirmed").count() == 3


# -- time and processes -------------------------------------------------------------------------------------------


def test_what_a_slow_look_leaves_no_time_for_is_given_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that answers after half of the lease: nothing is sent on a lease that may be over by then."""
    commands = [desk.approved(order=str(order)) for order in range(3)]
    passed = threading.Event()

    def slow(self: Any, site: Any, arguments: Any) -> tuple[str, ...]:
        passed.wait(0.3)
        return ()

    monkeypatch.setattr(toy.ToyPay, "earlier_effects", slow)
    monkeypatch.setattr(loop, "LEASE", timedelta(seconds=0.4))
    desk.work()
    assert desk.till.calls == []
    assert [fresh(command).status for command in commands] == ["ready"] * 3
    assert set(Attempt.objects.values_list("outcome", flat=True)) == {"given_back"}


def test_a_worker_that_slept_after_sent_calls_nobody(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline of each call begins before *sent* commits."""
    commands = [desk.approved(order=str(order)) for order in range(3)]
    monkeypatch.setattr(toy.ToyPay, "call_deadline", timedelta(seconds=0.2))
    slept = threading.Event()
    monkeypatch.setattr(batch_round, "crashpoint", lambda name: name == "CP5" and slept.wait(0.4))
    desk.work()
    assert desk.till.calls == []
    assert [fresh(command).status for command in commands] == ["ready"] * 3
    assert set(Attempt.objects.values_list("status", "outcome")) == {("released", "came_too_late")}


def test_workers_that_run_at_once_call_each_of_many_once(desk: Desk) -> None:
    """Field report A7, with whole batches."""
    commands = [desk.approved(order=str(order)) for order in range(12)]
    assert sum(in_threads(3, lambda _: desk.work(limit=5))) == 12
    assert [end_of(command) for command in commands] == [CONFIRMED] * 12
    assert sorted(call.arguments.order for call in desk.till.calls) == sorted(
        str(order) for order in range(12)
    )
