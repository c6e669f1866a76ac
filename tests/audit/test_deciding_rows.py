"""Rows that decide and are none of a proposal's: freezes, postures, duties, and who asked. Changed, they are found."""

from datetime import timedelta

import pytest

from access.actions import create_tenant
from access.actions_people import end_duty, give_duty
from access.actions_posture import turn_off, turn_on
from access.enums import DutyKind
from audit.actors import INSTALLATION
from audit.sealer import seal
from audit.tasks import verify_daily
from audit.verify import Cause, verify_whole
from common.clock import db_clock
from tests.access.people import INSTALLER
from tests.audit.bundling import Auditor, found, sign, taken
from tests.audit.events import tamper
from tests.audit.test_rows_tampered import lived, member
from tests.workflows import toy
from tests.workflows.conftest import Desk
from workflows import registry
from workflows.actions.freezing import Scope, freeze, lift
from workflows.models import Hold

pytestmark = pytest.mark.django_db
LATER = timedelta(days=2)


@pytest.fixture
def known(transactional_db: None) -> Desk:
    """A tenant whose history begins with it, with everything in it that is looked at here."""
    toy.install()
    registry.register_definitions(clock=db_clock)
    tenant = create_tenant(slug="harbour", name="Harbour", by=INSTALLER, clock=db_clock)
    ada, ben = (member(tenant, name) for name in ("ada", "ben"))
    return Desk(tenant, ada, ben, toy.reset())


def says(known: Desk) -> str:
    verdict = verify_whole(known.tenant.pk)
    assert verdict.cause in (None, Cause.ROW)
    return verdict.detail


# -- freezes ----------------------------------------------------------------------------------------------------------


def frozen(known: Desk, **scope: object) -> Hold:
    found = freeze(scope=Scope(known.tenant.pk, **scope), why="look", by=INSTALLER, clock=db_clock)  # type: ignore[arg-type]
    seal(db_clock)
    assert says(known) == ""
    return found


@pytest.mark.parametrize(("sql", "what"), [
    ("DELETE FROM workflows_hold WHERE id = %s", "no more in its table"),
    ("UPDATE workflows_hold SET status = 'lifted', lifted_at = now(), ended_at = now() WHERE id = %s", "is lifted"),
    ("UPDATE workflows_hold SET target = 'nothing' WHERE id = %s", "is not as it was placed"),
    ("UPDATE workflows_hold SET runs = ARRAY[gen_random_uuid()] WHERE id = %s", "is not as it was placed"),
    ("UPDATE workflows_hold SET placed_by = 'user:x' WHERE id = %s", "is not as it was placed"),
    ("UPDATE workflows_hold SET placed_at = placed_at + interval '1 s' WHERE id = %s", "is not as it was placed"),
])  # fmt: skip
def test_a_freeze_that_somebody_took_away_past_the_product(known: Desk, sql: str, what: str) -> None:
    hold = frozen(known)
    tamper(sql, hold.pk)
    assert str(hold.pk) in says(known) and what in says(known)
    assert verify_daily() is False


def test_a_freeze_of_named_runs_holds_those_and_no_others(known: Desk) -> None:
    """The words of both are the same: one named run."""
    run = known.start(order="1").pk
    hold = frozen(known, runs=(run,))
    tamper("UPDATE workflows_hold SET runs = ARRAY[gen_random_uuid()] WHERE id = %s", hold.pk)
    assert says(known) == f"The freeze {hold.pk} is not as it was placed."


def test_a_freeze_that_was_put_in_and_one_that_was_lifted(known: Desk) -> None:
    first, _ = frozen(known), frozen(known, operation="toy.pay")
    lift(hold_id=first.pk, tenant_id=known.tenant.pk, why="looked", by=INSTALLER, clock=db_clock)
    assert says(known) == "", "what the product did fits"
    tamper("UPDATE workflows_hold SET id = gen_random_uuid() WHERE id = %s", first.pk)
    assert "stands in no event of the history" in says(known)


def test_a_freeze_of_everything_is_in_the_history_of_the_installation(known: Desk) -> None:
    hold = freeze(scope=Scope(None), why="look", by=INSTALLER, clock=db_clock)
    seal(db_clock)
    assert verify_whole(INSTALLATION).holds
    tamper("DELETE FROM workflows_hold WHERE id = %s", hold.pk)
    assert f"The freeze or circuit {hold.pk} stands in the history" in verify_whole(INSTALLATION).detail
    assert verify_daily() is False


# -- postures and duties ----------------------------------------------------------------------------------------------


