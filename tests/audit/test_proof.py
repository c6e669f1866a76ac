"""What is signed and what is refused, on the page of the history and on every page of those who must know."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client

from access.enums import Role
from audit.checks import check_chain
from audit.models import Checkpoint, Seal
from audit.proof import alarms, proof
from audit.proof_panel import proof_panel
from audit.tasks import verify_daily
from audit.verify import Cause, verify
from common.clock import db_clock
from common.models import Tenant
from config import observed
from tests import factories
from tests.access.people import INSTALLER
from tests.audit.events import tamper
from tests.audit.signing import look, sealed, signer
from tests.config.examined import says

pytestmark = pytest.mark.django_db
OTHER = "ab" * 32


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "signer"


def refused(tenant: Tenant, folder: Path) -> None:
    sealed(tenant.pk, 3)
    look(folder)
    tamper("UPDATE audit_seal SET hash = %s WHERE tenant_id = %s AND seq = 3", OTHER, tenant.pk)
    look(folder)


def panel(tenant: Tenant) -> tuple[str, str, str]:
    found = proof_panel(tenant.pk, db_clock())
    return found.tone, found.title, " ".join(found.sentences)


def test_before_the_first_checkpoint_the_panel_says_so(tenant: Tenant) -> None:
    tone, title, words = panel(tenant)
    assert (tone, title) == ("mute", "Nothing is signed yet")
    assert "Nobody outside is sent checkpoints" in words


def test_the_panel_says_what_is_signed(tenant: Tenant, folder: Path) -> None:
    sealed(tenant.pk, 3)
    look(folder)
    tone, title, words = panel(tenant)
    assert (tone, title) == ("wait", "Signed up to event 3, and kept by nobody else")
    assert "The last checkpoint is of 3 events, signed at" in words


def test_a_signer_that_does_not_work_is_seen(tenant: Tenant, folder: Path) -> None:
    sealed(tenant.pk, 3)
    look(folder)
    sealed(tenant.pk, 1)
    assert not proof(tenant.pk).behind(db_clock())
    later = db_clock() + timedelta(minutes=11)
    assert proof(tenant.pk).behind(later)
    assert proof_panel(tenant.pk, later).title == "The signer is not at work"
    tamper("UPDATE audit_seal SET sealed_at = sealed_at - interval '11 minutes' WHERE seq = 4")
    says("signer", "problem", "No signer is at work")
    assert observed.signed().waiting > 600


def test_a_refusal_is_on_the_panel_and_an_alarm_until_it_is_resolved(tenant: Tenant, folder: Path) -> None:
    refused(tenant, folder)
    tone, title, words = panel(tenant)
    assert (tone, title) == ("bad", "The signer refuses this history")
    assert "The seal of event 3 is not the one that was signed." in words or "first 3 seals" in words
    [alarm] = alarms(tenant.pk, db_clock())
    assert alarm.title == "The history is not the one that was signed"
    says("signer", "problem", "The signer refuses 1 histories")
    assert observed.signed().refused == 1
    with signer(folder) as work:
        work.accept(tenant.pk, "We know why", "anna")
    assert alarms(tenant.pk, db_clock()) == []
    assert panel(tenant)[1] == "Signed up to event 3, and kept by nobody else"
    says("signer", "ok", "1 histories are signed as they go.")


def test_a_broken_chain_is_an_alarm_until_it_holds_again(tenant: Tenant) -> None:
    sealed(tenant.pk, 3)
    before = Seal.objects.get(tenant_id=tenant.pk, seq=2).hash
    tamper("UPDATE audit_seal SET hash = %s WHERE tenant_id = %s AND seq = 2", OTHER, tenant.pk)
    assert verify_daily() is False
    [alarm] = alarms(tenant.pk, db_clock())
    assert alarm.title == "The history did not hold when it was last checked"
    tamper("UPDATE audit_seal SET hash = %s WHERE tenant_id = %s AND seq = 2", before, tenant.pk)
    assert verify_daily() is True
    assert alarms(tenant.pk, db_clock()) == []


# -- the daily check knows what was signed ----------------------------------------------------------------------------


def test_a_chain_that_holds_in_itself_and_is_not_the_signed_one_is_found(
    tenant: Tenant, folder: Path
) -> None:
    sealed(tenant.pk, 3)
    look(folder)
    assert check_chain(tenant.pk, by=INSTALLER).holds
    tamper("UPDATE audit_checkpoint SET root = %s WHERE tenant_id = %s", OTHER, tenant.pk)
    verdict = verify(tenant.pk)
    assert (verdict.cause, verdict.seq) == (Cause.NOT_AS_SIGNED, 3)
    assert verify(tenant.pk, last=2).holds, "a quick look does not begin at the first event"


def test_a_shorter_chain_than_the_signed_one_is_found(tenant: Tenant, folder: Path) -> None:
    sealed(tenant.pk, 3)
    look(folder)
    for table in (
        "audit_event WHERE id = (SELECT event_id FROM audit_seal WHERE seq = 3)",
        "audit_seal WHERE seq = 3",
    ):
        tamper(f"DELETE FROM {table}")
    tamper("UPDATE audit_head SET seq = 2, hash = (SELECT hash FROM audit_seal WHERE seq = 2)")
    assert verify(tenant.pk).cause == Cause.NOT_AS_SIGNED


def test_only_the_newest_checkpoint_counts(tenant: Tenant, folder: Path) -> None:
    """After a restored backup that a person accepted, earlier checkpoints are of a history that is no more."""
    sealed(tenant.pk, 3)
    look(folder)
    refused(tenant, folder)
    before = Seal.objects.get(tenant_id=tenant.pk, seq=4).previous
    tamper("UPDATE audit_seal SET hash = %s WHERE tenant_id = %s AND seq = 3", before, tenant.pk)
    with signer(folder) as work:
        work.accept(tenant.pk, "Put back", "anna")
    assert Checkpoint.objects.count() > 1
    assert verify(tenant.pk).holds


# -- on pages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", list(Role))
def test_those_who_must_know_see_it_on_every_page(
    tenant: Tenant, folder: Path, client: Client, role: Role
) -> None:
    refused(tenant, folder)
    client.force_login(factories.make_user(tenant, roles=[role]))
    knows = role in (Role.ADMIN, Role.OWNER, Role.AUDITOR)
    for address in ("/review/", "/runs/", "/account/notices/"):
        text = client.get(address).content.decode()
        assert ("The history is not the one that was signed" in text) is knows, address
        assert ('role="alert"' in text) is knows, address


def test_the_history_page_shows_what_is_signed(tenant: Tenant, folder: Path, client: Client) -> None:
    sealed(tenant.pk, 3)
    look(folder)
    client.force_login(factories.make_user(tenant, roles=[Role.AUDITOR]))
    text = client.get("/history/").content.decode()
    assert "Signed up to event 3" in text
    assert "Send a checkpoint now" not in text, "nobody is there to be sent one, and auditors send none"


def test_another_tenants_alarm_is_not_shown(tenant: Tenant, folder: Path, client: Client) -> None:
    refused(tenant, folder)
    other = factories.make_tenant("quay")
    client.force_login(factories.make_user(other, roles=[Role.ADMIN]))
    assert "The history is not the one that was signed" not in client.get("/review/").content.decode()
