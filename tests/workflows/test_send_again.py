"""The same key once more: only where the provider remembers keys, and only while it surely remembers this one."""

from datetime import timedelta
from typing import Any

import pytest

from common.clock import db_clock
from tests.workflows.conftest import AGENT, Desk
from tests.workflows.later import age, as_superuser, end_of, fresh, look_up
from tests.workflows.test_freezing import frozen
from tests.workflows.test_worker_answers import CONFIRMED, UNKNOWN, answer
from tests.workflows.test_worker_unknown import HAPPENED, NOT_FOUND, SETTLED, unknown
from tests.workflows.toy import NOT_SENT, NOTHING_CAME, PAID, ToyPay
from workflows.actions.cancelling import cancel_run
from workflows.models import Attempt, Command

pytestmark = pytest.mark.django_db


@pytest.fixture
def remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that knows each key for a day, and has no look-up."""
    monkeypatch.setattr(ToyPay, "key_retention", timedelta(hours=24))


def settled_unknown(desk: Desk) -> Command:
    command = unknown(desk)
    age(command.run_id, SETTLED, "workflows_command")
    return command


def test_without_a_declared_retention_nothing_is_ever_sent_again(desk: Desk) -> None:
    command = settled_unknown(desk)
    assert not look_up(command)
    assert (end_of(command), len(desk.till.calls)) == (UNKNOWN, 1)


def test_the_same_key_settles_it(desk: Desk, remembers: None) -> None:
    command = settled_unknown(desk)
    desk.till.answers = [PAID]
    assert look_up(command)
    assert end_of(command) == CONFIRMED
    assert [call.idempotency_key for call in desk.till.calls] == [command.idempotency_key] * 2
    assert list(Attempt.objects.values_list("number", "status")) == [(1, "no_answer"), (2, "answered")]
    assert fresh(command).tries == 2


def test_not_before_the_first_request_is_over(desk: Desk, remembers: None) -> None:
    command = unknown(desk)
    assert not look_up(command)
    assert len(desk.till.calls) == 1


def test_not_when_the_key_may_be_forgotten_before_this_call_ends(desk: Desk, remembers: None) -> None:
    command = settled_unknown(desk)
    as_superuser(
        "UPDATE workflows_command SET first_sent_at = now() - interval '24 hours' + interval '5 seconds'"
    )
    assert not look_up(command)
    assert len(desk.till.calls) == 1


def test_a_lookup_that_answers_is_asked_first(desk: Desk, remembers: None) -> None:
    command = settled_unknown(desk)
    desk.till.findings = [HAPPENED]
    assert look_up(command)
    assert len(desk.till.calls) == 1


def test_not_found_frees_it_and_it_goes_the_ordinary_way(desk: Desk, remembers: None) -> None:
    command = settled_unknown(desk)
    desk.till.findings = [NOT_FOUND]
    assert look_up(command)
    assert (fresh(command).status, len(desk.till.calls)) == ("ready", 1)


@pytest.mark.parametrize("seen", [answer(404), answer(429), answer(401), NOT_SENT, NOTHING_CAME], ids=str)
def test_no_to_the_second_says_nothing_about_the_first(desk: Desk, remembers: None, seen: Any) -> None:
    command = settled_unknown(desk)
    desk.till.answers = [seen]
    look_up(command)
    assert fresh(command).status == "unknown"
    assert fresh(command).resent
    assert end_of(command)["run"] == "unknown"


def test_nothing_is_newly_sent_under_a_freeze(desk: Desk, remembers: None) -> None:
    command = settled_unknown(desk)
    frozen(desk)
    assert not look_up(command)
    assert (fresh(command).status, len(desk.till.calls)) == ("unknown", 1)


def test_nothing_is_newly_sent_after_the_approval_is_over(desk: Desk, remembers: None) -> None:
    command = settled_unknown(desk)
    age(command.run_id, 3600, "approvals_proposal")
    assert not look_up(command)
    assert (fresh(command).status, len(desk.till.calls)) == ("unknown", 1)


def test_nothing_is_newly_sent_when_the_record_has_changed(desk: Desk, remembers: None) -> None:
    """Perhaps because of the first request: then a second one is the last thing anybody wants."""
    command = settled_unknown(desk)
    desk.till.tags["1042"] = "v2"
    assert not look_up(command)
    assert (fresh(command).status, len(desk.till.calls)) == ("unknown", 1)


def test_nothing_is_newly_sent_when_somebody_wishes_to_cancel(desk: Desk, remembers: None) -> None:
    command = settled_unknown(desk)
    cancel_run(tenant_id=desk.tenant.pk, run_id=command.run_id, reason="stop", by=AGENT, clock=db_clock)
    assert not look_up(command)
    assert (fresh(command).status, len(desk.till.calls)) == ("unknown", 1)


def test_a_key_that_was_reused_is_never_sent_again(desk: Desk, remembers: None) -> None:
    command = desk.approved()
    desk.till.answers = [answer(422, code="key_reused")]
    desk.work()
    age(command.run_id, SETTLED, "workflows_command")
    look_up(command)
    assert (fresh(command).status, len(desk.till.calls)) == ("unknown", 1)


def test_the_caps_on_tries_hold_for_it_too(
    desk: Desk, remembers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyPay, "max_tries", 2)
    command = settled_unknown(desk)
    desk.till.answers = [NOTHING_CAME]
    for _ in range(3):
        look_up(command)
        age(command.run_id, SETTLED, "workflows_command")
    assert len(desk.till.calls) == 2
