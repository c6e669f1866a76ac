"""Ends that nobody would come to by themselves: lapsed where no worker can claim it, cancelled after it happened."""

from collections.abc import Callable

import pytest

from approvals.models import Proposal
from approvals.refusals import OwnProposal
from audit.actors import clock_actor
from common.clock import db_clock
from tests.workflows.conftest import AGENT, Desk, person
from tests.workflows.later import age, as_superuser, end_of, open_packets
from tests.workflows.test_worker_stops import brought, propose, take_back
from tests.workflows.toy import NOTHING_CAME
from workflows.actions.cancelling import cancel_run
from workflows.actions.runs import Source, start_run
from workflows.enums import Lane
from workflows.models import Attempt, Command, Run
from workflows.results import ToPerson
from workflows.worker.claim import claim_commands
from workflows.worker.recover import void_lapsed

pytestmark = pytest.mark.django_db
SWEEP = clock_actor()


def behind_an_unknown(desk: Desk) -> Command:
    """A ready command whose target an unknown outcome holds."""
    desk.approved()
    desk.till.answers = [NOTHING_CAME]
    desk.work()
    proposal = desk.proposed()
    as_superuser("UPDATE approvals_proposal SET business_key = 'another' WHERE id = %s", proposal.pk)
    proposal.refresh_from_db()
    desk.decide(proposal)
    return Command.objects.get(proposal=proposal)


def test_what_lapses_behind_an_unknown_outcome_is_void_and_a_person_is_asked(desk: Desk) -> None:
    """Invariant I3: it does not look as if it were about to be executed."""
    command = behind_an_unknown(desk)
    age(command.run_id, 599)
    assert (void_lapsed(by=SWEEP, clock=db_clock), desk.work()) == (0, 0)
    assert end_of(command)["command"] == "ready"
    age(command.run_id, 2)
    assert (void_lapsed(by=SWEEP, clock=db_clock), desk.work()) == (1, 0)
    assert end_of(command) == {
        "command": "void(lapsed)", "effect": "none", "proposal": "lapsed", "step": "waiting(person)",
        "run": "manual_repair", "packets": ["command_lapsed"],
    }  # fmt: skip


def test_what_a_worker_holds_is_left_to_it(desk: Desk) -> None:
    command = desk.approved()
    assert claim_commands(limit=1, lane=Lane.NEW, worker="one", by=SWEEP, clock=db_clock)
    age(command.run_id, 601, "approvals_proposal")
    assert void_lapsed(by=SWEEP, clock=db_clock) == 0
    assert end_of(command)["command"] == "claimed"


def test_a_run_is_not_cancelled_as_if_nothing_had_happened(desk: Desk) -> None:
    """The money is gone: *cancel* is a wish then, and the later stages still tell the requester."""
    desk.till.stages["tell"] = ToPerson("odd")
    command = desk.approved()
    desk.work()
    desk.advance()
    said = cancel_run(
        tenant_id=desk.tenant.pk, run_id=command.run_id, reason="changed my mind", by=AGENT, clock=db_clock
    )
    run = Run.objects.get(pk=command.run_id)
    assert (said, run.status, run.outcome) == ("cancel_requested", "manual_repair", "")
    assert run.cancel_requested_at is not None
    assert open_packets(run.pk) == ["odd"]


def test_nobody_decides_on_the_run_that_they_started_themselves(desk: Desk) -> None:
    """Invariant 6, whoever the caller of the action is."""
    started = start_run(
        tenant_id=desk.tenant.pk, workflow="toy-pay", input={"order": "1042"}, by=person(desk.ada),
        clock=db_clock, source=Source("test", "e-1"),
    )  # fmt: skip
    desk.advance()
    proposal = Proposal.objects.get(run_id=started.run.pk)
    with pytest.raises(OwnProposal):
        desk.decide(proposal, user=desk.ada)
    desk.decide(proposal, user=desk.ben)


def supersede(desk: Desk, command: Command) -> None:
    propose(desk, amount="11.00", supersedes=command.proposal_id)


def cancel(desk: Desk, command: Command) -> None:
    cancel_run(tenant_id=desk.tenant.pk, run_id=command.run_id, reason="no", by=AGENT, clock=db_clock)


@pytest.mark.parametrize(
    ("stop", "outcome"), [(take_back, "withdrawn"), (supersede, "superseded"), (cancel, "cancelled")]
)
def test_a_try_that_was_stopped_before_it_was_sent_has_an_end_too(
    desk: Desk, stop: Callable[[Desk, Command], object], outcome: str
) -> None:
    command, _ = brought(desk, "claimed")
    stop(desk, command)
    attempt = Attempt.objects.get(command=command)
    assert (attempt.status, attempt.outcome, attempt.sent_at) == ("released", outcome, None)
