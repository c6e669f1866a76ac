"""What is of high risk needs a fresh proof of the person, for that digest and once (S12); attacks on that proof."""

from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from access.models import User
from access.sessions import PROOF_LIFE_S
from access.signed_in import PROOFS, SessionStore
from approvals.models import Decision, Proposal
from audit.models import Event
from common.models import Tenant
from tests import factories
from tests.access.keys import add_app, age, code, happened
from tests.api.callers import Caller, refused, signed_in
from tests.approvals.test_views import decide, page_of, status_of

pytestmark = pytest.mark.django_db
LONG_AGO = 3600


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def reviewer(tenant: Tenant) -> User:
    return factories.make_user(tenant, "ilse")


@pytest.fixture
def old(client: Client, reviewer: User) -> Client:
    """A session that was opened long ago, and is in use."""
    client.force_login(reviewer)
    age(client, opened=LONG_AGO)
    return client


def risky(tenant: Tenant, **fields: Any) -> Proposal:
    return factories.make_proposal(tenant=tenant, risk=settings.PLACET_HIGH_RISK, needed=2, **fields)


def approve(client: Client, proposal: Proposal, **more: Any) -> Any:
    return decide(client, proposal, "approve", page_of(client, proposal), **more)


def confirm(client: Client, proposal: Proposal | None, *, digest: str = "") -> Any:
    data = {"password": factories.PASSWORD, "digest": digest or (proposal.digest if proposal else "")}
    return client.post("/account/confirm/password/", data)


def test_an_old_session_is_asked_and_led_to_the_proof_and_back(old: Client, tenant: Tenant) -> None:
    proposal = risky(tenant)
    answer = approve(old, proposal, htmx=True)
    page = answer.content.decode()
    assert answer.status_code == 403
    assert "reauth_required" in page
    way = f"/account/confirm/?next=/review/{proposal.pk}/&amp;digest={proposal.digest}"
    assert f'href="{way}"' in page
    assert not Decision.objects.exists()
    assert [event.reason for event in Event.objects.filter(kind="proposal.decision_refused")] == [
        "reauth_required"
    ]
    confirmed = old.get(way.replace("&amp;", "&"), follow=True)
    assert confirmed.status_code == 200
    form = {"password": factories.PASSWORD, "digest": proposal.digest, "next": f"/review/{proposal.pk}/"}
    assert old.post("/account/confirm/password/", form)["Location"] == f"/review/{proposal.pk}/"
    assert approve(old, proposal).status_code == 302
    assert Decision.objects.get().kind == "approve"
    proved = happened("user.reauthenticated")[0]
    assert (proved.digest, proved.body) == (proposal.digest, {"method": "password"})


def test_a_fresh_sign_in_is_proof_enough(client: Client, tenant: Tenant, reviewer: User) -> None:
    client.force_login(reviewer)
    assert approve(client, risky(tenant)).status_code == 302


def test_little_risk_and_a_no_need_no_proof(old: Client, tenant: Tenant) -> None:
    assert approve(old, factories.make_proposal(tenant=tenant, risk=2)).status_code == 302
    proposal = risky(tenant)
    html = page_of(old, proposal)
    assert decide(old, proposal, "reject", html, reason_code="wrong_target").status_code == 302


def test_a_proof_is_for_one_digest(old: Client, tenant: Tenant) -> None:
    meant, other = risky(tenant), risky(tenant)
    confirm(old, meant)
    assert approve(old, other).status_code == 403
    assert approve(old, meant).status_code == 302


@pytest.mark.parametrize("digest", ["", "0" * 64, "x", "*"])
def test_a_proof_for_nothing_is_a_proof_for_nothing(old: Client, tenant: Tenant, digest: str) -> None:
    confirm(old, None, digest=digest)
    assert approve(old, risky(tenant)).status_code == 403


def test_a_proof_is_used_up_by_the_decision(old: Client, tenant: Tenant) -> None:
    proposal = risky(tenant)
    confirm(old, proposal)
    assert approve(old, proposal).status_code == 302
    assert (
        decide(old, proposal, "request_changes", page_of(old, proposal), changes_reason="no").status_code
        == 302
    )
    assert old.session[PROOFS] == {}
    again = risky(tenant)
    assert approve(old, again).status_code == 403


def test_the_same_decision_again_needs_none(old: Client, tenant: Tenant) -> None:
    """Its answer was lost; it is answered with the original."""
    proposal = risky(tenant)
    confirm(old, proposal)
    html = page_of(old, proposal)
    assert decide(old, proposal, "approve", html).status_code == 302
    assert decide(old, proposal, "approve", html).status_code == 302
    assert Decision.objects.count() == 1


