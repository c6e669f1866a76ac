"""A provider that is away, answers in another shape, or is not the one that it was; and who was renamed there."""

import json
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from django.apps import apps
from django.db import connections
from django.test import Client
from django.test.utils import override_settings

from access.models import User
from access.provider import subject_id
from tests.access import people
from tests.access.issuer import Issuer, issuer
from tests.access.test_provider import ada, configured, go, opens, provider

__all__ = ["ada", "provider"]
pytestmark = pytest.mark.django_db


def test_a_provider_that_is_away_is_a_page_in_words(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    with issuer() as gone:
        oidc = configured(gone.address, monkeypatch)
    with override_settings(PLACET_OIDC=oidc, SOCIALACCOUNT_PROVIDERS=oidc.providers):
        answer = Client().post("/sign-in/with/oidc/")
    assert answer.status_code == 401
    assert "sign in with your name and password" in answer.content.decode()


@pytest.mark.parametrize(
    "said",
    [
        b"[]", b"{}", b"no json", b"\xff\xfe", b"null", b'{"issuer": 7}', b'{"issuer": "https://evil.example"}',
        b'{"issuer": "http://[::1"}',
    ],
)  # fmt: skip
def test_what_it_says_of_itself_is_believed_in_one_shape_only(
    ada: User, provider: Issuer, said: bytes
) -> None:
    provider.instead["/.well-known/openid-configuration"] = said
    assert Client().post("/sign-in/with/oidc/").status_code == 401


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/token", b"[]"), ("/token", b"{}"), ("/token", b"no json"), ("/token", b'{"access_token": "t"}'),
        ("/token", b'{"access_token": "t", "id_token": 5}'), ("/token", b'{"access_token": "t", "id_token": "a.b.c"}'),
        ("/token", b'{"access_token": "t", "id_token": "x", "expires_in": "soon"}'),
        ("/token", b'{"access_token": "t", "id_token": "x", "expires_in": 1e99}'),
        ("/userinfo", b"[]"), ("/userinfo", b"{}"), ("/userinfo", b"no json"), ("/userinfo", b'{"sub": "s-2"}'),
        ("/userinfo", b'{"sub": "s-1", "email": {"a": 1}, "email_verified": true}'),
    ],
)  # fmt: skip
def test_an_answer_of_another_shape_signs_nobody_in(
    ada: User, provider: Issuer, path: str, said: bytes
) -> None:
    client = Client()
    provider.instead[path] = said
    assert go(client, provider).status_code in (302, 401)
    assert not opens(client)
    assert not SocialAccount.objects.exists()


def test_no_parameter_of_a_request_goes_on_to_the_provider(ada: User, provider: Issuer) -> None:
    more = {
        "auth_params": "redirect_uri=https%3A%2F%2Fevil.example&state=x", "scope": "offline", "process": "redirect",
    }  # fmt: skip
    away = Client().post(f"/sign-in/with/oidc/?{urlencode(more)}")
    asked = parse_qs(urlsplit(away["Location"]).query)
    assert asked["redirect_uri"] == ["http://localhost:8000/sign-in/with/oidc/back/"]
    assert set(asked["scope"][0].split()) == {"openid", "email", "profile"}
    assert asked["state"] != ["x"]


def test_the_way_back_has_the_configured_host(ada: User, provider: Issuer) -> None:
    away = Client().post(
        "/sign-in/with/oidc/", headers={"Host": "127.0.0.1", "X-Forwarded-Host": "evil.example"}
    )
    assert parse_qs(urlsplit(away["Location"]).query)["redirect_uri"][0].startswith("http://localhost:8000/")


@pytest.mark.parametrize(
    "way", ["//evil.example", "https://evil.example/", "\\\\evil.example", "javascript:alert(1)"]
)
def test_no_way_back_leads_off_the_site(ada: User, provider: Issuer, way: str) -> None:
    client = Client()
    away = client.post(f"/sign-in/with/oidc/?{urlencode({'next': way})}")
    asked = parse_qs(urlsplit(away["Location"]).query)
    provider.nonce = asked["nonce"][0]
    back = client.get("/sign-in/with/oidc/back/", {"code": "c", "state": asked["state"][0]})
    assert back["Location"] == "/review/"


def test_a_state_is_good_for_once(ada: User, provider: Issuer) -> None:
    client = Client()
    away = client.post("/sign-in/with/oidc/")
    asked = parse_qs(urlsplit(away["Location"]).query)
    provider.nonce = asked["nonce"][0]
    first, second = (
        client.get("/sign-in/with/oidc/back/", {"code": "c", "state": asked["state"][0]}) for _ in range(2)
    )
    assert (first.status_code, second.status_code) == (302, 401)


def test_a_subject_of_another_issuer_is_somebody_else(
    ada: User, provider: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(Client(), provider)
    with issuer() as other:
        other.claims |= {"email": "eve@example.org"}  # and the subject that Ada has at the first
        oidc = configured(other.address, monkeypatch, MATCH_EMAIL="true")
        with override_settings(PLACET_OIDC=oidc, SOCIALACCOUNT_PROVIDERS=oidc.providers):
            thief = Client()
            go(thief, other)
            assert not opens(thief)


def test_an_address_that_was_given_to_somebody_else_leads_to_nobody(ada: User, provider: Issuer) -> None:
    go(Client(), provider)
    provider.claims["sub"] = "s-2"  # who has Ada's address now
    newcomer = Client()
    go(newcomer, provider)
    assert not opens(newcomer)
    assert SocialAccount.objects.count() == 1


@pytest.mark.parametrize(
    "address", ["bo\u212a@example.org", "bok@\u017fhop.example", "m\u0131ke@example.org"]
)
def test_an_address_that_only_looks_the_same_is_another(ada: User, provider: Issuer, address: str) -> None:
    plain = address.replace("\u212a", "k").replace("\u017f", "s").replace("\u0131", "i")
    User.objects.filter(pk=ada.pk).update(email=plain)
    provider.claims["email"] = address
    client = Client()
    go(client, provider)
    assert not opens(client)


def test_a_subject_may_be_as_long_as_the_protocol_says(ada: User, provider: Issuer) -> None:
    provider.claims["sub"] = "s" * 255
    client = Client()
    go(client, provider)
    assert opens(client)


def test_a_person_of_another_organisation_comes_into_their_own(ada: User, provider: Issuer) -> None:
    bob = people.person(people.tenant("east"), "bob")
    User.objects.filter(pk=bob.pk).update(email="bob@example.org")
    provider.claims |= {"sub": "s-9", "email": "bob@example.org"}
    client = Client()
    go(client, provider)
    assert client.get("/account/").context["request"].tenant.slug == "east"


def test_accounts_from_before_are_of_the_issuer_that_was_configured(ada: User, provider: Issuer) -> None:
    row = SocialAccount.objects.create(
        user=ada, provider="oidc", uid="s-1", extra_data={"userinfo": {"name": "A"}}
    )
    migration: Any = import_module("access.migrations.0007_subjects_of_one_issuer")
    with connections["owner"].schema_editor() as editor:
        migration.name_the_issuer(apps, editor)
        migration.name_the_issuer(apps, editor)  # again changes nothing
    row.refresh_from_db()
    assert (row.uid, row.extra_data) == (subject_id(provider.address, "s-1"), {})
    assert json.dumps(row.extra_data) == "{}"
