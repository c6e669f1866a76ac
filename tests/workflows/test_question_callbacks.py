"""A question to whoever asked for a run is told where it calls back: ids and times, and none of the words."""

import pytest

from approvals.actions_questions import ask
from approvals.models import Proposal
from common.clock import db_clock
from tests.workflows.conftest import Desk, person
from tests.workflows.receiver import Receiver
from tests.workflows.test_callbacks import receiver, register, send, start

__all__ = ["receiver"]
pytestmark = pytest.mark.django_db


def test_a_question_is_told_and_a_colleagues_is_not(desk: Desk, receiver: Receiver) -> None:
    register(desk, receiver.url)
    run = start(desk)
    desk.advance()
    proposal = Proposal.objects.get(run_id=run.pk)
    for colleague in (desk.ben.pk, None):
        assert send() == 0
        question = ask(
            tenant_id=desk.tenant.pk, proposal_id=proposal.pk, text="kanarienvogel?", colleague=colleague,
            by=person(desk.ada), clock=db_clock,
        ).question  # fmt: skip
    assert send() == 1
    [heard] = receiver.heard
    assert heard.body["type"] == "run.waiting_for_approval"
    [told] = heard.data["questions"]
    assert (told["id"], told["proposal_id"]) == (str(question.pk), str(proposal.pk))
    assert "kanarienvogel" not in str(heard.body)
