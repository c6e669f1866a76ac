"""What each answer of a provider leads to: every row of the outcome table, and of the table of ends."""

from datetime import timedelta
from typing import Any

import pytest

from tests.workflows.conftest import Desk, state
from tests.workflows.later import age, as_superuser, end_of, fresh
from tests.workflows.toy import NOT_SENT, NOTHING_CAME, PAID, ToyFlow
from workflows.authoring import ExceptionCase, Observation
from workflows.models import Attempt, Document, Run

pytestmark = pytest.mark.django_db


def answer(status: int, **fields: Any) -> Observation:
    return Observation(sent=True, status=status, **fields)


CONFIRMED = {
    "command": "confirmed", "effect": "happened", "proposal": "consumed", "step": "completed", "run": "running",
    "packets": [],
}  # fmt: skip
UNKNOWN = {
    "command": "unknown", "effect": "unknown", "proposal": "approved", "step": "waiting(provider)", "run": "unknown",
    "packets": ["command_unknown"],
}  # fmt: skip
REFUSED = {
    "command": "refused", "effect": "none", "proposal": "consumed", "step": "waiting(person)",
    "run": "manual_repair", "packets": ["command_refused"],
}  # fmt: skip
DEAD = REFUSED | {"command": "dead", "packets": ["command_dead"]}
RETRY = {
    "command": "retry_wait", "effect": "none", "proposal": "approved", "step": "waiting(provider)",
    "run": "waiting_for_retry", "packets": [],
}  # fmt: skip
READY = RETRY | {"command": "ready", "run": "executing"}


@pytest.mark.parametrize(
    ("seen", "leads_to", "attempt"),
    [
        (PAID, CONFIRMED, "answered"),
        (answer(200, reference="re_9"), CONFIRMED, "answered"),
        (answer(200), UNKNOWN, "answered"),  # complete, but it names nothing that happened
        (NOT_SENT, READY, "released"),
        (answer(429), RETRY, "answered"),
        (answer(401), DEAD, "answered"),
        (answer(403), DEAD, "answered"),
        (answer(404), REFUSED, "answered"),
        (answer(422, code="amount"), REFUSED, "answered"),
        (answer(400), UNKNOWN, "answered"),  # not declared as validated before execution
        (answer(409), UNKNOWN, "answered"),
        (answer(422, code="key_reused"), UNKNOWN | {"packets": ["command_key_reused"]}, "answered"),
        (NOTHING_CAME, UNKNOWN, "no_answer"),
        *[(answer(status), UNKNOWN, "answered") for status in (301, 303, 408, 425, 499, 500, 502, 503, 504)],
    ],
    ids=lambda value: f"{value.status}-{value.code}" if isinstance(value, Observation) else "",
)  # fmt: skip
def test_each_answer_has_its_end(
    desk: Desk, seen: Observation, leads_to: dict[str, Any], attempt: str
) -> None:
    command = desk.approved()
    desk.till.answers = [seen]
    assert desk.work() == 1
    assert end_of(command) == leads_to
    assert Attempt.objects.get(command=command).status == attempt
    assert len(desk.till.calls) == 1


def test_an_error_of_the_operation_after_the_send_is_unknown(desk: Desk) -> None:
    """Field report O15: it is not *failed*, which would invite a second send."""
    command = desk.approved()

    def breaks(_: Any) -> Observation:
        raise RuntimeError("a bug")

    desk.till.answers = [breaks]
    desk.work()
    assert end_of(command) == UNKNOWN


def test_what_cannot_be_stored_of_an_answer_does_not_undo_the_effect(desk: Desk) -> None:
    command = desk.approved()
    desk.till.answers = [
        answer(201, reference="re_\x001\ud800", detail="\x00", body={"big": 2**70, "id": "re_1"})
    ]
    desk.work()
    assert end_of(command) == CONFIRMED
    assert fresh(command).provider_reference == "re_\ufffd1?"
    assert b"answer_refused" in bytes(Document.objects.get(pk=fresh(command).result_ref).content)


def test_a_refusal_that_the_exception_table_foresees_ends_the_run_as_it_says(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    row = ExceptionCase(
        "order_closed", "failed", "no_action", "The order is closed.", "toy-desk", may_submit_new=True
    )
    contract = replace(ToyFlow.contract, exceptions=(*ToyFlow.contract.exceptions, row))
    monkeypatch.setattr(ToyFlow, "contract", contract)
    command = desk.approved()
    desk.till.answers = [answer(422, code="order_closed")]
    desk.work()
    assert end_of(command) == REFUSED | {"step": "failed", "run": "failed", "packets": []}
    run = Run.objects.get(pk=command.run_id)
    assert (run.outcome, run.user_message, run.may_submit_new) == ("no_action", "The order is closed.", True)
    assert state(run.pk)[1]["tell"] == "skipped"


# -- retries: backoff, a cap on tries and one on total time ------------------------------------------------------


@pytest.mark.parametrize("seen", [answer(429), NOT_SENT], ids=["throttled", "not sent"])
def test_retries_are_capped_by_number(desk: Desk, seen: Observation) -> None:
    command = desk.approved()
    desk.till.answers = [seen] * 9
    for _ in range(9):
        as_superuser(
            "UPDATE workflows_command SET due_at = now() WHERE id = %s AND due_at IS NOT NULL", command.pk
        )
        desk.work()
    assert end_of(command) == DEAD
    assert (fresh(command).tries, fresh(command).failure_code, len(desk.till.calls)) == (
        5,
        "tries_exhausted",
        5,
    )
    assert {call.idempotency_key for call in desk.till.calls} == {command.idempotency_key}


def test_retries_are_capped_by_total_time(desk: Desk) -> None:
    command = desk.approved()
    desk.till.answers = [answer(429)] * 2
    desk.work()
    as_superuser(
        "UPDATE workflows_command SET due_at = now(), first_sent_at = now() - interval '31 minutes' WHERE id = %s",
        command.pk,
    )
    desk.work()
    assert end_of(command) == DEAD
    assert fresh(command).tries == 2


def test_a_retry_waits_as_long_as_it_is_told_to_but_never_past_execute_by(desk: Desk) -> None:
    command = desk.approved()
    desk.till.answers = [
        answer(429, retry_after=timedelta(seconds=90)),
        answer(429, retry_after=timedelta(days=1)),
    ]
    desk.work()
    pause = fresh(command).due_at - fresh(command).last_sent_at
    assert timedelta(seconds=89) < pause < timedelta(seconds=92)
    assert desk.work() == 0  # it is not due yet
    age(command.run_id, 91)
    desk.work()
    command = fresh(command)
    assert command.due_at == command.proposal.execute_by
    age(command.run_id, 600)
    desk.work()
    assert end_of(command) == RETRY | {
        "command": "void(lapsed)", "proposal": "lapsed", "step": "waiting(person)", "run": "manual_repair",
        "packets": ["command_lapsed"],
    }  # fmt: skip
    assert len(desk.till.calls) == 2


@pytest.mark.parametrize("pause", [timedelta(0), timedelta(seconds=-5)])
def test_a_source_that_says_at_once_is_not_asked_in_a_tight_loop(desk: Desk, pause: timedelta) -> None:
    command = desk.approved()
    desk.till.answers = [answer(429, retry_after=pause)]
    desk.work()
    assert fresh(command).due_at > fresh(command).last_sent_at + timedelta(milliseconds=100)
    assert desk.work() == 0
