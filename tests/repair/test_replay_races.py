"""What comes in the same instant as a replay proposes, is approved, or is sent: its effect never comes twice."""

from typing import Any

import pytest
from django.db import transaction

from approvals.models import Proposal
from audit.models import Event
from common.clock import db_clock
from common.errors import Refused
from tests import factories
from tests.repair.replaying import advance, anew, given_up, operator_of, replayed
from tests.workflows.conftest import AGENT, Desk, state
from tests.workflows.later import SWEEP, fresh
from tests.workflows.test_late_answers import freed
from tests.workflows.test_races import Beside
from tests.workflows.together import at_once, in_threads
from tests.workflows.toy import NOTHING_CAME, PAID
from workflows.actions.cancelling import cancel_run
from workflows.models import Attempt, Command, Run
from workflows.worker.claim import Claim
from workflows.worker.store import store_answer

pytestmark = pytest.mark.django_db
LATE = {
    "meaning": "confirmed",
    "status": 201,
    "reference": "re_late",
    "code": "",
    "at": "2026-01-01T00:00:00Z",
}


def freed_and_cancelled(desk: Desk) -> tuple[Run, Claim]:
    """Nothing happened, as everybody thinks; and somewhere a worker still holds what it heard."""
    command, claim = freed(desk)
    cancel_run(tenant_id=desk.tenant.pk, run_id=command.run_id, reason="no need", by=AGENT, clock=db_clock)
    return Run.objects.get(pk=command.run_id), claim


def test_evidence_that_is_being_stored_is_waited_for(desk: Desk) -> None:
    original, _ = freed_and_cancelled(desk)
    run = replayed(desk, original, anew())
    with transaction.atomic():
        held = Command.objects.select_for_update(of=("self",), no_key=True).get(run=original)
        engine = Beside(advance)
        assert engine.waits()
        Attempt.objects.filter(command=held).update(late_evidence=LATE)
    assert engine.end() == 4
    assert not Proposal.objects.filter(run_id=run.pk).exists()
    assert Event.objects.get(kind="step.not_repeated").reason == "late"


def test_evidence_waits_for_who_proposes_and_then_keeps_it_from_being_sent(desk: Desk) -> None:
    original, claim = freed_and_cancelled(desk)
    run = replayed(desk, original, anew())
    with transaction.atomic():
        # As the proposing transaction holds it.
        Command.objects.select_for_update(of=("self",), no_key=True).get(run=original)
        late = Beside(lambda: store_answer(claim, PAID, by=SWEEP, clock=db_clock))
        assert late.waits()
    assert not isinstance(late.end(), Exception)
    advance()
    assert not Proposal.objects.filter(run_id=run.pk).exists()


@pytest.mark.parametrize("number", range(4))
def test_in_whatever_order_the_late_answer_comes_nothing_is_sent_after_it(desk: Desk, number: int) -> None:
    original, claim = freed_and_cancelled(desk)
    run = replayed(desk, original, anew())
    doing = (advance, lambda: store_answer(claim, PAID, by=SWEEP, clock=db_clock))
    for result in in_threads(2, lambda which: doing[(which + number) % 2]()):
        assert not isinstance(result, Exception), result
    proposal = Proposal.objects.filter(run_id=run.pk).first()
    if proposal is not None:
        with pytest.raises(Refused) as info:
            desk.decide(proposal)
        assert info.value.code == "effect_not_repeated"
    desk.work()
    assert desk.till.calls == []
    assert not Command.objects.filter(run=run).exists()


def test_a_late_answer_and_the_worker_that_has_the_approved_order(desk: Desk) -> None:
    original, claim = freed_and_cancelled(desk)
    run = replayed(desk, original, anew())
    advance()
    desk.decide(Proposal.objects.get(run_id=run.pk))
    command = Command.objects.get(run=run)
    store_answer(claim, PAID, by=SWEEP, clock=db_clock)
    desk.work()
    assert desk.till.calls == []
    assert (fresh(command).status, fresh(command).failure_code) == ("dead", "earlier_effect")


@pytest.mark.parametrize("number", range(3))
def test_while_the_originals_order_is_being_sent_the_replay_proposes_nothing(desk: Desk, number: int) -> None:
    command = desk.approved()
    desk.till.answers = [NOTHING_CAME] if number else []
    original = Run.objects.get(pk=command.run_id)
    run = factories.make_run(
        desk.tenant, kind="replay", original=original, workflow="toy-pay", lane="reprocess",
        input_ref=original.input_ref,
    )  # fmt: skip
    factories.make_replay(run, operator_of(desk))
    factories.make_step(run, key="pay", kind="side_effect", lane="reprocess", due_at=db_clock())
    doing: tuple[Any, ...] = (advance, desk.work)
    for result in in_threads(2, lambda which: doing[(which + number) % 2]()):
        assert not isinstance(result, Exception), result
    assert not Proposal.objects.filter(run_id=run.pk).exists()
    assert Run.objects.get(pk=run.pk).outcome == "effect_not_repeated"
    assert len(desk.till.calls) == 1


def test_of_two_replays_that_may_act_one_is_made(desk: Desk) -> None:
    original = given_up(desk)
    omar = operator_of(desk)
    found = at_once(2, lambda _: replayed(desk, original, anew(), by=omar).kind)
    assert dict(found) == {"replay": 1, "cannot_replay": 1}
    assert state(original.pk)[0] == "cancelled"
