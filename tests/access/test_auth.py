"""Who is who at the API: tokens on their routes, people on theirs, and neither in the other's place."""

from datetime import timedelta

import pytest
from django.test import Client

from access import actions, tokens
from access.enums import Role, Scope
from access.models import ApiToken
from access.usage import usage
from common.clock import db_clock
from tests.access import people
from tests.access.people import INSTALLER, PASSWORD
from tests.audit.events import tamper

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.access.site")]
WHO, RUNS, VIEW, DECIDE = (
    "/api/routes/tokens/who",
    "/api/routes/tokens/runs",
    "/api/routes/sessions/view",
    "/api/routes/sessions/decide",
)


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def test_a_token_brings_its_tenant_its_actor_and_its_scopes(client: Client) -> None:
    tenant = people.tenant()
    user = people.person(tenant, "ada")
    text, _ = people.token(people.agent(tenant, acts_for=user), Scope.RUNS_READ, Scope.RUNS_WRITE)
    answer = client.get(WHO, headers=bearer(text))
    assert answer.json() == {
        "tenant": "north", "kind": "token", "scopes": ["runs:read", "runs:write"], "performed_by": "api:intake",
        "on_behalf_of": f"user:{user.id}", "via": "token", "owner": "automation", "user": "None",
        "request_id": answer["X-Request-ID"],
    }  # fmt: skip


def test_a_missing_scope_is_refused(client: Client) -> None:
    text, _ = people.token(people.agent(people.tenant()), Scope.RUNS_READ)
    answer = client.post(RUNS, headers=bearer(text))
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")


def test_no_scope_decides() -> None:
    assert not [scope for scope in Scope if "decid" in scope or "decision" in scope or "attest" in scope]


def test_what_is_stored_is_a_hash_and_the_text_is_shown_once() -> None:
    text, row = people.token(people.agent(people.tenant()), Scope.RUNS_READ)
    row = ApiToken.objects.get()
    assert text.startswith("plc_")
    assert len(text) == 4 + 43 + 6
    assert row.sha256 == tokens.fingerprint(text)
    assert row.prefix == text[:12]
    stored = str(ApiToken.objects.values().get())
    assert text[12:] not in stored
    assert tokens.new_token() != tokens.new_token()


def broken(text: str) -> list[str]:
    other = "B" if text[20] == "A" else "A"
    return [
        "",
        " ",
        "x",
        text + "x",
        text[:-1],
        text[:20] + other + text[21:],
        text.upper(),
        "plc_" + "A" * 49,
        "é",
    ]


def test_a_token_that_is_not_quite_it_is_nobody(client: Client) -> None:
    text, _ = people.token(people.agent(people.tenant()), Scope.RUNS_READ)
    for header in ({}, *(bearer(other) for other in broken(text)), {"Authorization": f"Basic {text}"}):
        answer = client.get(WHO, headers=header)
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")
    assert client.get(WHO, headers={"Authorization": f"bearer {text}"}).status_code == 200


def test_a_well_formed_token_of_nobody_is_nobody(client: Client) -> None:
    assert client.get(WHO, headers=bearer(tokens.new_token())).status_code == 401


def test_expiry_is_on_the_databases_clock(client: Client) -> None:
    text, row = people.token(people.agent(people.tenant()), Scope.RUNS_READ)
    tamper(
        "UPDATE access_apitoken SET expires_at = clock_timestamp() + interval '1 second' WHERE id = %s",
        row.id,
    )
    assert client.get(WHO, headers=bearer(text)).status_code == 200
    tamper("UPDATE access_apitoken SET expires_at = clock_timestamp() WHERE id = %s", row.id)
    assert client.get(WHO, headers=bearer(text)).status_code == 401


def test_a_revoked_token_ends_at_once(client: Client) -> None:
    text, row = people.token(people.agent(people.tenant()), Scope.RUNS_READ)
    assert client.get(WHO, headers=bearer(text)).status_code == 200
    actions.revoke_token(token=row, by=INSTALLER, clock=db_clock)
    assert client.get(WHO, headers=bearer(text)).status_code == 401


def test_tokens_end_with_their_automation_and_with_the_person_behind_it(client: Client) -> None:
    tenant = people.tenant()
    user = people.person(tenant, "ada")
    first, second = people.agent(tenant, "first"), people.agent(tenant, "second", acts_for=user)
    texts = [people.token(agent, Scope.RUNS_READ)[0] for agent in (first, second)]
    assert [client.get(WHO, headers=bearer(text)).status_code for text in texts] == [200, 200]
    actions.deactivate_agent(agent=first, by=INSTALLER, clock=db_clock)
    actions.deactivate_membership(tenant=tenant, user=user, by=INSTALLER, clock=db_clock)
    assert [client.get(WHO, headers=bearer(text)).status_code for text in texts] == [401, 401]


