"""Attacks on the sign-in: which names there are, and which password; from one address and from many."""

import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.core.cache import cache
from django.db import connections
from django.test import Client
from django.test.utils import override_settings

from access import actions
from access.enums import Role
from access.models import User
from access.throttle import TRIES, TRIES_OF_NAME
from common.clock import db_clock
from tests.access import people
from tests.access.keys import happened
from tests.access.people import INSTALLER, PASSWORD

pytestmark = pytest.mark.django_db
ARGON2 = ["django.contrib.auth.hashers.Argon2PasswordHasher"]


def sign_in(username: str, password: str = PASSWORD, *, client: Client | None = None, **headers: str) -> Any:
    return (client or Client()).post("/sign-in/", {"username": username, "password": password}, **headers)


def text_of(answer: Any) -> str:
    """The page without what differs from request to request."""
    page = answer.content.decode()
    for line in ("csrfmiddlewaretoken", 'id="id_username"'):
        page = "\n".join(row for row in page.splitlines() if line not in row)
    return page


@pytest.fixture
def ada() -> User:
    return people.person(people.tenant(), "ada", Role.REVIEWER)


@pytest.fixture
def everybody(ada: User) -> User:
    """Beside *ada*: one whose account is closed, one who is a member of nothing, one without a password."""
    tenant = ada.memberships.get().tenant
    actions.deactivate_user(user=people.person(tenant, "gone"), by=INSTALLER, clock=db_clock)
    actions.deactivate_membership(
        tenant=tenant, user=people.person(tenant, "loose"), by=INSTALLER, clock=db_clock
    )
    actions.create_user(tenant=tenant, username="keyless", password=None, by=INSTALLER, clock=db_clock)
    return ada


def test_the_answer_is_the_same_whatever_was_wrong(everybody: User) -> None:
    wrong = [
        sign_in("ada", "wrong"),
        sign_in("nobody"),
        sign_in("gone"),
        sign_in("loose"),
        sign_in("keyless"),
    ]
    assert {answer.status_code for answer in wrong} == {200}
    assert len({text_of(answer) for answer in wrong}) == 1
    assert "not correct together" in text_of(wrong[0])
    assert all("placet_session" not in answer.cookies for answer in wrong)


