"""What a stage may return or raise, and what becomes of the run: resumed, retried, stopped or ended, never repeated."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from approvals.models import Proposal
from audit.actors import worker_actor
from audit.models import Event
from common.clock import db_clock
from tests.workflows.conftest import Desk, state
from tests.workflows.later import SWEEP, age, as_superuser, open_packets
from tests.workflows.toy import ToyFlow
from workflows import registry
from workflows.authoring import (
    CredentialRefused,
    Done,
    Fail,
    Finish,
    Malformed,
    NotAllowed,
    OperationRefused,
    Propose,
    RateLimited,
    SourceDown,
    ToPerson,
    Verdict,
)
from workflows.documents import load_json
from workflows.engine.claim import claim_step
from workflows.engine.run import release_lost_steps
from workflows.engine.store import backoff, store_result
from workflows.enums import Lane
from workflows.models import Document, Run, Step
from workflows.selectors import envelope

pytestmark = pytest.mark.django_db


def raises(error: Exception) -> Any:
    def stage(_: Any) -> Any:
        raise error

    return stage


def ran(desk: Desk, **stages: Any) -> Run:
    desk.till.stages.update(stages)
    run = desk.start()
    desk.advance()
    return Run.objects.get(pk=run.pk)


def step(run: Run, key: str) -> Step:
    return Step.objects.get(run=run, key=key)


# -- resumed -----------------------------------------------------------------------------------------------------


def test_a_resumed_run_goes_on_at_the_failed_step_and_repeats_no_finished_one(desk: Desk) -> None:
    """Field report A1."""
    run = ran(desk, judge=raises(SourceDown("away")))
    assert state(run.pk) == (
        "waiting_for_provider", {"read": "completed", "judge": "waiting", "pay": "pending", "tell": "pending"},
    )  # fmt: skip
    assert desk.advance() == 0  # it is not due yet
    desk.till.stages["judge"] = lambda context: Done({"after": context.results["read"]["seen"]})
    age(run.pk, 3, "workflows_step")
    desk.advance()
    assert state(run.pk)[0] == "waiting_for_approval"
    assert desk.till.stage_calls == ["read", "judge", "judge", "pay"]


def test_a_worker_that_dies_in_a_stage_leaves_it_to_another(desk: Desk) -> None:
    run = desk.start()
    claimed = claim_step(lane=Lane.NEW, by=SWEEP, clock=db_clock)
    assert claimed is not None and claimed.step.key == "read"
    assert desk.advance() == 0
    assert release_lost_steps(by=SWEEP) == 0
    age(run.pk, 31, "workflows_step")
    assert release_lost_steps(by=SWEEP) == 1
    assert state(run.pk)[0] == "running"
    age(run.pk, 2, "workflows_step")
    desk.advance()
    assert state(run.pk)[0] == "waiting_for_approval"


def test_a_stale_workers_late_result_is_dropped_and_noted(desk: Desk) -> None:
    run = desk.start()
    stale = claim_step(lane=Lane.NEW, by=SWEEP, clock=db_clock)
    assert stale is not None
    age(run.pk, 31, "workflows_step")
    release_lost_steps(by=SWEEP)
    age(run.pk, 2, "workflows_step")
    desk.advance()
    before = Run.objects.filter(pk=run.pk).values().get()
    documents = Document.objects.count()
    assert store_result(stale, Finish("nothing_to_do"), by=worker_actor("stale"), clock=db_clock) is None
    assert Run.objects.filter(pk=run.pk).values().get() == before
    assert Document.objects.count() == documents
    [event] = Event.objects.filter(kind="step.late_result_dropped")
    assert (event.subject_id, event.performed_by) == (stale.step.pk, "worker:stale")


def test_a_step_from_which_no_worker_comes_back_is_set_aside(desk: Desk) -> None:
    run = desk.start()
    for _ in range(5):
        assert claim_step(lane=Lane.NEW, by=SWEEP, clock=db_clock)
        age(run.pk, 31, "workflows_step")
        release_lost_steps(by=SWEEP)
        age(run.pk, 6, "workflows_step")
    other = desk.start()
    desk.advance()
    assert state(run.pk)[0] == "manual_repair"
    assert open_packets(run.pk) == ["quarantined"]
    assert state(other.pk)[0] == "waiting_for_approval"


# -- transient failures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "status"),
    [(SourceDown("away"), "waiting_for_provider"), (RateLimited(timedelta(seconds=7)), "waiting_for_retry")],
)
def test_transient_failures_are_tried_again_and_then_go_to_a_person(
    desk: Desk, failure: Exception, status: str
) -> None:
    run = ran(desk, read=raises(failure))
    assert run.status == status
    tried = step(run, "read")
    assert tried.due_at is not None
    assert (run.waiting_until, run.on_expiry) == (tried.waiting_until, "manual_queue")
    if isinstance(failure, RateLimited):
        assert abs((tried.due_at - db_clock()).total_seconds() - 7) < 3
    for _ in range(9):
        as_superuser("UPDATE workflows_step SET due_at = now() WHERE due_at IS NOT NULL")
        desk.advance()
    assert state(run.pk)[0] == "manual_repair"
    assert desk.till.stage_calls == ["read"] * 6
    assert len(open_packets(run.pk)) == 1
    assert step(run, "read").failure_code in ("source_down", "rate_limited")


def test_transient_failures_are_capped_by_total_time(desk: Desk) -> None:
    run = ran(desk, read=raises(SourceDown("away")))
    as_superuser("UPDATE workflows_step SET due_at = now(), first_tried_at = first_tried_at - interval '15 minutes'"
                 " WHERE due_at IS NOT NULL")  # fmt: skip
    desk.advance()
    assert state(run.pk)[0] == "manual_repair"
    assert desk.till.stage_calls == ["read"] * 2


def test_the_pause_doubles_with_jitter_up_to_a_cap() -> None:
    retry = ToyFlow.stages[0].retry
    for attempt, most in ((1, 2), (2, 4), (3, 8), (20, 120)):
        pauses = [backoff(retry, attempt).total_seconds() for _ in range(50)]
        assert most * 0.1 <= min(pauses) < max(pauses) <= most
        assert len(set(pauses)) > 40


# -- what is never tried again -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "cause"),
    [
        (Malformed("unknown_category", {"category": "<b>?"}), "unknown_category"),
        (CredentialRefused("401"), "credential_refused"), (NotAllowed("not_yours"), "not_yours"),
        (OperationRefused("above_paid", "More than was paid."), "above_paid"), (ValueError("a bug"), "stage_broke"),
    ],
    ids=["malformed", "credential", "not allowed", "refused", "bug"],
)  # fmt: skip
def test_what_is_wrong_is_not_tried_again(desk: Desk, failure: Exception, cause: str) -> None:
    run = ran(desk, judge=raises(failure))
    assert state(run.pk)[0] == "manual_repair"
    assert open_packets(run.pk) == [cause]
    age(run.pk, 3600, "workflows_step")
    desk.advance()
    assert desk.till.stage_calls == ["read", "judge"]


def test_a_refused_suggestion_is_kept_as_it_was(desk: Desk) -> None:
    suggestion = {"category": "<script>", "amount": "1O.00", "evil": "\u202e"}
    run = ran(desk, judge=raises(Malformed("unknown_category", suggestion)))
    kept = Document.objects.get(run_id=run.pk, kind="kept.judge")
    assert load_json(kept) == suggestion
    assert step(run, "judge").notes == [f"kept:{kept.pk}"]
    assert "script" not in str(envelope(run))


def test_arguments_that_do_not_fit_are_kept_and_nobody_is_asked(desk: Desk) -> None:
    """Field report B12."""
    arguments = {"order": "1042", "amount": 10.5, "currency": "EUR"}
    run = ran(desk, pay=Propose("toy.pay", arguments, "because"))
    assert state(run.pk)[0] == "manual_repair"
    assert not Proposal.objects.exists()
    assert load_json(Document.objects.get(run_id=run.pk, kind="kept.pay"))["errors"]


def test_what_the_policy_refuses_is_not_asked(desk: Desk) -> None:
    desk.till.verdict = Verdict("refuse", "toy.never", "Toys are never paid.")
    run = ran(desk)
    assert not Proposal.objects.exists()
    assert open_packets(run.pk) == ["toy.never"]


@pytest.mark.parametrize(
    ("confidence", "goes_on"), [("0.7", True), ("0.699", False), ("0", False), ("1", True)]
)
def test_below_the_threshold_a_judgement_goes_to_a_person(desk: Desk, confidence: str, goes_on: bool) -> None:
    run = ran(desk, judge=Done({"category": "refund"}, confidence=Decimal(confidence)))
    assert (run.confidence, run.status == "waiting_for_approval") == (Decimal(confidence), goes_on)
    if not goes_on:
        assert open_packets(run.pk) == ["low_confidence"]
        assert load_json(Document.objects.get(run_id=run.pk, kind="kept.judge")) == {"category": "refund"}


@pytest.mark.parametrize(
    "result",
    [
        Fail("no such case"), Finish("no such case"), None, "done", Done({"amount": object()}),
        Done(confidence=Decimal("NaN")), Done(confidence=Decimal(99)), Done(confidence=Decimal("1.01")),
        Done({"text": "\ud800"}),
    ],
    ids=[
        "fail-no-such-case", "finish-no-such-case", "none", "text", "no-json", "nan", "far-above-one", "above-one",
        "lone-surrogate",
    ],
)  # fmt: skip
def test_a_result_that_cannot_be_stored_breaks_this_stage_only(desk: Desk, result: Any) -> None:
    run = ran(desk, judge=result)
    assert state(run.pk)[0] == "manual_repair"
    assert open_packets(run.pk) == ["stage_broke"]
    desk.till.stages.clear()
    assert desk.proposed().status == "pending"


# -- ends by the exception table ---------------------------------------------------------------------------------


def test_fail_ends_the_run_as_its_row_says(desk: Desk) -> None:
    run = ran(desk, judge=Fail("unknown_order"))
    assert state(run.pk) == (
        "failed", {"read": "completed", "judge": "failed", "pay": "skipped", "tell": "skipped"},
    )  # fmt: skip
    assert (run.outcome, run.user_message, run.failure_code) == (
        "no_action",
        "There is no such order.",
        "unknown_order",
    )
    assert envelope(run)["next_action"] == "stop"


def test_finish_ends_the_run_well(desk: Desk) -> None:
    run = ran(desk, judge=Finish("nothing_to_do", {"why": "paid already"}))
    assert state(run.pk) == (
        "completed", {"read": "completed", "judge": "completed", "pay": "skipped", "tell": "skipped"},
    )  # fmt: skip
    assert (run.outcome, run.failure_code) == ("no_action", "")
    assert load_json(Document.objects.get(pk=step(run, "judge").result_ref)) == {"why": "paid already"}


def test_to_a_person(desk: Desk) -> None:
    run = ran(desk, judge=ToPerson("odd", {"seen": "this"}))
    assert (run.status, run.on_expiry) == ("manual_repair", "escalate")
    assert open_packets(run.pk) == ["odd"]


# -- code that changes while runs are on their way ---------------------------------------------------------------


def test_a_run_of_a_workflow_that_this_code_does_not_have_is_left_alone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant I17, and I18: it does not stand before the others either."""
    first = desk.start()
    age(first.pk, 60, "workflows_step")
    other = desk.start(workflow="toy-execute")
    known = registry._workflows
    monkeypatch.setattr(registry, "_workflows", {k: v for k, v in known.items() if k != "toy-pay"})
    desk.advance()
    assert state(first.pk)[0] == "queued"
    assert state(other.pk)[0] == "waiting_for_approval"


def test_a_run_of_a_newer_version_waits_for_newer_code(desk: Desk) -> None:
    run = desk.start()
    as_superuser("UPDATE workflows_run SET workflow_version = 2 WHERE id = %s", run.pk)
    assert desk.advance() == 0


def test_a_run_of_an_older_version_goes_on_while_its_stages_are_there(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field report R1: a release does not strand what is parked."""
    goes_on, stops = desk.start(), desk.start()
    as_superuser("UPDATE workflows_step SET key = 'gone' WHERE run_id = %s AND key = 'judge'", stops.pk)
    monkeypatch.setattr(ToyFlow, "version", 2)
    desk.advance()
    assert state(goes_on.pk)[0] == "waiting_for_approval"
    assert state(stops.pk)[0] == "manual_repair"
    assert open_packets(stops.pk) == ["stage_gone"]
