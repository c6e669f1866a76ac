"""Attacks on passkeys: answers used twice, of others, of copies, in races, and of shapes that no passkey makes."""

import json
from typing import Any

import pytest
from allauth.account.internal.userkit import user_id_to_str
from allauth.mfa.models import Authenticator
from django.contrib.sessions.models import Session
from django.test import Client

from access.enums import Role
from access.models import User
from tests.access import people
from tests.access.keys import add_app, code, happened, key_of
from tests.access.people import PASSWORD
from tests.access.softkey import SoftKey, add_key, b64, options_to_sign_in, sign_in_with
from tests.workflows.together import in_threads

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return people.person(people.tenant(), "ada", Role.REVIEWER)


def signed_in(name: str = "ada") -> Client:
    client = Client()
    client.post("/sign-in/", {"username": name, "password": PASSWORD}, secure=True)
    return client


def handle(user: User) -> str:
    return b64(user_id_to_str(user).encode())


def twin(client: Client) -> Client:
    """The same browser once more, for another thread."""
    other = Client()
    other.cookies.update(client.cookies)
    return other


def test_a_passkey_signs_its_person_in_and_nobody_else(ada: User) -> None:
    key = SoftKey()
    add_key(signed_in(), key)
    client = Client()
    assert sign_in_with(client, key.signed(options_to_sign_in(client), handle(ada)))
    assert happened("user.signed_in")[-1].body == {"methods": ["webauthn"]}
    bob = people.person(ada.memberships.get().tenant, "bob")
    thief = Client()
    assert not sign_in_with(thief, key.signed(options_to_sign_in(thief), handle(bob)))
    stranger = Client()
    assert not sign_in_with(stranger, SoftKey().signed(options_to_sign_in(stranger), handle(ada)))


def test_an_answer_belongs_to_one_session_and_is_good_for_once(ada: User) -> None:
    key = SoftKey()
    add_key(signed_in(), key)
    client, other = Client(), Client()
    answer = key.signed(options_to_sign_in(client), handle(ada))
    options_to_sign_in(other)
    assert not sign_in_with(other, answer)
    assert sign_in_with(client, answer)
    again = Client()
    options_to_sign_in(again)
    assert not sign_in_with(again, answer)


def test_an_office_signs_in_behind_one_address(ada: User) -> None:
    key = SoftKey()
    add_key(signed_in(), key)
    for _ in range(12):
        client = Client()
        assert sign_in_with(client, key.signed(options_to_sign_in(client), handle(ada)))


def test_without_its_person_verified_it_does_not_sign_in(ada: User) -> None:
    key = SoftKey()
    add_key(signed_in(), key)
    client = Client()
    assert not sign_in_with(client, key.signed(options_to_sign_in(client), handle(ada), verified=False))


def test_a_copy_that_lags_behind_is_refused(ada: User) -> None:
    key = SoftKey(counts=True)
    add_key(signed_in(), key)
    key.count += 5
    client = Client()
    assert sign_in_with(client, key.signed(options_to_sign_in(client), handle(ada)))
    key.count -= 3  # its copy
    client = Client()
    assert not sign_in_with(client, key.signed(options_to_sign_in(client), handle(ada)))
    key.count += 3
    client = Client()
    assert sign_in_with(client, key.signed(options_to_sign_in(client), handle(ada)))


def test_one_answer_in_many_requests_at_once_counts_once(ada: User) -> None:
    """One touch must not confirm two actions, whatever a session's requests read of it at the same time."""
    key, client = SoftKey(), signed_in()
    add_key(client, key)
    page = client.get("/account/confirm/passkey/", secure=True)
    answer = json.dumps(key.signed(json.loads(page.context["options"])))

    def confirm(number: int) -> int:
        digest = f"{number:064x}"
        sent = {"credential": answer, "digest": digest}
        return int(twin(client).post("/account/confirm/passkey/", sent, secure=True).status_code)

    assert sorted(in_threads(5, confirm)) == [200, 200, 200, 200, 302]
    assert len(happened("user.reauthenticated")) == 1


def test_a_key_that_comes_twice_is_one(ada: User) -> None:
    key, client = SoftKey(), signed_in()
    page = client.get("/account/passkeys/", secure=True)
    made = json.dumps(key.made(json.loads(page.context["options"])))

    def add(_: int) -> int:
        return int(twin(client).post("/account/passkeys/", {"credential": made}, secure=True).status_code)

    assert set(in_threads(4, add)) == {302}
    assert Authenticator.objects.filter(type="webauthn").count() == 1
    assert len(happened("user.mfa_added")) == 1


