"""Approvals that a passkey signs: what the server takes, what the worker sends, and what an administrator cannot do."""

import json
from base64 import b64decode, b64encode, urlsafe_b64decode
from dataclasses import replace
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.internal.auth import parse_registration_response
from fido2 import cbor

from access.signing_keys import PasskeyUnknown, SignatureInvalid, cose_of
from approvals.actions import decide
from approvals.models import Decision, Proposal, Signature
from approvals.refusals import AlreadyDecided, PasskeyMissing, SignatureOver, SignatureRequired
from approvals.shown import view_of
from approvals.signing import LIFE, Answer, document_of, must_be_signed
from audit.models import Event
from common.clock import db_clock
from common.digests import approval_challenge, contract_digest
from common.ids import new_id
from common.strictjson import canonicalize
from tests import factories
from tests.access.softkey import ORIGIN, SoftKey, b64
from tests.factories import make_user
from tests.workflows.conftest import Desk, person
from tests.workflows.later import SWEEP, age, as_superuser, end_of
from tests.workflows.together import in_threads
from tests.workflows.vault import Vault, answered, give_key, open_vault, take_keys
from workflows.enums import Lane
from workflows.models import Command
from workflows.operations import Verdict
from workflows.worker.claim import claim_commands
from workflows.worker.recover import recover_lost

pytestmark = pytest.mark.django_db
ANSWERED = {
    "authenticator_data": "authenticatorData",
    "client_data": "clientDataJSON",
    "signature": "signature",
}
UNSIGNED = {
    "command": "void(signature)", "effect": "none", "proposal": "invalidated", "step": "waiting(person)",
    "run": "manual_repair", "packets": ["command_signature"],
}  # fmt: skip
TWO = Verdict("ask_two", "toy.two", "It is a big toy.", risk=3)


@pytest.fixture
def vault(desk: Desk) -> Vault:
    return open_vault(desk)


# -- what is signed -------------------------------------------------------------------------------------------


def test_what_a_passkey_signed_is_sent_and_kept_whole(vault: Vault) -> None:
    command = vault.approved()
    vault.desk.work()
    assert end_of(command)["command"] == "confirmed"
    row, vote = Signature.objects.get(), Decision.objects.get()
    proposal = Proposal.objects.get()
    document = json.loads(row.document)
    assert document == {
        "v": 1, "tenant": str(proposal.tenant_id), "proposal": str(proposal.pk), "version": 1,
        "digest": proposal.digest, "view_digest": proposal.view_digest, "decision": "approve",
        "approver": str(vault.desk.ada.pk), "nonce": row.nonce, "asked_at": document["asked_at"],
        "rp_id": "testserver",
    }  # fmt: skip
    event = Event.objects.get(kind="proposal.signed")
    assert event.body == {
        "decision_id": str(vote.pk), "document": document, "credential_id": row.credential_id,
        "public_key": row.public_key, "authenticator_data": row.authenticator_data, "client_data": row.client_data,
        "signature": row.signature,
    }  # fmt: skip
    assert (event.digest, event.run_id) == (proposal.digest, proposal.run_id)


def test_the_challenge_is_made_of_the_decision_alone(vault: Vault) -> None:
    vault.approved()
    row = Signature.objects.get()
    said = json.loads(b64decode(row.client_data))
    challenge = urlsafe_b64decode(said["challenge"] + "=")
    assert challenge == approval_challenge(row.document.encode())


def test_the_contract_and_the_page_say_that_it_must_be_signed(vault: Vault) -> None:
    proposal = vault.proposed()
    assert json.loads(bytes(proposal.contract))["approval"] == "passkey"
    assert must_be_signed(proposal)
    assert ("Approval", "signed by the passkey of each person who approves") in [
        (row.label, row.text) for row in view_of(proposal).bound
    ]
    assert Event.objects.get(kind="proposal.made").body["approval"] == "passkey"
    assert proposal.shape == "", "it is alike to nothing, so no list holds it"


def test_what_is_below_the_limit_is_as_it_always_was(desk: Desk) -> None:
    proposal = desk.proposed()
    assert "approval" not in json.loads(bytes(proposal.contract))
    desk.decide(proposal)
    assert not Signature.objects.exists()


