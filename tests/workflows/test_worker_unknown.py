"""No answer, lost leases, stale workers, look-ups: what is not known is called unknown and never sent again blindly."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from audit.models import Event
from common.clock import db_clock
from tests.workflows.conftest import Desk
from tests.workflows.later import SWEEP, age, as_superuser, changed_by_hand, end_of, fresh, look_up, recover
from tests.workflows.test_worker_answers import CONFIRMED, READY, UNKNOWN, answer
from tests.workflows.toy import NOT_SENT, NOTHING_CAME, PAID, ToyPay
from workflows.authoring import Finding, Observation
from workflows.enums import Lane
from workflows.models import Attempt, Command, Lookup
from workflows.worker.claim import Claim, claim_commands
from workflows.worker.loop import execute
from workflows.worker.reconcile import reconcile_due
from workflows.worker.send import commit_sent, look
from workflows.worker.store import store_answer

pytestmark = pytest.mark.django_db

HAPPENED = Finding("happened", reference="re_7", body={"id": "re_7"})
NOT_FOUND = Finding("not_found")
SETTLED = 40
"""Seconds after which *not found* counts: the call's deadline and the provider's settle time, and a little more."""


def unknown(desk: Desk) -> Command:
    command = desk.approved()
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    return fresh(command)


def claimed(desk: Desk) -> tuple[Command, Claim]:
    command = desk.approved()
    [claim] = claim_commands(limit=10, lane=Lane.NEW, worker="first", by=SWEEP, clock=db_clock)
    return command, claim


def sent(desk: Desk) -> tuple[Command, Claim]:
    command, claim = claimed(desk)
    held = Command.objects.select_related("proposal", "run").get(pk=command.pk)
    assert commit_sent(claim, look(claim, held), by=SWEEP, clock=db_clock)
    return command, claim


# -- no answer ---------------------------------------------------------------------------------------------------


def test_no_answer_is_asked_about_soon_and_not_sent_again(desk: Desk) -> None:
    """Field report O1: zero automatic retries."""
    command = unknown(desk)
    assert timedelta(0) < command.due_at - command.last_sent_at < timedelta(seconds=5)
    assert desk.work() == 0
    age(command.run_id, 3)
    desk.till.findings = [HAPPENED]
    assert reconcile_due(by=SWEEP, clock=db_clock, worker="tester") == 1
    assert end_of(command) == CONFIRMED
    assert (fresh(command).settled_by, fresh(command).provider_reference) == ("lookup", "re_7")
    assert len(desk.till.calls) == 1
    assert Lookup.objects.get(command=command).finding == "happened"


@pytest.mark.parametrize("finding", [NOT_FOUND, Finding("no_answer")], ids=["not found", "no answer"])
def test_before_the_settle_time_nothing_negative_counts(desk: Desk, finding: Finding) -> None:
    command = unknown(desk)
    desk.till.findings = [finding]
    assert not look_up(command)
    assert end_of(command) == UNKNOWN
    assert Lookup.objects.get(command=command).settled is False


def test_not_found_counts_only_after_the_requests_own_deadline_too(desk: Desk) -> None:
    """A request that left at the last moment of its deadline has the whole settle time after that."""
    command = unknown(desk)
    age(command.run_id, ToyPay.settle_time.total_seconds() + 1)
    desk.till.findings = [NOT_FOUND]
    assert not look_up(command)
    settles = command.last_sent_at - timedelta(seconds=31) + ToyPay.call_deadline + ToyPay.settle_time
    assert fresh(command).due_at <= settles
    age(command.run_id, ToyPay.call_deadline.total_seconds())
    desk.till.findings = [NOT_FOUND]
    assert look_up(command)
    assert end_of(command) == READY


def test_settled_as_not_happened_it_is_sent_once_more_with_the_same_key(desk: Desk) -> None:
    command = unknown(desk)
    age(command.run_id, SETTLED)
    desk.till.findings = [NOT_FOUND]
    assert look_up(command)
    assert end_of(command) == READY
    desk.till.answers = [PAID]
    assert desk.work() == 1
    assert end_of(command) == CONFIRMED
    assert [call.idempotency_key for call in desk.till.calls] == [command.idempotency_key] * 2
    assert fresh(command).tries == 2


def test_a_provider_that_cannot_be_asked_leaves_it_unknown_however_long(desk: Desk) -> None:
    command = unknown(desk)
    for _ in range(4):
        age(command.run_id, 900)
        assert reconcile_due(by=SWEEP, clock=db_clock, worker="tester") == 0
    assert end_of(command) == UNKNOWN
    assert (desk.till.lookups, len(desk.till.calls)) == (4, 1)


def test_settled_after_execute_by_it_is_void(desk: Desk) -> None:
    command = unknown(desk)
    age(command.run_id, 700)
    desk.till.findings = [NOT_FOUND]
    assert look_up(command)
    end = end_of(command)
    assert (end["command"], end["proposal"], end["step"]) == ("void(lapsed)", "lapsed", "waiting(person)")
    assert fresh(command).settled_by == "lookup"
    assert end["packets"] == ["command_lapsed"]


def test_settled_again_and_again_it_is_given_up_after_its_tries(desk: Desk) -> None:
    command = desk.approved()
    for _ in range(5):
        desk.till.answers, desk.till.findings = [NOTHING_CAME], [NOT_FOUND]
        assert desk.work() == 1
        age(command.run_id, SETTLED, "workflows_command")
        assert look_up(command)
    end = end_of(command)
    assert (end["command"], end["effect"], end["step"]) == ("dead", "none", "waiting(person)")
    assert (fresh(command).settled_by, fresh(command).failure_code) == ("lookup", "tries_exhausted")
    assert desk.work() == 0


def test_a_lookup_that_breaks_settles_nothing_and_stops_no_other(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = unknown(desk)
    second = desk.approved(order="7")
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    as_superuser("UPDATE approvals_proposal SET contract = 'x' WHERE id = %s", first.proposal_id)
    as_superuser("UPDATE workflows_command SET due_at = now() WHERE status = 'unknown'")
    desk.till.findings = [HAPPENED]
    assert reconcile_due(by=SWEEP, clock=db_clock, worker="tester") == 1
    assert (fresh(first).status, fresh(second).status) == ("unknown", "confirmed")


def test_changed_bytes_name_no_key_to_ask_by(desk: Desk) -> None:
    """*Not found* under another key must not be taken for *nothing happened*."""
    command = unknown(desk)
    other = "A" * len(command.idempotency_key)
    changed_by_hand(command.proposal_id, "contract", command.idempotency_key, other)
    age(command.run_id, SETTLED)
    desk.till.findings = [NOT_FOUND]
    assert not look_up(command)
    assert (fresh(command).status, desk.till.lookups) == ("unknown", 0)


def test_what_is_found_under_a_reused_key_may_be_somebody_elses(desk: Desk) -> None:
    command = desk.approved()
    desk.till.answers = [answer(422, code="key_reused")]
    desk.work()
    age(command.run_id, SETTLED)
    desk.till.findings = [HAPPENED, NOT_FOUND]
    assert not look_up(command)
    assert not look_up(command)
    assert fresh(command).status == "unknown"


# -- leases ------------------------------------------------------------------------------------------------------


def test_a_lease_over_claimed_is_ready_again(desk: Desk) -> None:
    command, _ = claimed(desk)
    assert recover() == 0
    age(command.run_id, 31)
    assert recover() == 1
    assert end_of(command) == READY
    assert Attempt.objects.get(command=command).status == "released"
    desk.work()
    assert end_of(command) == CONFIRMED
    assert [attempt.number for attempt in Attempt.objects.filter(command=command)] == [1, 2]


def test_a_lease_over_sent_is_unknown_and_never_ready(desk: Desk) -> None:
    """Field report O3."""
    command, _ = sent(desk)
    age(command.run_id, 31)
    assert recover() == 1
    assert end_of(command) == UNKNOWN
    for _ in range(3):
        age(command.run_id, 60)
        recover()
        desk.work()
    assert (end_of(command), desk.till.calls) == (UNKNOWN, [])
    with pytest.raises(IntegrityError), transaction.atomic():  # not by SQL either
        Command.objects.filter(pk=command.pk).update(status="claimed", effect="none")


def test_a_command_from_which_no_worker_comes_back_is_set_aside(desk: Desk) -> None:
    """Field report O12: dead letter with the reason; the rest proceeds."""
    command = desk.approved()
    for _ in range(5):
        as_superuser("UPDATE workflows_command SET due_at = now() WHERE id = %s", command.pk)
        lane = Lane(fresh(command).lane)
        assert claim_commands(limit=1, lane=lane, worker="dies", by=SWEEP, clock=db_clock)
        age(command.run_id, 31, "workflows_command")
        assert recover() == 1
    end = end_of(command)
    assert (end["command"], end["effect"], end["packets"]) == ("dead", "none", ["command_dead"])
    assert fresh(command).failure_code == "quarantined"


# -- stale workers -----------------------------------------------------------------------------------------------


def test_a_stale_worker_does_not_send(desk: Desk) -> None:
    """Field report O6: the token is the claim, not the name."""
    command, claim = claimed(desk)
    age(command.run_id, 31)
    recover()
    execute(claim, by=SWEEP, clock=db_clock)
    assert (end_of(command), desk.till.calls) == (READY, [])
    [again] = claim_commands(limit=1, lane=Lane.REPROCESS, worker="second", by=SWEEP, clock=db_clock)
    execute(claim, by=SWEEP, clock=db_clock)
    assert desk.till.calls == []
    assert fresh(command).lease_token == again.token


@pytest.mark.parametrize(
    ("seen", "status", "settled_by", "effect"),
    [
        (PAID, "confirmed", "late_answer", "happened"),
        (answer(404, code="unknown_order"), "refused", "late_answer", "none"),
        (NOT_SENT, "ready", "", "none"),
        (answer(429), "ready", "", "none"),
        (answer(401), "dead", "late_answer", "none"),
        (answer(503), "unknown", "", "unknown"),
    ],
    ids=["confirmed", "refused", "not sent", "throttled", "unauthorized", "unknown"],
)
def test_what_a_stale_worker_learned_is_evidence_that_reconcile_reads_first(
    desk: Desk, seen: Observation, status: str, settled_by: str, effect: str
) -> None:
    command, claim = sent(desk)
    age(command.run_id, 31)
    recover()
    before = fresh(command)
    store_answer(claim, seen, by=SWEEP, clock=db_clock)
    after = fresh(command)
    assert (after.status, after.state_version) == ("unknown", before.state_version)
    assert Attempt.objects.get(command=command).late_evidence["status"] == seen.status
    assert Event.objects.filter(kind="attempt.late_evidence", run_id=command.run_id).count() == 1
    assert look_up(command) is (status != "unknown")
    command = fresh(command)
    assert (command.status, command.settled_by, command.effect) == (status, settled_by, effect)
    assert desk.till.lookups == (status == "unknown")


def test_late_evidence_never_overwrites_an_end(desk: Desk) -> None:
    command, claim = sent(desk)
    age(command.run_id, 31)
    recover()
    desk.till.findings = [HAPPENED]
    look_up(command)
    store_answer(claim, answer(404), by=SWEEP, clock=db_clock)
    assert end_of(command) == CONFIRMED
    assert Attempt.objects.get(command=command).late_evidence["meaning"] == "refused"


def test_that_an_earlier_request_came_to_nothing_says_nothing_about_a_later_one(desk: Desk) -> None:
    command, first = sent(desk)
    age(command.run_id, 31)
    recover()
    age(command.run_id, SETTLED, "workflows_command")
    desk.till.findings = [NOT_FOUND]
    assert look_up(command)
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    store_answer(first, answer(404), by=SWEEP, clock=db_clock)
    assert not look_up(command)
    assert fresh(command).status == "unknown"
    store_answer(first, PAID, by=SWEEP, clock=db_clock)  # but that it took effect does
    assert look_up(command)
    assert end_of(command) == CONFIRMED


def test_a_worker_that_slept_between_sent_and_the_call_does_not_call(desk: Desk) -> None:
    """The deadline begins before *sent* commits, on a clock that nobody can set."""
    command, claim = claimed(desk)

    class Late(ToyPay):
        call_deadline = timedelta(0)

    execute(replace(claim, operation=Late()), by=SWEEP, clock=db_clock)
    assert desk.till.calls == []
    assert end_of(command) == READY


def test_answers_are_classified_once_and_in_the_same_transaction(desk: Desk) -> None:
    """A second store of the same claim finds its token gone."""
    command, claim = sent(desk)
    store_answer(claim, PAID, by=SWEEP, clock=db_clock)
    version = fresh(command).state_version
    store_answer(claim, PAID, by=SWEEP, clock=db_clock)
    assert fresh(command).state_version == version
    kinds: Any = Event.objects.filter(run_id=command.run_id, kind="command.confirmed")
    assert kinds.count() == 1
