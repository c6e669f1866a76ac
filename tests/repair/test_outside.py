"""What somebody saw to in another way is not done again: not by a compensation, a remainder or a replay."""

from collections.abc import Iterator

import pytest

from audit.models import Event
from common.clock import db_clock
from common.errors import Refused
from repair.replay.rules import CannotReplay, plan_of
from tests.repair.choosing import Operator, operator, packet_of, unknown
from tests.repair.replaying import advance, anew, operator_of, replayed
from tests.workflows.conftest import Desk, person
from tests.workflows.later import SWEEP, age, fresh
from tests.workflows.test_compensating import paid, undo
from tests.workflows.toy_back import installed
from workflows.actions.attesting import attest
from workflows.actions.cancelling import cancel_run
from workflows.enums import SettledBy
from workflows.models import Run
from workflows.worker.recover import void_lapsed

pytestmark = pytest.mark.django_db


@pytest.fixture
def back(desk: Desk) -> Iterator[Desk]:
    with installed(desk):
        yield desk


@pytest.fixture
def opal(back: Desk) -> Operator:
    return operator(back)


def test_a_compensation_that_was_seen_to_outside_is_not_proposed_again(back: Desk, opal: Operator) -> None:
    command = paid(back)
    proposal = undo(back, command, opal.user)
    back.decide(proposal)
    age(proposal.run_id, 3600)
    assert void_lapsed(by=SWEEP, clock=db_clock) == 1
    assert (
        opal.choose(
            packet_of(proposal.run_id), "close", words="Taken back in the provider's pages."
        ).status_code
        == 302
    )
    with pytest.raises(Refused) as refused:
        undo(back, command, opal.user)
    assert refused.value.code == "already_undone"


def test_that_it_was_seen_to_outside_is_written_with_the_end_itself(back: Desk, opal: Operator) -> None:
    """A process that ends right after it must not leave a run that looks as if nothing had been done."""
    run = Run.objects.get(pk=back.proposed().run_id)
    cancel_run(
        tenant_id=back.tenant.pk, run_id=run.pk, reason="By hand.", by=person(opal.user), clock=db_clock,
        settled_by=SettledBy.PERSON,
    )  # fmt: skip
    run.refresh_from_db()
    assert (run.status, run.corrected_outcome, run.correction_reason) == (
        "cancelled",
        "handled_outside",
        "By hand.",
    )
    assert Event.objects.get(kind="run.outcome_corrected").to_state == "handled_outside"
    with pytest.raises(CannotReplay):
        plan_of(run, anew())


def test_that_it_did_not_happen_is_not_that_somebody_saw_to_it(back: Desk, opal: Operator) -> None:
    """A person's word ends an order that is to be cancelled: nothing happened, so a replay may propose it."""
    command, _ = unknown(back)
    cancel_run(
        tenant_id=back.tenant.pk, run_id=command.run_id, reason="no", by=person(opal.user), clock=db_clock
    )
    attest(
        tenant_id=back.tenant.pk, command_id=command.pk, says="did_not_happen", reference="", reason="I looked.",
        by=person(opal.user), clock=db_clock,
    )  # fmt: skip
    assert (fresh(command).status, fresh(command).settled_by) == ("cancelled", "person")
    back.advance()
    run = replayed(back, Run.objects.get(pk=command.run_id), anew(), by=operator_of(back))
    advance()
    assert Run.objects.get(pk=run.pk).status == "waiting_for_approval"