def test_the_installation_may_ask_for_it_from_a_risk_on(desk: Desk, settings: Any) -> None:
    settings.PLACET_SIGNED_RISK = 3
    give_key(desk.ada)
    assert not must_be_signed(desk.proposed(order="1"))
    desk.till.verdict = Verdict("ask_one", "toy.ask", "It is a big toy.", risk=3)
    proposal = desk.proposed(order="2")
    with pytest.raises(SignatureRequired):
        desk.decide(proposal, confirmed=lambda digest: True)


def test_no_rule_approves_what_must_be_signed(vault: Vault) -> None:
    vault.desk.till.verdict = Verdict("auto", "toy.auto", "It is small.")
    proposal = vault.proposed("toy-vault-by-rule")
    assert (proposal.status, proposal.needed) == ("pending", 1)
    assert not Decision.objects.exists()


def test_signing_is_proof_enough_for_high_risk(vault: Vault) -> None:
    vault.desk.till.verdict = Verdict("ask_one", "toy.ask", "It is a big toy.", risk=3)
    proposal = vault.proposed()
    assert vault.approve(proposal).result == "approved"


def test_a_no_needs_no_passkey(vault: Vault) -> None:
    assert vault.desk.decide(vault.proposed(), "reject").result == "rejected"


def test_two_people_sign_each_for_themselves(vault: Vault) -> None:
    vault.desk.till.verdict = TWO
    proposal = vault.proposed()
    assert vault.approve(proposal).result == "recorded"
    assert vault.approve(proposal, vault.desk.ben).result == "approved"
    vault.desk.work()
    assert end_of(Command.objects.get())["command"] == "confirmed"
    assert {json.loads(row.document)["approver"] for row in Signature.objects.all()} == {
        str(vault.desk.ada.pk), str(vault.desk.ben.pk),
    }  # fmt: skip


# -- what the server does not take ------------------------------------------------------------------------------


def refused(vault: Vault, proposal: Proposal, answer: Answer | None, code: str, user: Any = None) -> None:
    user = user or vault.desk.ada
    submission = replace(vault.desk.submission(proposal, user), signature=answer)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its code is compared
        decide(
            tenant_id=proposal.tenant_id, proposal_id=proposal.pk, submission=submission, by=person(user),
            clock=db_clock,
        )  # fmt: skip
    assert caught.value.code == code  # type: ignore[attr-defined]
    assert not Signature.objects.filter(decision__proposal=proposal).exists()
    assert Proposal.objects.get(pk=proposal.pk).status == "pending"
    last = Event.objects.filter(kind="proposal.decision_refused").order_by("at", "id").last()
    assert last is not None and last.reason == code


def test_nothing_is_approved_without_a_signature(vault: Vault) -> None:
    refused(vault, vault.proposed(), None, "signature_required")


def test_a_signature_over_another_challenge_is_none(vault: Vault) -> None:
    proposal = vault.proposed()
    asked = vault.asked(proposal)
    asked["options"]["publicKey"]["challenge"] = "A" * 43
    refused(vault, proposal, answered(asked, vault.keys["ada"]), "signature_invalid")


def test_nor_one_over_another_proposal(vault: Vault) -> None:
    other = vault.proposed(order="1")
    proposal = vault.proposed(order="2")
    refused(vault, proposal, vault.answer(other), "signature_invalid")
    mixed = Answer(vault.asked(proposal)["ticket"], vault.answer(other).credential, "testserver")
    refused(vault, proposal, mixed, "signature_invalid")


def test_nor_one_over_an_earlier_version(vault: Vault) -> None:
    proposal = vault.proposed()
    asked = vault.asked(proposal)
    as_superuser("UPDATE approvals_proposal SET version = 2 WHERE id = %s", proposal.pk)
    refused(vault, proposal, answered(asked, vault.keys["ada"]), "signature_invalid")


def test_nor_one_of_a_device_that_recognised_nobody(vault: Vault) -> None:
    proposal = vault.proposed()
    refused(vault, proposal, vault.answer(proposal, verified=False), "signature_invalid")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://testserver", "https://testserver.evil.example"]
)
def test_nor_one_given_to_another_site(vault: Vault, origin: str) -> None:
    proposal = vault.proposed()
    assert origin != ORIGIN
    refused(vault, proposal, vault.answer(proposal, origin=origin), "signature_invalid")


def test_nor_one_by_a_key_of_nobody(vault: Vault) -> None:
    proposal = vault.proposed()
    refused(vault, proposal, answered(vault.asked(proposal), SoftKey()), "signature_invalid")


