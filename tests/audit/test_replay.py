"""The tables are compared with the events: a row that was changed past the product is found, and nothing else is."""

from io import StringIO
from uuid import UUID

import pytest
from django.core.management import call_command

from approvals.models import Proposal
from audit import replay
from audit.checks import check_chain, last_check
from audit.proof import alarms
from audit.replay import Misfit, first_misfit
from audit.sealer import seal
from audit.tasks import verify_daily
from audit.verify import Cause, verify, verify_whole
from common.clock import db_clock
from tests import factories
from tests.access.people import INSTALLER
from tests.audit.events import tamper, write_one
from tests.workflows.conftest import Desk
from tests.workflows.conftest import desk as toy_desk
from workflows.models import Command, Run, Step

__all__ = ["toy_desk"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def lived(toy_desk: Desk) -> Desk:
    """A run that was approved, and its events sealed."""
    proposal = toy_desk.proposed()
    toy_desk.decide(proposal)
    seal(db_clock)
    return toy_desk


ALSO = {
    "rejected": ", ended_at = now()",
    "superseded": ", ended_at = now()",
    "skipped": ", finished_at = now()",
    "confirmed": ", effect = 'happened', settled_by = 'person', ended_at = now(), due_at = NULL",
}
"""What the tables' own constraints ask for beside the state."""


def set_status(table: str, status: str, pk: UUID) -> None:
    tamper(f"UPDATE {table} SET status = %s{ALSO.get(status, '')} WHERE id = %s", status, pk)


def test_what_the_product_did_fits(lived: Desk) -> None:
    assert Command.objects.exists() and Step.objects.exists() and Run.objects.exists()
    assert first_misfit(lived.tenant.pk) is None
    assert verify_whole(lived.tenant.pk).holds


def test_a_clock_that_stepped_back_between_two_moves_is_no_misfit(toy_desk: Desk) -> None:
    proposal = toy_desk.proposed()
    seal(db_clock)
    toy_desk.decide(proposal)
    tamper(
        "UPDATE audit_event e SET at = at - interval '1 hour'"
        " WHERE NOT EXISTS (SELECT FROM audit_seal s WHERE s.event_id = e.id)"
    )
    seal(db_clock)
    assert first_misfit(toy_desk.tenant.pk) is None


@pytest.mark.parametrize(
    ("thing", "model", "status"),
    [
        ("proposal", Proposal, "rejected"), ("run", Run, "running"), ("step", Step, "failed"),
        ("command", Command, "confirmed"),
    ],
)  # fmt: skip
def test_a_changed_row_is_found_and_named(lived: Desk, thing: str, model: type, status: str) -> None:
    row = model._default_manager.filter(tenant_id=lived.tenant.pk).order_by("pk").first()
    before = row.status
    set_status(model._meta.db_table, status, row.pk)
    found = first_misfit(lived.tenant.pk)
    assert found == Misfit(thing, row.pk, status, found.told if found else None)
    assert found.told in (before, None)
    verdict = verify_whole(lived.tenant.pk)
    assert (verdict.cause, verdict.seq) == (Cause.ROW, None)
    assert f"The {thing} {row.pk} is {status}" in verdict.meaning
    assert verify(lived.tenant.pk).holds, "the chain itself cannot tell"


def test_a_removed_row_is_found(lived: Desk) -> None:
    command = Command.objects.get(tenant_id=lived.tenant.pk)
    tamper("DELETE FROM workflows_command WHERE id = %s", command.pk)
    found = first_misfit(lived.tenant.pk)
    assert found is not None
    assert (found.thing, found.id, found.stored) == ("command", command.pk, None)
    assert found.says == f"The command {command.pk} stands in the history and no more in its table."


def test_a_row_that_was_put_in_is_found(lived: Desk) -> None:
    """Nothing in the history says that it was ever approved."""
    made = factories.make_proposal(tenant=lived.tenant)
    set_status("approvals_proposal", "superseded", made.pk)
    found = first_misfit(lived.tenant.pk)
    assert found is not None
    assert found.says == f"The proposal {made.pk} is superseded; the history tells of no move."


def test_small_batches_find_the_same(lived: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "BATCH", 1)
    assert first_misfit(lived.tenant.pk) is None
    newest = Step.objects.filter(tenant_id=lived.tenant.pk).order_by("-pk").first()
    assert newest is not None
    set_status("workflows_step", "skipped", newest.pk)
    found = first_misfit(lived.tenant.pk)
    assert found is not None
    assert found.id == newest.pk


def test_another_tenants_row_is_its_own_matter(lived: Desk) -> None:
    other = factories.make_tenant("quay")
    made = factories.make_proposal(tenant=other)
    set_status("approvals_proposal", "superseded", made.pk)
    assert first_misfit(lived.tenant.pk) is None
    assert first_misfit(other.pk) is not None


def test_a_counted_outcome_is_no_state(lived: Desk) -> None:
    run = Run.objects.get(tenant_id=lived.tenant.pk)
    write_one(
        lived.tenant.pk, kind="run.outcome_corrected", subject_type="run", subject_id=run.pk, to_state="completed"
    )  # fmt: skip
    assert first_misfit(lived.tenant.pk) is None


def test_the_daily_check_writes_it_down_and_people_are_alarmed(lived: Desk) -> None:
    command = Command.objects.get(tenant_id=lived.tenant.pk)
    set_status("workflows_command", "confirmed", command.pk)
    assert verify_daily() is False
    last = last_check(lived.tenant.pk)
    assert last is not None
    assert not last.holds
    assert f"The command {command.pk} is confirmed" in last.meaning
    assert [alarm.says for alarm in alarms(lived.tenant.pk, db_clock())] == [last.meaning]
    assert not check_chain(lived.tenant.pk, by=INSTALLER).holds, (
        "a look at the chain alone does not take it back"
    )


def test_the_command_names_it(lived: Desk) -> None:
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert "the chain holds" in out.getvalue()
    run = Run.objects.get(tenant_id=lived.tenant.pk)
    set_status("workflows_run", "running", run.pk)
    with pytest.raises(SystemExit):
        call_command("verify_audit", stdout=out)
    assert (
        f"THE TABLES DO NOT FIT THE HISTORY. The run {run.pk} is running; the history says" in out.getvalue()
    )
