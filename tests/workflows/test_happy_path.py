"""An event becomes a proposal, a person approves exactly what they see, a worker does it once."""

import pytest

from approvals.models import Proposal
from audit.models import Event
from tests.workflows.conftest import Desk, state
from workflows.models import Attempt, Command, Run

pytestmark = pytest.mark.django_db


def test_from_event_to_effect(desk: Desk) -> None:
    run = desk.start()
    assert desk.advance() == 3
    assert state(run.pk) == (
        "waiting_for_approval", {"read": "completed", "judge": "completed", "pay": "waiting", "tell": "pending"},
    )  # fmt: skip

    proposal = Proposal.objects.get(run_id=run.pk)
    assert proposal.consequence == "Pay EUR 10.00 for order 1042."
    outcome = desk.decide(proposal)
    assert (outcome.result, outcome.votes, outcome.needed, outcome.proposal_status) == (
        "approved",
        1,
        1,
        "approved",
    )
    assert state(run.pk)[0] == "executing"

    assert desk.work() == 1
    command = Command.objects.get(pk=outcome.command_id)
    assert (command.status, command.effect, command.provider_reference, command.settled_by) == (
        "confirmed", "happened", "re_1", "answer",
    )  # fmt: skip
    desk.advance()
    assert state(run.pk) == ("completed", dict.fromkeys(["read", "judge", "pay", "tell"], "completed"))
    run = Run.objects.get(pk=run.pk)
    assert (run.outcome, run.user_message) == ("paid", "It was paid.")
    [call] = desk.till.calls
    assert call.idempotency_key == command.idempotency_key == proposal.idempotency_key
    assert Attempt.objects.get(command=command).status == "answered"


def test_every_change_of_state_has_its_event(desk: Desk) -> None:
    command = desk.approved()
    desk.work()
    desk.advance()
    moves = list(
        Event.objects.filter(run_id=command.run_id).exclude(to_state="").order_by("at", "id")
        .values_list("kind", flat=True)
    )  # fmt: skip
    expected = [
        "run.queued", "step.running", "run.running", "step.completed", "step.running", "step.completed",
        "step.running", "step.waiting", "proposal.made", "run.waiting_for_approval", "proposal.approved",
        "command.ready", "step.waiting", "run.executing", "command.claimed", "command.sent", "command.confirmed",
        "proposal.consumed", "step.completed", "run.running", "step.running", "step.completed", "run.completed",
    ]  # fmt: skip
    assert moves == expected
