"""Nobody can miss it: what the signer refuses becomes an event, a mail and a bar, of the installation's chain too."""

from pathlib import Path
from uuid import UUID

import pytest
from django.core import mail

from access.enums import Role
from audit.actors import INSTALLATION, clock_actor
from audit.models import Event, Head
from audit.proof import alarms
from audit.reporting import write_down_reports
from audit.sealer import seal
from audit.tasks import verify_daily
from common.clock import db_clock
from common.models import Tenant
from notify.models import Message
from notify.running import tell_due
from tests import factories
from tests.audit.events import tamper
from tests.audit.signing import look, sealed, signer

pytestmark = pytest.mark.django_db
BY = clock_actor("test")


@pytest.fixture
def tenant() -> Tenant:
    tenant = factories.make_tenant("harbour")
    factories.make_user(tenant, "root", roles=[Role.ADMIN], email="root@harbour.example")
    factories.make_user(tenant, "ada", roles=[Role.REVIEWER], email="ada@harbour.example")
    return tenant


def refused(chain: UUID, folder: Path) -> None:
    sealed(chain, 3)
    look(folder)
    tamper("UPDATE audit_seal SET hash = repeat('a', 64) WHERE tenant_id = %s AND seq = 3", chain)
    look(folder)


def put_back(chain: UUID) -> None:
    head = Head.objects.get(tenant_id=chain)
    tamper("UPDATE audit_seal SET hash = %s WHERE tenant_id = %s AND seq = 3", head.hash, chain)


def kinds(tenant_id: UUID) -> list[str]:
    found = Event.objects.filter(tenant_id=tenant_id, kind__startswith="chain.").order_by("at", "id")
    return list(found.values_list("kind", flat=True))


def titles(tenant: Tenant) -> list[str]:
    return [alarm.title for alarm in alarms(tenant.pk, db_clock())]


def told_to_admins(tenant: Tenant) -> list[str]:
    """What stands in their mails."""
    seal(db_clock)
    tell_due()
    tell_due()
    found = Message.objects.filter(tenant_id=tenant.pk, kind="history_alarm").order_by("created_at")
    mails = [letter for letter in mail.outbox if letter.to == ["root@harbour.example"]]
    assert len(mails) == len(mail.outbox) == found.count()
    return list(found.values_list("lead", flat=True))


def test_a_refusal_is_written_down_once_and_admins_get_a_mail(tenant: Tenant, tmp_path: Path) -> None:
    refused(tenant.pk, tmp_path / "signer")
    assert (write_down_reports(by=BY), write_down_reports(by=BY)) == (1, 0)
    assert kinds(tenant.pk) == ["chain.refused"]
    put_back(tenant.pk)
    [lead] = told_to_admins(tenant)
    assert lead == "The signer refuses this organisation's history: it is not the one that was signed"
    with signer(tmp_path / "signer") as work:
        work.accept(tenant.pk, "We know why", "anna")
    assert write_down_reports(by=BY) == 1
    assert kinds(tenant.pk) == ["chain.refused", "chain.accepted"]


def test_the_installations_own_chain_is_everybodys_matter(tenant: Tenant, tmp_path: Path) -> None:
    other = factories.make_tenant("quay")
    refused(INSTALLATION, tmp_path / "signer")
    assert write_down_reports(by=BY) == 1
    for one in (tenant, other):
        assert kinds(one.pk) == ["chain.refused"]
        assert titles(one) == ["The installation's own history is not the one that was signed"]
    assert kinds(INSTALLATION) == ["chain.refused"]
    put_back(INSTALLATION)
    [lead] = told_to_admins(tenant)
    assert lead.startswith("The signer refuses the installation's own history")
    with signer(tmp_path / "signer") as work:
        work.accept(INSTALLATION, "We know why", "anna")
    write_down_reports(by=BY)
    assert titles(tenant) == []


def test_a_broken_chain_of_the_installation_is_everybodys_matter(tenant: Tenant) -> None:
    sealed(INSTALLATION, 3)
    sealed(tenant.pk, 1)
    assert verify_daily() is True
    assert kinds(tenant.pk) == ["chain.verified"]
    tamper("UPDATE audit_event SET reason = 'x' WHERE id = (SELECT event_id FROM audit_seal WHERE tenant_id = %s"
           " AND seq = 2)", INSTALLATION)  # fmt: skip
    assert verify_daily() is False
    assert titles(tenant) == ["The installation's own history did not hold when it was last checked"]
    assert told_to_admins(tenant) == ["The installation's own history did not hold when it was checked"]
    tamper("UPDATE audit_event SET reason = '' WHERE id = (SELECT event_id FROM audit_seal WHERE tenant_id = %s"
           " AND seq = 2)", INSTALLATION)  # fmt: skip
    assert verify_daily() is True
    assert titles(tenant) == []
    before = len(kinds(tenant.pk))
    assert verify_daily() is True
    assert len(kinds(tenant.pk)) == before + 1, "only its own verdict: nothing stands to be taken back"


def test_checkpoints_that_nobody_keeps_are_an_alarm_after_two_days(tenant: Tenant, tmp_path: Path) -> None:
    sealed(tenant.pk, 3)
    look(tmp_path / "signer")
    assert titles(tenant) == []
    tamper("UPDATE audit_checkpoint SET recorded_at = recorded_at - interval '49 hours'")
    assert titles(tenant) == ["Nobody outside keeps checkpoints of the history"]
