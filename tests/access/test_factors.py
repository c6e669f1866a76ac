"""Attacks on second factors: used codes, wrong codes, other people's codes, going around the step."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.cache import cache
from django.db import connections
from django.test import Client

from access.enums import Role
from access.models import User
from access.throttle import FACTOR_TRIES
from tests.access import people
from tests.access.keys import add_app, add_codes, age, code, factors_of, happened, mails
from tests.access.people import PASSWORD

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    user = people.person(people.tenant(), "ada", Role.REVIEWER)
    user.email = "ada@example.org"
    user.save()
    return user


def first_step(username: str = "ada") -> Client:
    client = Client()
    client.post("/sign-in/", {"username": username, "password": PASSWORD})
    return client


def second_step(client: Client, typed: str, **more: Any) -> Any:
    return client.post("/sign-in/code/", {"code": typed, **more})


def opens(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def test_the_password_alone_opens_nothing(ada: User) -> None:
    add_app(ada)
    client = first_step()
    for path in ("/review/", "/account/", "/account/app/remove/", "/account/confirm/"):
        answer = client.get(path)
        assert answer.status_code == 302
        assert answer["Location"].startswith(("/sign-in/", "/account/app")), path
    assert not opens(client)
    assert not happened("user.signed_in")


def test_without_the_password_there_is_no_second_step(ada: User) -> None:
    secret = add_app(ada)
    client = Client()
    assert second_step(client, code(secret))["Location"] == "/sign-in/"
    assert not opens(client)


def test_password_and_code_open(ada: User) -> None:
    secret = add_app(ada)
    client = first_step()
    assert client.get("/sign-in/code/").status_code == 200
    assert second_step(client, code(secret)).status_code == 302
    assert opens(client)
    assert happened("user.signed_in")[0].body == {"methods": ["password", "totp"]}


def test_a_code_is_good_for_once(ada: User) -> None:
    secret = add_app(ada)
    typed = code(secret)
    assert second_step(first_step(), typed).status_code == 302
    cache.clear()
    eavesdropper = first_step()
    answer = second_step(eavesdropper, typed)
    assert answer.status_code == 200
    assert "was used before" in answer.content.decode()
    assert not opens(eavesdropper)


def test_an_older_code_is_worth_nothing_after_a_newer_one(ada: User) -> None:
    secret = add_app(ada)
    assert second_step(first_step(), code(secret, 1)).status_code == 302
    late = first_step()
    assert second_step(late, code(secret, -1)).status_code == 200
    assert second_step(late, code(secret)).status_code == 200
    assert not opens(late)


def test_the_code_that_added_the_app_does_not_sign_in(ada: User) -> None:
    client = first_step()
    secret = client.get("/account/app/").context["form"].secret
    typed = code(secret)
    assert client.post("/account/app/", {"code": typed}).status_code == 302
    cache.clear()
    assert second_step(first_step(), typed).status_code == 200


def test_one_code_in_many_places_at_once_opens_one(ada: User) -> None:
    secret = add_app(ada)
    clients, typed = [first_step() for _ in range(5)], code(secret)

    def attempt(client: Client) -> int:
        try:
            cache.clear()
            return int(second_step(client, typed).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(5) as pool:
        statuses = list(pool.map(attempt, clients))
    assert statuses.count(302) == 1
    assert sum(opens(client) for client in clients) == 1


def test_codes_are_not_found_by_trying(ada: User) -> None:
    secret = add_app(ada)
    client = first_step()
    for _ in range(FACTOR_TRIES):
        assert second_step(client, "000000").status_code == 200
        cache.clear()
    answer = second_step(client, code(secret))
    assert (answer.status_code, answer["Retry-After"]) == (429, "900")
    fresh = first_step()
    assert second_step(fresh, code(secret)).status_code == 429
    assert not opens(fresh)
    assert len(happened("user.second_factor_failed", subject_type="second_factor")) == FACTOR_TRIES
    assert str(ada.pk) not in str(
        [event.subject_id for event in happened("user.second_factor_failed", subject_type="second_factor")]
    )


def test_another_persons_code_is_no_code(ada: User) -> None:
    add_app(ada)
    bob = people.person(ada.memberships.get().tenant, "bob")
    secret = add_app(bob)
    client = first_step()
    assert second_step(client, code(secret)).status_code == 200
    assert not opens(client)


def test_a_recovery_code_is_good_for_once(ada: User) -> None:
    add_app(ada)
    codes = add_codes(ada)
    assert second_step(first_step(), codes[0]).status_code == 302
    again = first_step()
    assert second_step(again, codes[0]).status_code == 200
    assert not opens(again)
    assert second_step(again, codes[1]).status_code == 302


def test_new_recovery_codes_end_the_old_ones(ada: User) -> None:
    secret, old = add_app(ada), add_codes(ada)
    client = first_step()
    second_step(client, code(secret))
    assert client.post("/account/codes/new/").status_code == 302
    shown = client.get("/account/codes/").context["codes"]
    assert not set(shown) & set(old)
    assert second_step(first_step(), old[0]).status_code == 200
    assert second_step(first_step(), shown[0]).status_code == 302
    assert happened("user.recovery_codes_made")


def test_secrets_are_not_readable_in_the_database(ada: User) -> None:
    secret = add_app(ada)
    add_codes(ada)
    stored = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert secret not in stored
    assert "gAAAA" in stored


def test_adding_and_removing_are_events_and_mails(ada: User) -> None:
    client = first_step()
    secret = client.get("/account/app/").context["form"].secret
    client.post("/account/app/", {"code": code(secret)})
    assert factors_of(ada) == ["recovery_codes", "totp"]
    assert client.post("/account/app/remove/").status_code == 302
    assert factors_of(ada) == []
    assert [event.body for event in happened("user.mfa_added")] == [{"factor": "totp"}]
    assert {event.body["factor"] for event in happened("user.mfa_removed")} == {"totp", "recovery_codes"}
    assert {mail.subject for mail in mails()} == {
        "[Placet] An app for codes was added", "[Placet] The app for codes was removed",
    }  # fmt: skip
    assert secret not in str([mail.body for mail in mails()])


def test_an_event_that_cannot_be_written_undoes_the_change(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = first_step()
    secret = client.get("/account/app/").context["form"].secret
    client.raise_request_exception = False
    monkeypatch.setattr("access.actions_account.record_many", lambda entries: 1 / 0)
    assert client.post("/account/app/", {"code": code(secret)}).status_code == 500
    assert factors_of(ada) == []
    assert mails() == []


def test_an_old_session_changes_no_factor_without_proof(ada: User) -> None:
    client = first_step()
    age(client, opened=3600)
    for path in ("/account/app/", "/account/passkeys/"):
        assert client.get(path)["Location"] == f"/account/confirm/?next={path}"
    secret = add_app(ada)
    for path in ("/account/app/remove/", "/account/codes/new/"):
        assert client.post(path)["Location"] == "/account/confirm/"
    assert factors_of(ada) == ["totp"]
    # With an app, the password proves nothing more.
    assert client.get("/account/confirm/")["Location"] == "/account/confirm/code/"
    assert (
        client.post("/account/confirm/password/", {"password": PASSWORD})["Location"]
        == "/account/confirm/code/"
    )
    assert client.post("/account/confirm/code/", {"code": "000000"}).status_code == 200
    answer = client.post("/account/confirm/code/", {"code": code(secret), "next": "/account/app/remove/"})
    assert answer["Location"] == "/account/app/remove/"
    assert client.post("/account/app/remove/")["Location"] == "/account/"
    assert [event.body for event in happened("user.reauthenticated")] == [{"method": "totp"}]


def test_a_passkey_that_nobody_has_signs_nobody_in(ada: User) -> None:
    client = Client()
    client.get("/sign-in/passkey/", headers={"Accept": "application/json"})
    for credential in (
        "",
        "{}",
        "[]",
        "7",
        '{"id": "x", "rawId": "x", "type": "public-key", "response": {}}',
    ):
        answer = client.post("/sign-in/passkey/", {"credential": credential})
        assert answer["Location"] == "/sign-in/", credential
    assert not opens(client)
    assert "This passkey opens no account here" in client.get("/sign-in/").content.decode()
    assert happened("user.sign_in_failed", subject_type="sign_in_address")