def test_nor_one_by_the_key_of_somebody_else(vault: Vault) -> None:
    proposal = vault.proposed()
    refused(vault, proposal, answered(vault.asked(proposal), vault.keys["ben"]), "signature_invalid")
    refused(vault, proposal, vault.answer(proposal), "signature_invalid", vault.desk.ben)


def test_nor_one_by_a_key_that_was_removed_meanwhile(vault: Vault) -> None:
    proposal = vault.proposed()
    answer = vault.answer(proposal)
    take_keys(vault.desk.ada)
    refused(vault, proposal, answer, "signature_invalid")


def test_nor_one_by_a_key_that_no_event_tells_of(vault: Vault) -> None:
    """A row that somebody wrote into the table of passkeys."""
    proposal, key = vault.proposed(), SoftKey()
    asked = vault.asked(proposal)
    made = key.made({"publicKey": {"challenge": "AAAA"}})
    Authenticator.objects.create(
        user=vault.desk.ada, type="webauthn", data={"name": "planted", "credential": made}
    )
    refused(vault, proposal, answered(asked, key), "passkey_not_registered")


def test_nor_one_by_a_key_of_a_kind_that_nobody_here_can_check(vault: Vault) -> None:
    """Registered by its own person, and told to the history."""

    class Odd(SoftKey):
        def public(self) -> bytes:
            return cbor.encode({1: 2, 3: -999, -1: 1, -2: b"x" * 32, -3: b"y" * 32})

    proposal, key = vault.proposed(), give_key(vault.desk.ada, Odd())
    asked = vault.asked(proposal)
    assert b64(key.id) not in str(asked["options"]), "it is not asked for"
    refused(vault, proposal, answered(asked, key), "signature_invalid")


def test_nor_one_that_lags_behind(vault: Vault) -> None:
    """A key that counts: a copy of it is behind."""
    key = give_key(vault.desk.ada, SoftKey(counts=True))
    first = vault.proposed(order="1")
    vault.approve(first, answer=answered(vault.asked(first), key))
    key.count -= 2
    second = vault.proposed(order="2")
    refused(vault, second, answered(vault.asked(second), key), "signature_invalid")


def test_nor_one_that_took_too_long(vault: Vault) -> None:
    proposal = vault.proposed()
    answer = vault.answer(proposal)
    submission = replace(vault.desk.submission(proposal, vault.desk.ada), signature=answer)
    with pytest.raises(SignatureOver):
        decide(
            tenant_id=proposal.tenant_id, proposal_id=proposal.pk, submission=submission,
            by=person(vault.desk.ada), clock=lambda: db_clock() + LIFE,
        )  # fmt: skip


def test_nor_a_ticket_that_somebody_wrote(vault: Vault) -> None:
    proposal = vault.proposed()
    answer = vault.answer(proposal)
    for ticket in ("", "x", answer.ticket + "x", "W10:abc"):
        refused(vault, proposal, replace(answer, ticket=ticket), "signature_invalid")


@pytest.mark.parametrize("credential", [{}, {"id": 5}, {"id": "x", "rawId": "x", "response": {}}], ids=str)
def test_nor_what_is_no_answer_of_a_passkey(vault: Vault, credential: dict[str, Any]) -> None:
    proposal = vault.proposed()
    refused(vault, proposal, replace(vault.answer(proposal), credential=credential), "signature_invalid")


def test_the_same_again_is_the_original(vault: Vault) -> None:
    """A double click, or an answer that was lost: one vote, one signature."""
    proposal = vault.proposed()
    answer = vault.answer(proposal)
    first = vault.approve(proposal, answer=answer)
    again = vault.approve(proposal, answer=answer)
    assert (again.replayed, again.decision_id) == (True, first.decision_id)
    assert Signature.objects.count() == 1


def test_who_signs_too_late_is_told_who_came_first(vault: Vault) -> None:
    proposal = vault.proposed()
    answer = vault.answer(proposal)
    vault.desk.decide(proposal, "reject", vault.desk.ben)
    with pytest.raises(AlreadyDecided):
        vault.approve(proposal, answer=answer)
    assert not Signature.objects.exists()


def test_one_signature_in_several_requests_at_once_is_one_vote(vault: Vault) -> None:
    proposal = vault.proposed()
    answer = vault.answer(proposal)
    outcomes = in_threads(4, lambda _: vault.approve(proposal, answer=answer))
    assert {outcome.result for outcome in outcomes} == {"approved"}
    assert sum(not outcome.replayed for outcome in outcomes) == 1
    assert (Decision.objects.count(), Signature.objects.count(), Command.objects.count()) == (1, 1, 1)