def test_a_proof_grows_old(old: Client, tenant: Tenant) -> None:
    proposal = risky(tenant)
    confirm(old, proposal)
    session = old.session
    session[PROOFS] = {digest: at - PROOF_LIFE_S for digest, at in session[PROOFS].items()}
    session.save()
    assert approve(old, proposal).status_code == 403


def test_a_proof_belongs_to_its_session(old: Client, tenant: Tenant, reviewer: User) -> None:
    proposal = risky(tenant)
    confirm(old, proposal)
    elsewhere = Client()
    elsewhere.force_login(reviewer)
    age(elsewhere, opened=LONG_AGO)
    assert approve(elsewhere, proposal).status_code == 403


def test_a_wrong_password_proves_nothing(old: Client, tenant: Tenant) -> None:
    proposal = risky(tenant)
    answer = old.post("/account/confirm/password/", {"password": "wrong", "digest": proposal.digest})
    assert answer.status_code == 200
    assert approve(old, proposal).status_code == 403
    for _ in range(10):
        answer = old.post("/account/confirm/password/", {"password": "wrong", "digest": proposal.digest})
    assert answer.status_code == 429


def test_with_an_app_only_its_code_proves(old: Client, tenant: Tenant, reviewer: User) -> None:
    proposal, secret = risky(tenant), add_app(reviewer)
    confirm(old, proposal)  # the password: leads to the code instead
    assert approve(old, proposal).status_code == 403
    typed = code(secret)
    old.post("/account/confirm/code/", {"code": typed, "digest": proposal.digest})
    assert approve(old, proposal).status_code == 302
    other = risky(tenant)
    old.post("/account/confirm/code/", {"code": typed, "digest": other.digest})  # the same code once more
    assert approve(old, other).status_code == 403


def test_confirming_for_the_account_is_no_proof_for_an_action(old: Client, tenant: Tenant) -> None:
    confirm(old, None)
    assert old.get("/account/app/").status_code == 200
    assert approve(old, risky(tenant)).status_code == 403


def test_the_api_says_so_with_a_code_and_the_place(tenant: Tenant, reviewer: User) -> None:
    caller, proposal = signed_in(reviewer), risky(tenant)
    age(caller.client, opened=LONG_AGO)
    details = refused(_decide(caller, proposal), 403, "reauth_required")
    assert details["confirm"].startswith("/account/confirm/?next=")
    csrf = {"csrfmiddlewaretoken": caller.headers["X-CSRFToken"]}
    caller.client.post(
        "/account/confirm/password/", {"password": factories.PASSWORD, "digest": proposal.digest} | csrf
    )
    assert _decide(caller, proposal).json()["result"] == "recorded"
    assert status_of(proposal) == "pending"
    refused(_decide(caller, risky(tenant)), 403, "reauth_required")


def _decide(caller: Caller, proposal: Proposal) -> Any:
    view = caller.get(f"/proposals/{proposal.pk}/view").json()
    body = {
        "digest": view["digest"], "view_digest": view["view_digest"], "decision": "approve",
        "view_receipts": list(view["receipts"].values()), "acknowledged": view["to_acknowledge"], "reason": "",
    }  # fmt: skip
    return caller.post(f"/proposals/{proposal.pk}/decisions", body)


def test_what_is_not_of_high_risk_pays_nothing(
    old: Client, tenant: Tenant, client: Client, reviewer: User
) -> None:
    fresh = Client()
    fresh.force_login(reviewer)
    counts = []
    for session in (fresh, old):
        proposal = factories.make_proposal(tenant=tenant, risk=1, business_key=f"hmac:{len(counts)}")
        html = page_of(session, proposal)
        with CaptureQueriesContext(connection) as queries:
            assert decide(session, proposal, "approve", html).status_code == 302
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_proof_that_was_used_comes_not_back_with_a_request_that_began_before(
    old: Client, tenant: Tenant
) -> None:
    """Each request writes its whole session: the slower one would write the proof once more."""
    proposal, other = risky(tenant), risky(tenant)
    confirm(old, proposal)
    key = old.session.session_key
    slow, confirming = SessionStore(key), SessionStore(key)
    assert proposal.digest in slow[PROOFS]
    assert proposal.digest in confirming[PROOFS]
    assert approve(old, proposal).status_code == 302
    slow["placet.seen"] = 1
    slow.save()
    confirming[PROOFS] = {**confirming[PROOFS], other.digest: confirming[PROOFS][proposal.digest]}
    confirming.save()
    assert list(SessionStore(key)[PROOFS]) == [other.digest]


def test_a_session_that_has_ended_comes_not_back_with_a_proof(old: Client, tenant: Tenant) -> None:
    confirm(old, risky(tenant))
    late = SessionStore(old.session.session_key)
    assert late[PROOFS]
    SessionStore(late.session_key).delete()
    late["placet.seen"] = 1
    with pytest.raises(UpdateError):
        late.save()