def test_a_key_that_is_taken_off_between_answer_and_session_opens_nothing(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from access import adapters

    key, owner = SoftKey(), signed_in()
    add_key(owner, key)
    pre_login = adapters.AccountAdapter.pre_login

    def slowly(self: Any, *args: Any, **kwargs: Any) -> Any:
        row = Authenticator.objects.filter(type="webauthn").first()
        if row is not None:
            assert owner.post(f"/account/passkeys/{row.pk}/", secure=True).status_code == 302
        return pre_login(self, *args, **kwargs)

    monkeypatch.setattr(adapters.AccountAdapter, "pre_login", slowly)
    client = Client()
    assert not sign_in_with(client, key.signed(options_to_sign_in(client), handle(ada)))


ODD: list[Any] = [
    "", "null", "7", '"x"', "[]", "{}", "[" * 50_000, '{"a":' * 50_000, "{not json", '{"id": 7}', '{"response": []}',
    '{"id": "AA", "rawId": "AA", "type": "public-key", "response": {}}',
    '{"id": "AA", "rawId": "AB", "type": "public-key", "response": {"clientDataJSON": "", "authenticatorData": ""}}',
    '{"id": "\\u0000", "rawId": "\\ud800", "type": "public-key", "response": {"userHandle": "\\ud800"}}',
]  # fmt: skip


ODD_PARTS = [
    None, 7, [], {}, "", "A", "AAAA", "!!", b64(b"\x9f" * 3000), b64(b"{}"), b64(b"[]"), b64(b"\xff"), b64(b"\xa0"),
]  # fmt: skip


def shapes() -> list[str]:
    """Real ones with one part at a time that is of another kind."""
    options = {"publicKey": {"challenge": b64(b"x" * 32)}}
    found = list(ODD)
    for real in (SoftKey().signed(options, b64(b"1")), SoftKey().made(options)):
        for name in real["response"]:
            found += [json.dumps(real | {"response": real["response"] | {name: odd}}) for odd in ODD_PARTS]
        found += [json.dumps(real | {name: odd}) for name in real for odd in (None, 7, [], {}, "x")]
    return found


def test_a_credential_of_any_shape_is_refused_in_words(ada: User) -> None:
    key, owner, stranger = SoftKey(), signed_in(), Client()
    add_key(owner, key)
    options_to_sign_in(stranger)
    for shape in shapes():
        sent = {"credential": shape}
        owner.get("/account/passkeys/", secure=True)
        assert owner.post("/account/passkeys/", sent, secure=True).status_code == 200, shape[:300]
        answer = stranger.post("/sign-in/passkey/", sent, secure=True)
        assert (answer.status_code, answer.get("Location")) == (302, "/sign-in/"), shape[:300]
    assert Authenticator.objects.filter(type="webauthn").count() == 1
    for shape in ODD[:4] + shapes()[-3:]:
        owner.get("/account/confirm/passkey/", secure=True)
        answer = owner.post("/account/confirm/passkey/", {"credential": shape}, secure=True)
        assert answer.status_code == 200, shape[:300]


def test_a_strangers_challenge_leaves_no_session_for_half_a_day(ada: User, settings: Any) -> None:
    client = Client()
    options_to_sign_in(client)
    row = Session.objects.get(pk=key_of(client))
    from django.utils import timezone

    left = (row.expire_date - timezone.now()).total_seconds()
    assert 0 < left <= settings.ACCOUNT_LOGIN_TIMEOUT
    key = SoftKey()
    add_key(signed_in(), key)
    assert sign_in_with(client, key.signed(options_to_sign_in(client), handle(ada)))
    row = Session.objects.get(pk=key_of(client))
    assert (row.expire_date - timezone.now()).total_seconds() > settings.PLACET_SESSION_MAX_S - 600


def test_two_windows_that_add_an_app_make_one(ada: User) -> None:
    windows = [signed_in(), signed_in()]
    secrets = [client.get("/account/app/", secure=True).context["form"].secret for client in windows]

    def add(number: int) -> int:
        sent = {"code": code(secrets[number])}
        return int(windows[number].post("/account/app/", sent, secure=True).status_code)

    assert all(status in (302, 403) for status in in_threads(2, add))
    assert Authenticator.objects.filter(type="totp").count() == 1
    assert len(happened("user.mfa_added")) == 1


def test_an_app_that_goes_while_its_code_is_looked_at_is_a_wrong_code(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from access import forms

    secret, client = add_app(ada), Client()
    client.post("/sign-in/", {"username": "ada", "password": PASSWORD}, secure=True)
    spend = forms.spend_code

    def gone(row: Authenticator, text: str) -> bool:
        Authenticator.objects.filter(pk=row.pk).delete()
        return spend(row, text)

    monkeypatch.setattr(forms, "spend_code", gone)
    answer = client.post("/sign-in/code/", {"code": code(secret)}, secure=True)
    assert answer.status_code == 200
    assert client.get("/account/", secure=True).status_code == 302