def test_a_nonce_counts_once(vault: Vault) -> None:
    """Whatever is done with the row of the vote."""
    vault.desk.till.verdict = TWO
    proposal = vault.proposed()
    answer = vault.answer(proposal)
    vault.approve(proposal, answer=answer)
    as_superuser("UPDATE approvals_decision SET replaced_at = now()")
    with pytest.raises(SignatureOver):
        vault.approve(proposal, answer=answer)


def test_who_has_no_passkey_is_told_so(vault: Vault) -> None:
    proposal = vault.proposed()
    eva = make_user(vault.desk.tenant, "eva")
    with pytest.raises(PasskeyMissing):
        vault.asked(proposal, eva)
    as_superuser("DELETE FROM audit_event WHERE kind = 'user.mfa_added'")
    with pytest.raises(PasskeyUnknown):
        vault.asked(proposal)
    with pytest.raises(SignatureInvalid):
        vault.approve(proposal, answer=Answer("x", {}, "testserver"))


# -- an administrator of the database ---------------------------------------------------------------------------


def invent(proposal: Proposal, vault: Vault) -> Command:
    """What the product would have written for Ada's yes, but for her signature: vote, state, command."""
    as_superuser(
        "INSERT INTO approvals_decision (id, tenant_id, proposal_id, kind, user_id, role, rule, digest, view_digest,"
        " parts_seen, acknowledged, reason_code, reason, performed_by, via, posture, at)"
        " SELECT %s, tenant_id, id, 'approve', %s, 'reviewer', '', digest, view_digest, '{}', '{}', '', '', %s,"
        " 'session', '', now() FROM approvals_proposal WHERE id = %s",
        new_id(), vault.desk.ada.pk, f"user:{vault.desk.ada.pk}", proposal.pk,
    )  # fmt: skip
    as_superuser(
        "UPDATE approvals_proposal SET status = 'approved', decided_at = now(), execute_by = now() + interval '10 min'"
        " WHERE id = %s",
        proposal.pk,
    )
    as_superuser("UPDATE workflows_step SET waiting_for = 'provider' WHERE proposal_id = %s", proposal.pk)
    return factories.make_command(
        Proposal.objects.get(pk=proposal.pk), operation="toy.release", provider="till"
    )


def not_sent(vault: Vault, command: Command) -> None:
    vault.desk.work()
    assert end_of(command) == UNSIGNED
    assert vault.desk.till.calls == []


def test_an_approval_put_into_the_tables_is_not_sent(vault: Vault) -> None:
    not_sent(vault, invent(vault.proposed(), vault))


def test_nor_with_a_signature_copied_from_another_approval(vault: Vault) -> None:
    vault.approved(order="1")
    vault.desk.work()
    vault.desk.till.calls.clear()
    command = invent(vault.proposed(order="2"), vault)
    copy(command)
    not_sent(vault, command)


def copy(command: Command, **changes: str) -> None:
    """The newest other signature as one of this command's approval, with these columns changed."""
    row = Signature.objects.exclude(decision__proposal=command.proposal).get()
    values = {
        name: changes.get(name, getattr(row, name))
        for name in ("document", "credential_id", "public_key", "authenticator_data", "client_data", "signature")
    }  # fmt: skip
    vote = Decision.objects.get(proposal=command.proposal)
    as_superuser(
        f"INSERT INTO approvals_signature (id, tenant_id, decision_id, nonce, at, {', '.join(values)})"
        f" VALUES (%s, %s, %s, %s, now(), {', '.join(['%s'] * len(values))})",
        new_id(), command.tenant_id, vote.pk, changes.get("nonce", "0" * 32), *values.values(),
    )  # fmt: skip


def test_nor_with_the_document_of_this_one_beside_it(vault: Vault) -> None:
    vault.approved(order="1")
    vault.desk.work()
    vault.desk.till.calls.clear()
    command = invent(vault.proposed(order="2"), vault)
    meant = json.loads(Signature.objects.get().document) | {
        "proposal": str(command.proposal_id), "digest": command.proposal.digest,
        "view_digest": command.proposal.view_digest,
    }  # fmt: skip
    meant["nonce"] = "1" * 32
    copy(command, document=canonicalize(meant).decode(), nonce=meant["nonce"])
    not_sent(vault, command)