def test_last_use_is_collected_and_written_beside_the_requests(client: Client) -> None:
    usage.flush()  # what other tests have left
    text, _ = people.token(people.agent(people.tenant()), Scope.RUNS_WRITE)
    client.get(WHO, headers=bearer(text))
    assert ApiToken.objects.get().last_used_at is None
    assert usage.flush() == 1
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    assert usage.flush() == 0
    client.post(RUNS, headers=bearer(text))
    usage.flush()
    again = ApiToken.objects.get().last_used_at
    assert again is not None
    assert again > first


def test_cookies_do_not_open_the_token_routes(client: Client) -> None:
    people.person(people.tenant(), "ada", Role.ADMIN)
    client.login(username="ada", password=PASSWORD)
    assert client.get(WHO).status_code == 401


# --- the routes that decide --------------------------------------------------------------------
def test_a_signed_in_person_is_the_actor(client: Client) -> None:
    user = people.person(people.tenant(), "ada", Role.REVIEWER)
    client.login(username="ada", password=PASSWORD)
    answer = client.get(VIEW)
    assert answer.json() == {
        "tenant": "north", "kind": "session", "scopes": [], "performed_by": f"user:{user.id}", "on_behalf_of": "",
        "via": "session", "owner": "person", "user": str(user.id), "request_id": answer["X-Request-ID"],
    }  # fmt: skip


@pytest.mark.parametrize("header", ["Bearer x", "Basic YTpi", "x", ""])
@pytest.mark.parametrize("signed_in", [True, False])
def test_any_authorization_header_is_refused(client: Client, header: str, signed_in: bool) -> None:
    people.person(people.tenant(), "ada", Role.REVIEWER)
    if signed_in:
        client.login(username="ada", password=PASSWORD)
    for answer in (
        client.post(DECIDE, headers={"Authorization": header}), client.get(VIEW, headers={"Authorization": header}),
    ):  # fmt: skip
        assert (answer.status_code, answer.json()["code"]) == (403, "token_cannot_decide")


def test_a_valid_token_decides_nothing(client: Client) -> None:
    text, _ = people.token(people.agent(people.tenant()), *Scope)
    answer = client.post(DECIDE, headers=bearer(text))
    assert (answer.status_code, answer.json()["code"]) == (403, "token_cannot_decide")


def test_nobody_decides_unsigned(client: Client) -> None:
    answer = client.post(DECIDE)
    assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")


def test_a_decision_proves_that_it_comes_from_our_page() -> None:
    people.person(people.tenant(), "ada", Role.REVIEWER)
    client = Client(enforce_csrf_checks=True)
    client.get("/sign-in/")
    page_token = next(value.value for name, value in client.cookies.items() if "csrf" in name)
    client.login(username="ada", password=PASSWORD)
    answer = client.post(DECIDE)
    assert (answer.status_code, answer.json()["code"]) == (403, "csrf_failed")
    assert client.get(VIEW).status_code == 200
    assert client.post(DECIDE, headers={"X-CSRFToken": page_token}).status_code == 200


def test_a_person_who_was_deactivated_is_nobody_at_the_next_request(client: Client) -> None:
    tenant = people.tenant()
    ada = people.person(tenant, "ada", Role.REVIEWER)
    bob = people.person(tenant, "bob", Role.REVIEWER)
    sessions = {}
    for user in (ada, bob):
        sessions[user] = Client()
        sessions[user].login(username=user.username, password=PASSWORD)
        assert sessions[user].post(DECIDE).status_code == 200
    actions.deactivate_user(user=ada, by=INSTALLER, clock=db_clock)
    actions.deactivate_membership(tenant=tenant, user=bob, by=INSTALLER, clock=db_clock)
    assert [session.post(DECIDE).status_code for session in sessions.values()] == [401, 401]


def test_the_life_of_a_token_is_counted_from_now() -> None:
    before = db_clock()
    _, row = people.token(people.agent(people.tenant()), life=timedelta(minutes=5))
    assert before + timedelta(minutes=5) <= row.expires_at <= db_clock() + timedelta(minutes=5)
    assert row.expires_at - row.created_at == timedelta(minutes=5)
