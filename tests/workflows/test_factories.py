"""The factories of the tests: every state of every row can be had, by legal moves, past every wall."""

import pytest

from approvals.enums import ProposalStatus
from repair.enums import PacketStatus
from tests import factories
from workflows.enums import AttemptStatus, CommandStatus, RunStatus, StepStatus

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", ProposalStatus.values)
def test_a_proposal_in_every_state(status: str) -> None:
    proposal = factories.make_proposal(status=status)
    proposal.refresh_from_db()
    assert proposal.status == status


@pytest.mark.parametrize("status", CommandStatus.values)
def test_a_command_in_every_state(status: str) -> None:
    command = factories.make_command(status=status)
    command.refresh_from_db()
    assert command.status == status


@pytest.mark.parametrize("status", RunStatus.values)
def test_a_run_in_every_state(status: str) -> None:
    run = factories.make_run(status=status)
    run.refresh_from_db()
    assert run.status == status


@pytest.mark.parametrize("status", StepStatus.values)
def test_a_step_in_every_state(status: str) -> None:
    step = factories.make_step(status=status)
    step.refresh_from_db()
    assert step.status == status


@pytest.mark.parametrize("status", AttemptStatus.values)
def test_an_attempt_in_every_state(status: str) -> None:
    attempt = factories.make_attempt(factories.make_command(), status=status)
    attempt.refresh_from_db()
    assert attempt.status == status


@pytest.mark.parametrize("status", PacketStatus.values)
def test_a_packet_in_every_state(status: str) -> None:
    packet = factories.make_packet(status=status)
    packet.refresh_from_db()
    assert packet.status == status