def test_break_glass_of_which_nobody_was_told(known: Desk) -> None:
    row = turn_on(
        tenant=known.tenant, reason="alone", ends_at=db_clock() + LATER, by=INSTALLER, clock=db_clock
    )
    assert says(known) == ""
    tamper("UPDATE access_breakglass SET ends_at = ends_at + interval '300 days' WHERE id = %s", row.pk)
    assert says(known) == f"The break-glass {row.pk} is not what the history says."
    tamper("UPDATE access_breakglass SET ends_at = ends_at - interval '300 days' WHERE id = %s", row.pk)
    turn_off(tenant=known.tenant, by=INSTALLER, clock=db_clock)
    assert says(known) == ""
    tamper("UPDATE access_breakglass SET ended_at = NULL WHERE id = %s", row.pk)
    assert says(known) == f"The break-glass {row.pk} is not what the history says."
    tamper("UPDATE access_breakglass SET id = gen_random_uuid() WHERE id = %s", row.pk)
    assert "stands in no event of the history" in says(known)
    tamper("DELETE FROM access_breakglass")
    assert says(known) == f"The break-glass {row.pk} stands in the history and no more in its table."


def test_a_duty_that_was_given_or_taken_past_the_product(known: Desk) -> None:
    duty = give_duty(
        tenant=known.tenant, user=known.ada, kind=DutyKind.OWNER, workflow="toy-pay", by=INSTALLER, clock=db_clock
    )  # fmt: skip
    assert says(known) == ""
    for sql in (
        "UPDATE access_duty SET workflow = 'other' WHERE id = %s",
        "UPDATE access_duty SET workflow = 'toy-pay', ended_at = now() WHERE id = %s",
        "DELETE FROM access_duty WHERE id = %s",
    ):
        tamper(sql, duty.pk)
        assert says(known) == f"The duties of user:{known.ada.pk} are not those that the history says."


def test_duties_that_were_ended_and_given_again_fit(known: Desk) -> None:
    for number in range(2):
        duty = give_duty(
            tenant=known.tenant, user=known.ada, kind=DutyKind.POLICY_EDITOR, workflow="toy-pay", by=INSTALLER,
            clock=db_clock, policy_version=number,
        )  # fmt: skip
        assert says(known) == ""
        end_duty(tenant=known.tenant, duty_id=duty.pk, by=INSTALLER, clock=db_clock, reason="over")
        assert says(known) == ""


# -- who asked --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [
    "requested_by = 'api:other'", "on_behalf_of = 'user:x'", "excluded_users = '[\"x\"]'", "input_hash = 'other'",
    "source_event_id = 'other'", "stage = 'shadow'", "created_at = created_at - interval '1 day'",
    "kind = 'replay', original_id = id",
])  # fmt: skip
def test_who_asked_for_a_run_is_held_fast(known: Desk, column: str) -> None:
    run = known.start(order="1")
    assert says(known) == ""
    tamper(f"UPDATE workflows_run SET {column} WHERE id = %s", run.pk)
    assert says(known) == f"The run {run.pk} is not as it was asked for."


# -- events that were put in ------------------------------------------------------------------------------------------


def again(known: Desk, kind: str) -> None:
    """The event once more, with an id of its own."""
    tamper(
        "INSERT INTO audit_event SELECT (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid(), 'xid',"
        " pg_current_xact_id()::text, 'written', NULL))).* FROM audit_event e WHERE tenant_id = %s AND kind = %s"
        " LIMIT 1",
        known.tenant.pk, kind,
    )  # fmt: skip
    seal(db_clock)


@pytest.mark.parametrize(("kind", "what"), [
    ("proposal.vote", "stands in the history more than once"), ("proposal.made", "more than once"),
    ("proposal.approved", "more than once"),
])  # fmt: skip
def test_an_event_that_was_told_again(
    known: Desk, tmp_path_factory: pytest.TempPathFactory, kind: str, what: str
) -> None:
    lived(known)
    assert says(known) == ""
    again(known, kind)
    detail = says(known)
    assert what in detail or "the history says" in detail
    auditor = Auditor(tmp_path_factory.mktemp("kept"))
    auditor.keep(sign(known.tenant.pk))
    assert found(auditor.verify(taken(known.tenant)))[0] == 1


def test_an_approval_that_nobody_gave(known: Desk) -> None:
    """Its event and its row say so, and there is no decision."""
    proposal = known.proposed(order="1")
    seal(db_clock)
    tamper(
        "UPDATE approvals_proposal SET status = 'approved', decided_at = now(), execute_by = now() + interval '1 hour'"
        " WHERE id = %s",
        proposal.pk,
    )
    tamper(
        "INSERT INTO audit_event SELECT (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid(), 'xid',"
        " pg_current_xact_id()::text, 'written', NULL, 'kind', 'proposal.approved', 'from_state', 'pending',"
        " 'to_state', 'approved', 'body', '{}'::jsonb))).* FROM audit_event e WHERE kind = 'proposal.made'"
        " AND subject_id = %s",
        proposal.pk,
    )
    seal(db_clock)
    assert says(known) == f"The proposal {proposal.pk} is called approved by 0 decisions, and needs 1."