def sign_by_hand(vault: Vault, command: Command, key: SoftKey) -> None:
    """A signature over exactly this approval, by this key, as the product would have stored it."""
    proposal, vote = command.proposal, Decision.objects.get(proposal=command.proposal)
    document = document_of(
        proposal,
        vault.desk.ada.pk,
        nonce="2" * 32,
        asked_at="2026-11-30T12:00:00.000000Z",
        rp_id="testserver",
    )
    challenge = b64(approval_challenge(canonicalize(document)))
    said = key.signed({"publicKey": {"challenge": challenge}})["response"]
    attested = parse_registration_response(key.made({"publicKey": {"challenge": "AAAA"}}))
    public = cose_of(attested.response.attestation_object.auth_data.credential_data)
    raw = {name: urlsafe_b64decode(said[of] + "==") for name, of in ANSWERED.items()}
    parts = {name: b64encode(value).decode() for name, value in (raw | {"public_key": public}).items()}
    Signature.objects.create(
        tenant_id=command.tenant_id, decision=vote, nonce="2" * 32, document=canonicalize(document).decode(),
        credential_id=b64(key.id), at=vote.at, **parts,
    )  # fmt: skip


@pytest.mark.parametrize("whose", ["nobody", "ben"])
def test_nor_with_a_true_signature_by_a_key_that_is_not_hers(vault: Vault, whose: str) -> None:
    key = vault.keys["ben"] if whose == "ben" else SoftKey()
    command = invent(vault.proposed(), vault)
    sign_by_hand(vault, command, key)
    not_sent(vault, command)


def test_with_her_own_it_would_be(vault: Vault) -> None:
    """That the forgeries above fail for the right reason."""
    command = invent(vault.proposed(), vault)
    sign_by_hand(vault, command, vault.keys["ada"])
    vault.desk.work()
    assert end_of(command)["command"] == "confirmed"


def test_nor_in_the_name_of_a_rule(vault: Vault) -> None:
    command = invent(vault.proposed(), vault)
    as_superuser(
        "UPDATE approvals_proposal SET needed = 0, policy = jsonb_set(policy, '{verdict}', '\"auto\"')"
    )
    as_superuser(
        "UPDATE approvals_decision SET user_id = NULL, rule = 'toy.auto', rule_version = 1, via = 'rule'"
    )
    not_sent(vault, command)


def test_nor_among_others_that_go_together(vault: Vault, settings: Any) -> None:
    settings.PLACET_CALLS_AT_ONCE = 4
    signed, ordinary = vault.approved(order="1"), vault.desk.approved(order="2")
    forged = invent(vault.proposed(order="3"), vault)
    vault.desk.work()
    assert {end_of(it)["command"] for it in (signed, ordinary)} == {"confirmed"}
    assert end_of(forged) == UNSIGNED
    assert sorted(call.arguments.order for call in vault.desk.till.calls) == ["1", "2"]


def test_one_of_two_signatures_is_not_enough(vault: Vault) -> None:
    vault.desk.till.verdict = TWO
    proposal = vault.proposed()
    vault.approve(proposal)
    vault.approve(proposal, vault.desk.ben)
    ben = Decision.objects.get(user=vault.desk.ben)
    as_superuser("DELETE FROM approvals_signature WHERE decision_id = %s", ben.pk)
    not_sent(vault, Command.objects.get())


def test_a_contract_that_does_not_say_so_is_not_believed(vault: Vault) -> None:
    """The code asks for the signature, whatever bytes somebody has put there with all their digests."""
    proposal = vault.proposed()
    changed = bytes(proposal.contract).replace(b'"approval":"passkey",', b"")
    assert changed != bytes(proposal.contract)
    as_superuser(
        "UPDATE approvals_proposal SET contract = %s, digest = %s WHERE id = %s", changed, contract_digest(changed),
        proposal.pk,
    )  # fmt: skip
    not_sent(vault, invent(Proposal.objects.get(pk=proposal.pk), vault))


def test_a_lost_worker_does_not_open_a_way_around(vault: Vault) -> None:
    command = vault.approved()
    as_superuser("DELETE FROM approvals_signature")
    claim_commands(lane=Lane.NEW, limit=1, worker="w", by=SWEEP, clock=db_clock)
    age(command.run_id, 3600, "workflows_command")
    recover_lost(by=SWEEP, clock=db_clock)
    vault.desk.work()
    assert end_of(command)["command"] == "void(signature)"
    assert vault.desk.till.calls == []
