"""Sign-in with a provider: whom it leads to, whom it does not, and that it makes nobody."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import environ
import pytest
from allauth.socialaccount.models import SocialAccount, SocialApp
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.test.utils import override_settings

from access import actions
from access.enums import Role
from access.models import User
from access.provider import subject_id
from common.clock import db_clock
from config.signin import openid_connect
from tests.access import people
from tests.access.issuer import CLIENT, Issuer, issuer
from tests.access.keys import add_app, happened
from tests.access.people import INSTALLER, PASSWORD

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    user = people.person(people.tenant(), "ada", Role.REVIEWER)
    User.objects.filter(pk=user.pk).update(email="Ada@example.org")
    return user


def configured(address: str, monkeypatch: pytest.MonkeyPatch, **more: str) -> Any:
    values = {"ISSUER": address, "CLIENT_ID": CLIENT, "CLIENT_SECRET": "s", "NAME": "Harbour ID"} | more
    for name, value in values.items():
        monkeypatch.setenv(f"PLACET_OIDC_{name}", value)
    return openid_connect(environ.Env())


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    """The issuer, whose verified addresses are believed."""
    with issuer() as running:
        oidc = configured(running.address, monkeypatch, MATCH_EMAIL="true")
        with override_settings(PLACET_OIDC=oidc, SOCIALACCOUNT_PROVIDERS=oidc.providers):
            yield running


def go(client: Client, at: Issuer, *, process: str = "") -> Any:
    """To the provider and back; the answer to the way back."""
    away = client.post(f"/sign-in/with/oidc/{'?process=' + process if process else ''}")
    assert away.status_code == 302
    asked = parse_qs(urlsplit(away["Location"]).query)
    assert asked["code_challenge_method"] == ["S256"]
    at.nonce = asked["nonce"][0]
    return client.get("/sign-in/with/oidc/back/", {"code": "c", "state": asked["state"][0]})


def opens(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def test_a_verified_address_leads_to_the_one_person_who_has_it(ada: User, provider: Issuer) -> None:
    client = Client()
    assert "Sign in with Harbour ID" in client.get("/sign-in/").content.decode()
    assert go(client, provider)["Location"] == "/review/"
    assert opens(client)
    account = SocialAccount.objects.get()
    assert (account.user, account.uid) == (ada, subject_id(provider.address, "s-1"))
    assert happened("user.provider_linked")[0].subject_id == ada.pk
    assert happened("user.signed_in")[0].body == {"methods": ["socialaccount"]}
    provider.claims["email"] = "changed@example.org"  # linked from now on: the address no longer matters
    again = Client()
    go(again, provider)
    assert opens(again)
    assert User.objects.count() == 1
    assert SocialAccount.objects.get().extra_data == {}, "nothing is kept of what the provider says of people"


@pytest.mark.parametrize(
    "claims",
    [
        {"email_verified": False},
        {"email_verified": None},
        {"email": "nobody@example.org"},
        {"email": ""},
        {"email": "ada@example.org.evil.example"},
    ],
)
def test_other_addresses_lead_to_nobody(ada: User, provider: Issuer, claims: dict[str, Any]) -> None:
    provider.claims |= claims
    client = Client()
    assert go(client, provider)["Location"] == "/sign-in/"
    assert "not correct together" in client.get("/sign-in/").content.decode()
    assert not opens(client)
    assert User.objects.count() == 1
    assert not SocialAccount.objects.exists()
    assert happened("user.sign_in_failed", subject_type="sign_in_address")


def test_two_people_with_one_address_are_nobody(ada: User, provider: Issuer) -> None:
    other = people.person(ada.memberships.get().tenant, "bob")
    User.objects.filter(pk=other.pk).update(email="ada@example.org")
    client = Client()
    go(client, provider)
    assert not opens(client)


def test_addresses_are_believed_only_where_that_is_said(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    with issuer() as running:
        oidc = configured(running.address, monkeypatch)
        with override_settings(PLACET_OIDC=oidc, SOCIALACCOUNT_PROVIDERS=oidc.providers):
            client = Client()
            go(client, running)
            assert not opens(client)


@pytest.mark.parametrize(
    "lie",
    [
        {"iss": "https://evil.example"}, {"aud": "another"}, {"aud": ["another"]}, {"exp": 1}, {"sub": "s-2"},
        {"sub": ""}, {"sub": None}, {"nonce": "of another try"}, {"nonce": None}, {"nonce": 7},
    ],
)  # fmt: skip
def test_a_token_of_somebody_else_is_refused(ada: User, provider: Issuer, lie: dict[str, Any]) -> None:
    provider.changes = lie
    client = Client()
    assert b"The provider said no" in go(client, provider).content
    assert not opens(client)


def test_a_way_back_that_was_not_begun_here_opens_nothing(ada: User, provider: Issuer) -> None:
    begun, victim = Client(), Client()
    away = begun.post("/sign-in/with/oidc/")
    state = parse_qs(urlsplit(away["Location"]).query)["state"][0]
    for client in (victim, Client()):
        answer = client.get("/sign-in/with/oidc/back/", {"code": "c", "state": state})
        assert b"The provider said no" in answer.content
        assert not opens(client)
    assert begun.get("/sign-in/with/oidc/").status_code == 405  # a link does not begin it


def test_the_second_factor_is_asked_for_all_the_same(ada: User, provider: Issuer) -> None:
    add_app(ada)
    client = Client()
    assert go(client, provider)["Location"] == "/sign-in/code/"
    assert not opens(client)


def test_a_closed_account_stays_closed(ada: User, provider: Issuer) -> None:
    go(Client(), provider)
    actions.deactivate_user(user=ada, by=INSTALLER, clock=db_clock)
    client = Client()
    assert go(client, provider)["Location"] == "/sign-in/"
    assert not opens(client)


def test_a_person_links_and_unlinks_by_themselves(ada: User, provider: Issuer) -> None:
    provider.claims |= {"email": "private@example.net", "sub": "s-2"}
    client = Client()
    client.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    assert go(client, provider, process="connect")["Location"] == "/account/linked/"
    assert SocialAccount.objects.get().user == ada
    assert happened("user.provider_linked")
    bob = people.person(ada.memberships.get().tenant, "bob")
    thief = Client()
    thief.post("/sign-in/", {"username": "bob", "password": PASSWORD})
    go(thief, provider, process="connect")
    assert SocialAccount.objects.get().user == ada != bob
    page = client.get("/account/linked/")
    account = page.context["accounts"][0].pk
    assert thief.post("/account/linked/", {"account": account}).status_code == 404
    assert client.post("/account/linked/", {"account": account}).status_code == 302
    assert not SocialAccount.objects.exists()
    assert happened("user.provider_unlinked")


def test_a_provider_in_the_database_is_none(ada: User) -> None:
    SocialApp.objects.create(
        provider="openid_connect", provider_id="oidc", name="Evil", client_id="x", secret="x",
        settings={"server_url": "https://evil.example"},
    )  # fmt: skip
    assert Client().post("/sign-in/with/oidc/").status_code == 404


def test_the_issuer_is_reached_by_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImproperlyConfigured, match="https"):
        configured("http://id.example.org", monkeypatch)
    assert configured("https://id.example.org/realm", monkeypatch).origins == ("https://id.example.org",)