@override_settings(PASSWORD_HASHERS=ARGON2)
def test_each_wrong_way_costs_the_same_computation(everybody: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """One hash each, however it ends: less, or none, would tell who is there."""
    for user in User.objects.exclude(username="keyless"):
        user.set_password(PASSWORD)
        user.save()
    hashed: list[str] = []
    encode = Argon2PasswordHasher.encode
    verify = Argon2PasswordHasher.verify
    monkeypatch.setattr(
        Argon2PasswordHasher, "encode", lambda self, *a: hashed.append("encode") or encode(self, *a)
    )
    monkeypatch.setattr(
        Argon2PasswordHasher, "verify", lambda self, *a: hashed.append("verify") or verify(self, *a)
    )
    for name, password in (("ada", "wrong"), ("nobody", "wrong"), ("gone", PASSWORD), ("keyless", "wrong")):
        before = len(hashed)
        sign_in(name, password)
        assert len(hashed) - before == 1, name


@override_settings(PASSWORD_HASHERS=ARGON2)
def test_known_and_unknown_names_take_equally_long(everybody: User) -> None:
    User.objects.get(username="ada").set_password(PASSWORD)

    def seconds(name: str) -> float:
        client, started = Client(), time.perf_counter()
        sign_in(name, "wrong", client=client)
        return time.perf_counter() - started

    pairs = [(seconds("ada"), seconds(f"nobody-{n}")) for n in range(8)]
    known, unknown = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    assert 0.4 < known / unknown < 2.5


def test_unknown_names_are_braked_like_known_ones(ada: User) -> None:
    for name in ("ada", "nobody"):
        answers = [sign_in(name, "wrong") for _ in range(TRIES + 1)]
        assert [answer.status_code for answer in answers] == [200] * TRIES + [429], name
        assert answers[-1]["Retry-After"] == "900"
    assert text_of(sign_in("ada", "wrong")) == text_of(sign_in("nobody", "wrong"))


def test_a_name_is_braked_from_however_many_addresses(ada: User) -> None:
    statuses = [
        sign_in("ada", "wrong", REMOTE_ADDR=f"198.51.100.{n}").status_code for n in range(TRIES_OF_NAME + 1)
    ]
    assert statuses == [200] * TRIES_OF_NAME + [429]
    assert sign_in("ada", REMOTE_ADDR="203.0.113.9").status_code == 429
    assert sign_in("someone", "wrong", REMOTE_ADDR="203.0.113.9").status_code == 200


def strangers_use_up(name: str) -> None:
    for n in range(TRIES_OF_NAME):
        sign_in(name, "wrong", REMOTE_ADDR=f"198.51.100.{n}")
    assert sign_in(name, REMOTE_ADDR="203.0.113.9").status_code == 429


def test_strangers_hold_nobody_up_in_a_browser_of_their_own(ada: User) -> None:
    """Where ada has signed in before, her own tries count and no others; and they count."""
    known = Client()
    assert sign_in("ada", client=known, REMOTE_ADDR="192.0.2.1").status_code == 302
    known.post("/sign-out/")
    strangers_use_up("ada")
    assert sign_in("ada", client=known, REMOTE_ADDR="203.0.113.9").status_code == 302
    known.post("/sign-out/")
    tries = [sign_in("ada", "wrong", client=known).status_code for _ in range(TRIES + 1)]
    assert tries == [200] * TRIES + [429]
    assert sign_in("ada", client=known).status_code == 429


def test_a_browser_is_known_for_who_signed_in_there_and_by_no_other_cookie(ada: User) -> None:
    people.person(ada.memberships.get().tenant, "ben", Role.REVIEWER)
    mine = Client()
    assert sign_in("ben", client=mine).status_code == 302
    cookie = mine.cookies[settings.PLACET_BROWSER_COOKIE_NAME]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    strangers_use_up("ada")
    for value in (cookie.value, cookie.value[:-1], cookie.value.replace(":", "::", 1), "", "[]", "x" * 5000):
        client = Client()
        client.cookies[settings.PLACET_BROWSER_COOKIE_NAME] = value
        assert sign_in("ada", client=client, REMOTE_ADDR="203.0.113.9").status_code == 429


def test_a_try_that_did_not_come_in_makes_no_browser_known(ada: User) -> None:
    client = Client()
    sign_in("ada", "wrong", client=client)
    assert settings.PLACET_BROWSER_COOKIE_NAME not in client.cookies


def test_an_address_is_braked_for_however_many_names(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("access.throttle.TRIES_OF_ADDRESS", 5)
    statuses = [sign_in(f"name-{n}", "wrong", REMOTE_ADDR="198.51.100.7").status_code for n in range(6)]
    assert statuses == [200] * 5 + [429]
    assert sign_in("ada", REMOTE_ADDR="198.51.100.8").status_code == 302


def test_an_ipv6_network_is_one_address(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("access.throttle.TRIES_OF_ADDRESS", 5)
    for n in range(5):
        sign_in(f"name-{n}", "wrong", REMOTE_ADDR=f"2001:db8::{n}")
    assert sign_in("ada", REMOTE_ADDR="2001:db8::ffff").status_code == 429
    assert sign_in("ada", REMOTE_ADDR="2001:db8:0:1::1").status_code == 302


def test_ipv4_clients_of_a_socket_for_both_are_not_one_address(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("access.throttle.TRIES_OF_ADDRESS", 2)
    for _ in range(3):
        sign_in("nobody", REMOTE_ADDR="::ffff:192.0.2.1")
    assert sign_in("nobody", REMOTE_ADDR="192.0.2.1").status_code == 429
    assert sign_in("ada", REMOTE_ADDR="::ffff:192.0.2.2").status_code == 302


def test_strangers_do_not_fill_the_history_with_passkeys(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("access.throttle.TRIES_OF_ADDRESS", 3)
    client = Client()
    for _ in range(5):
        assert client.post("/sign-in/passkey/", {"credential": "{}"}).status_code == 302
    assert len(happened("user.sign_in_failed")) == 3


def test_a_client_does_not_choose_its_address(ada: User) -> None:
    for n in range(TRIES):
        sign_in("ada", "wrong", HTTP_X_FORWARDED_FOR=f"192.0.2.{n}")
    assert sign_in("ada", "wrong", HTTP_X_FORWARDED_FOR="192.0.2.99").status_code == 429


@override_settings(PLACET_BEHIND_PROXY=True)
def test_behind_a_proxy_its_own_entry_counts_and_no_other(ada: User) -> None:
    for n in range(TRIES):
        sign_in("ada", "wrong", HTTP_X_FORWARDED_FOR=f"192.0.2.{n}, 198.51.100.1")
    assert sign_in("ada", HTTP_X_FORWARDED_FOR="192.0.2.99, 198.51.100.1").status_code == 429
    assert sign_in("ada", HTTP_X_FORWARDED_FOR="192.0.2.99, 198.51.100.2").status_code == 302


def test_a_cache_that_forgets_changes_nothing(ada: User) -> None:
    for _ in range(TRIES):
        sign_in("ada", "wrong")
        cache.clear()
    assert sign_in("ada").status_code == 429


def test_many_tries_at_once_do_not_get_past(ada: User) -> None:
    def attempt(_: int) -> int:
        try:
            return int(sign_in("ada", "wrong").status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(attempt, range(TRIES + 8)))
    assert statuses.count(200) == TRIES
    assert statuses.count(429) == 8
    assert len(happened("user.sign_in_failed", subject_type="sign_in")) == TRIES


def test_signing_in_between_does_not_give_tries_back(ada: User) -> None:
    for _ in range(TRIES - 1):
        sign_in("ada", "wrong")
    assert sign_in("ada").status_code == 302
    assert sign_in("ada", "wrong").status_code == 200
    assert sign_in("ada").status_code == 429


def test_a_look_alike_in_full_width_letters_is_the_same_name(ada: User) -> None:
    assert sign_in("\uff41\uff44\uff41").status_code == 302
    assert sign_in("ADA").status_code == 200
