"""Values that the product never writes, put in to make the check fail: found, and nobody else's check fails with it."""

from io import StringIO
from pathlib import Path
from uuid import UUID

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from audit.checks import BROKEN, HOLDS, last_check
from audit.exporting import HistoryUnreadable
from audit.models import Event
from audit.panel import chain_panel
from audit.proof import alarms
from audit.sealer import seal
from audit.tasks import verify_daily
from audit.verify import Cause, verify_whole
from common.clock import db_clock
from tests.audit.bundling import taken
from tests.audit.events import tamper, write, write_one
from tests.workflows.conftest import Desk, desk

__all__ = ["desk"]
pytestmark = pytest.mark.django_db
OTHER = UUID(int=2**127)
"""Checked behind the tenant of the desk: its id is larger."""
VALUES = {
    "a time without end": "UPDATE approvals_decision SET at = 'infinity' WHERE tenant_id = %s",
    "a number beyond all": "UPDATE approvals_proposal SET policy = jsonb_set(policy, '{version}', '1e30')"
    " WHERE tenant_id = %s",
    "a list as a body": """
        INSERT INTO audit_event (id, tenant_id, kind, subject_type, subject_id, from_state, to_state, performed_by,
            on_behalf_of, via, owner, reason, request_id, digest, body, at, xid)
        SELECT gen_random_uuid(), tenant_id, 'proposal.vote', 'proposal', id, '', '', 'user:x', '', 'session',
            'person', '', '', '', '[]', now(), pg_current_xact_id()::text::bigint
        FROM approvals_proposal WHERE tenant_id = %s""",
}


@pytest.mark.parametrize("value", VALUES)
def test_what_cannot_be_read_is_a_finding_and_stops_no_other_check(desk: Desk, value: str) -> None:
    desk.approved()
    write(OTHER, 2)
    seal(db_clock)
    assert verify_daily() is True
    tamper(VALUES[value], desk.tenant.pk)
    seal(db_clock)
    assert verify_daily() is False
    mine, other = (last_check(tenant_id) for tenant_id in (desk.tenant.pk, OTHER))
    assert mine is not None and not mine.holds and other is not None and other.holds
    assert [alarm.title for alarm in alarms(desk.tenant.pk, db_clock())] == [
        "The history did not hold when it was last checked"
    ]
    assert Event.objects.filter(tenant_id=desk.tenant.pk, kind=BROKEN, reason=Cause.UNREADABLE).count() == 1
    assert Event.objects.filter(tenant_id=OTHER, kind=HOLDS).count() == 2


def test_the_command_says_that_it_cannot_be_checked(desk: Desk) -> None:
    desk.approved()
    write(OTHER, 2)
    tamper(VALUES["a time without end"], desk.tenant.pk)
    said = StringIO()
    with pytest.raises(SystemExit) as stopped:
        call_command("verify_audit", stdout=said)
    mine, other = said.getvalue().splitlines()
    assert stopped.value.code == 1
    assert "harbour: THE HISTORY CANNOT BE CHECKED." in mine and "DataError" in mine
    assert "the chain holds" in other


def test_no_bundle_is_made_of_it_and_the_answer_says_so(desk: Desk, tmp_path: Path) -> None:
    desk.approved()
    tamper(VALUES["a time without end"], desk.tenant.pk)
    with pytest.raises(HistoryUnreadable):
        taken(desk.tenant)
    with pytest.raises(CommandError, match="a form that the product never writes"):
        call_command("export_bundle", str(tmp_path / "bundle.zip"), tenant="harbour")
    assert not (tmp_path / "bundle.zip").exists()
    assert verify_whole(desk.tenant.pk).cause == Cause.UNREADABLE


@pytest.mark.parametrize("kind", [HOLDS, BROKEN])
def test_an_event_of_a_check_that_says_nothing_is_shown_all_the_same(desk: Desk, kind: str) -> None:
    """Somebody put it in: pages that every admin opens must not fail over it."""
    write_one(desk.tenant.pk, kind=kind, subject_type="chain", subject_id=desk.tenant.pk)
    last = last_check(desk.tenant.pk)
    assert last is not None and (last.sealed, last.meaning, last.holds) == (0, "", kind == HOLDS)
    assert chain_panel(desk.tenant.pk, db_clock()).sentences
    assert len(alarms(desk.tenant.pk, db_clock())) == (kind == BROKEN)
