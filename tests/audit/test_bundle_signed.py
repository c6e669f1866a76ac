"""Signatures of passkeys in bundles of a real history: they hold elsewhere, and what somebody invents does not."""

from pathlib import Path
from typing import Any

import pytest
from allauth.mfa.models import Authenticator

from access.signing_keys import fingerprint_of
from approvals.models import Decision, Proposal, Signature
from approvals.rechecked_signatures import differences
from audit.models import Event
from audit.replay import first_difference
from common.ids import new_id
from tests.audit.bundling import Auditor, found, lines, sign, taken
from tests.audit.events import tamper
from tests.workflows.conftest import Desk, desk
from tests.workflows.vault import Vault, open_vault
from workflows.models import Command

__all__ = ["desk"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def vault(desk: Desk) -> Vault:
    return open_vault(desk)


@pytest.fixture
def auditor(tmp_path: Path) -> Auditor:
    return Auditor(tmp_path)


def lived(vault: Vault) -> Command:
    command = vault.approved()
    vault.desk.work()
    return Command.objects.get(pk=command.pk)


def judged(vault: Vault, auditor: Auditor, **scope: Any) -> tuple[int, str]:
    auditor.keep(sign(vault.desk.tenant.pk))
    code, what = found(auditor.verify(taken(vault.desk.tenant, **scope)))
    return code, what


def test_a_signed_approval_holds(vault: Vault, auditor: Auditor) -> None:
    lived(vault)
    assert judged(vault, auditor) == (0, "")


def test_the_bundle_of_a_run_has_the_registration_of_its_keys(vault: Vault, auditor: Auditor) -> None:
    vault.desk.approved(order="7")
    command = lived(vault)
    assert judged(vault, auditor, run_id=command.run_id) == (0, "")
    kinds = [line["kind"] for line in lines(taken(vault.desk.tenant, run_id=command.run_id), "events.jsonl")]
    assert kinds.count("user.mfa_added") == 1, "Ada's, and not Ben's"


def test_of_a_stretch_the_registration_is_missed(vault: Vault, auditor: Auditor) -> None:
    lived(vault)
    auditor.keep(sign(vault.desk.tenant.pk))
    last = len(lines(taken(vault.desk.tenant), "events.jsonl"))
    report = auditor.verify(taken(vault.desk.tenant, places=(3, last)))
    assert report.code == 2 and "registration of passkeys" in " ".join(report.lacks)


def test_people_may_give_their_keys_themselves(vault: Vault, auditor: Auditor, tmp_path: Path) -> None:
    lived(vault)
    auditor.keep(sign(vault.desk.tenant.pk))
    bundle, key = taken(vault.desk.tenant), Authenticator.objects.get(user=vault.desk.ada)
    file = tmp_path / "passkeys.txt"
    file.write_text(f"user:{vault.desk.ada.pk} {fingerprint_of(key)}\n")
    assert found(auditor.verify(bundle, passkeys=file)) == (0, "")
    file.write_text(f"user:{vault.desk.ada.pk} {'0' * 64}\n")
    assert found(auditor.verify(bundle, passkeys=file)) == (1, "passkey")
    file.write_text("Ada's key\n")
    assert auditor.verify(bundle, passkeys=file).code == 2


def test_whoever_checks_may_say_what_must_be_signed(vault: Vault, auditor: Auditor) -> None:
    """Then nothing that was invented whole, with a contract that asks for no signature, passes."""
    lived(vault)
    vault.desk.approved(order="9")
    auditor.keep(sign(vault.desk.tenant.pk))
    bundle = taken(vault.desk.tenant)
    assert found(auditor.verify(bundle, signed=["toy.release"])) == (0, "")
    assert found(auditor.verify(bundle, signed=["toy.release", "toy.pay"])) == (1, "signature")


def test_an_approval_that_was_never_signed_is_named(vault: Vault, auditor: Auditor) -> None:
    """Rows and events as the product writes them, all but the signature."""
    lived(vault)
    event = Event.objects.get(kind="proposal.signed")
    tamper("DELETE FROM audit_event WHERE id = %s", event.pk)
    tamper("DELETE FROM approvals_signature")
    assert judged(vault, auditor) == (1, "signature")


def test_a_key_whose_registration_was_invented_by_hand_is_named(vault: Vault, auditor: Auditor) -> None:
    """The event of the registration is gone: the row in the table of passkeys says nothing."""
    lived(vault)
    tamper("DELETE FROM audit_event WHERE kind = 'user.mfa_added' AND subject_id = %s", vault.desk.ada.pk)
    assert judged(vault, auditor) == (1, "passkey")


def test_a_signature_in_the_table_that_no_event_tells_of_is_named(vault: Vault, auditor: Auditor) -> None:
    lived(vault)
    row, other = Signature.objects.get(), vault.desk.approved(order="8")
    vote = Decision.objects.get(proposal=other.proposal)
    tamper(
        "INSERT INTO approvals_signature (id, tenant_id, decision_id, nonce, document, credential_id, public_key,"
        " authenticator_data, client_data, signature, at) SELECT %s, tenant_id, %s, 'x', document, credential_id,"
        " public_key, authenticator_data, client_data, signature, at FROM approvals_signature WHERE id = %s",
        new_id(), vote.pk, row.pk,
    )  # fmt: skip
    assert judged(vault, auditor) == (1, "row")


def test_a_demand_that_was_taken_out_of_the_contract_is_named(vault: Vault, auditor: Auditor) -> None:
    lived(vault)
    contract = bytes(Proposal.objects.get().contract).replace(b'"approval":"passkey",', b"")
    tamper("UPDATE approvals_proposal SET contract = %s", contract)
    assert judged(vault, auditor) == (1, "content")


# -- the daily check --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [
    "UPDATE approvals_signature SET signature = public_key", "UPDATE approvals_signature SET document = '{}'",
    "UPDATE approvals_signature SET credential_id = 'x'", "DELETE FROM approvals_signature",
    "DELETE FROM audit_event WHERE kind = 'proposal.signed'",
])  # fmt: skip
def test_the_daily_check_finds_a_signature_that_was_changed_put_in_or_removed(vault: Vault, sql: str) -> None:
    lived(vault)
    assert list(differences(vault.desk.tenant.pk)) == []
    tamper(sql)
    [says] = differences(vault.desk.tenant.pk)
    assert str(Decision.objects.get().pk) in says
    assert first_difference(vault.desk.tenant.pk) == says
