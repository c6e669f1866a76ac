"""The page of a proposal that a passkey signs, as the server gives it: what it asks for, and what it takes back."""

import json
from typing import Any

import pytest
from django.test import Client

from approvals.models import Decision, Proposal, Signature
from tests import factories
from tests.access.keys import age
from tests.api.callers import automation, signed_in, token_for
from tests.approvals.test_views import decide, page_of
from tests.workflows.conftest import Desk, desk
from tests.workflows.vault import Vault, open_vault
from workflows.operations import Verdict

__all__ = ["desk"]
pytestmark = pytest.mark.django_db
INVALID = "signature_invalid"


@pytest.fixture
def vault(desk: Desk) -> Vault:
    return open_vault(desk)


@pytest.fixture
def ada(client: Client, vault: Vault) -> Client:
    client.force_login(vault.desk.ada)
    return client


def asked(client: Client, proposal: Proposal) -> Any:
    return client.post(f"/review/{proposal.pk}/sign/", headers={"Accept": "application/json"})


def signed(client: Client, vault: Vault, proposal: Proposal) -> str:
    question = asked(client, proposal).json()
    credential = vault.keys["ada"].signed(question["options"])
    return json.dumps({"ticket": question["ticket"], "credential": credential})


@pytest.mark.parametrize("htmx", [True, False])
def test_a_person_signs_on_the_page(ada: Client, vault: Vault, htmx: bool) -> None:
    """Also in a session that was opened long ago: a signature is proof enough, of high risk too."""
    vault.desk.till.verdict = Verdict("ask_one", "toy.ask", "It is big.", risk=3)
    proposal = vault.proposed()
    age(ada, opened=3600)
    html = page_of(ada, proposal)
    assert f'data-sign="/review/{proposal.pk}/sign/"' in html
    answer = decide(ada, proposal, "approve", html, htmx=htmx, signature=signed(ada, vault, proposal))
    assert answer.status_code == (200 if htmx else 302)
    assert Signature.objects.get().decision == Decision.objects.get()
    assert "approved, signed by passkey," in page_of(ada, proposal)


def test_asking_writes_nothing_and_each_time_asks_anew(ada: Client, vault: Vault) -> None:
    proposal = vault.proposed()
    first, second = asked(ada, proposal).json(), asked(ada, proposal).json()
    public = first["options"]["publicKey"]
    assert public["userVerification"] == "required"
    assert public["rpId"] == "testserver"
    assert len(public["allowCredentials"]) == 1
    assert public["challenge"] != second["options"]["publicKey"]["challenge"]
    assert not Decision.objects.exists() and not Signature.objects.exists()


@pytest.mark.parametrize(("signature", "code"), [
    ("", "signature_required"), ("{}", INVALID), ("[]", INVALID), ("\ud800", INVALID), ("[" * 5000, INVALID),
    ('{"ticket": "x", "credential": {}}', INVALID), ('{"ticket": 5, "credential": {}}', INVALID),
    ('{"ticket": "x", "ticket": "y", "credential": {}}', INVALID), ("x" * 20_000, "unknown_decision"),
], ids=range(9))  # fmt: skip
def test_anything_else_approves_nothing_and_says_why(
    ada: Client, vault: Vault, signature: str, code: str
) -> None:
    proposal = vault.proposed()
    sent = signature.encode(errors="replace").decode()
    answer = decide(ada, proposal, "approve", page_of(ada, proposal), htmx=True, signature=sent)
    assert answer.status_code in (403, 422)
    assert f'<code class="hint">{code}</code>' in answer.content.decode()
    assert not Decision.objects.exists()


def test_who_has_no_passkey_reads_why_and_where_to_add_one(client: Client, vault: Vault) -> None:
    eva, proposal = factories.make_user(vault.desk.tenant, "eva"), vault.proposed()
    client.force_login(eva)
    html = page_of(client, proposal)
    assert "Your passkey must sign this approval, and you have none." in html
    assert 'href="/account/">Your passkeys</a>' in html
    assert "sheet-approve" not in html and "sheet-reject" in html
    answer = asked(client, proposal)
    assert (answer.status_code, answer.json()["code"]) == (403, "passkey_missing")


def test_who_is_not_asked_gets_nothing_to_sign(client: Client, vault: Vault) -> None:
    proposal = vault.proposed()
    client.force_login(factories.make_user(vault.desk.tenant, "otto", roles=["auditor"]))
    assert asked(client, proposal).json()["code"] == "not_eligible"
    elsewhere = factories.make_user(factories.make_tenant(), "zoe")
    client.force_login(elsewhere)
    assert asked(client, proposal).status_code == 404


def test_what_is_over_or_needs_no_signature_gives_nothing_to_sign(ada: Client, vault: Vault) -> None:
    proposal = vault.proposed(order="1")
    vault.desk.decide(proposal, "reject")
    assert asked(ada, proposal).json()["code"] == "already_decided"
    assert asked(ada, vault.desk.proposed(order="2")).status_code == 404
    assert ada.get(f"/review/{proposal.pk}/sign/").status_code == 405


def test_a_page_that_needs_no_signature_says_nothing_of_it(ada: Client, vault: Vault) -> None:
    html = page_of(ada, vault.desk.proposed())
    assert "data-sign" not in html and "sign-none" not in html


def test_the_api_decides_nothing_that_must_be_signed(vault: Vault) -> None:
    """No token ever decides; a session is told that it is signed on the page."""
    proposal = vault.proposed()
    caller = signed_in(vault.desk.ada)
    view = caller.get(f"/proposals/{proposal.pk}/view").json()
    body = {
        "digest": proposal.digest, "view_digest": proposal.view_digest, "decision": "approve",
        "view_receipts": view["receipts"], "acknowledged": view["to_acknowledge"],
    }  # fmt: skip
    answer = caller.post(f"/proposals/{proposal.pk}/decisions", body)
    assert (answer.status_code, answer.json()["code"]) == (403, "signature_required")
    answer = automation(token_for(vault.desk.tenant, "agent")).post(
        f"/proposals/{proposal.pk}/decisions", body
    )
    assert answer.json()["code"] == "token_cannot_decide"
    assert not Decision.objects.exists()


def test_it_stands_in_no_list(ada: Client, vault: Vault) -> None:
    proposal, other = vault.proposed(order="1"), vault.proposed(order="2")
    html = ada.get(f"/review/{proposal.pk}/alike/").content.decode()
    assert str(other.pk) not in html and proposal.shape == other.shape == ""
