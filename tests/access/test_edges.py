"""The edges of identity: headers that lie, addresses in odd forms, cookies that outlive a person, clocks."""

from typing import Any

import pytest
from django.http import HttpRequest
from django.test import Client

from access import adapters, tokens
from access.clients import UNKNOWN, client_address
from access.enums import Role, Scope
from access.models import User
from tests.access import people
from tests.access.keys import add_app, mails
from tests.access.people import PASSWORD
from tests.api.callers import ROOT, automation, token_for
from tests.factories import make_tenant, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    user = people.person(people.tenant(), "ada", Role.ADMIN)
    User.objects.filter(pk=user.pk).update(email="ada@example.org")
    return user


# -- addresses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("192.0.2.7", "192.0.2.7"), ("192.0.2.7:51234", "192.0.2.7"), ("[2001:db8::7]:51234", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"), ("2001:db8::7", "2001:db8::7"), ("fe80::7%eth0", "fe80::7"),
        ("::ffff:192.0.2.7", "192.0.2.7"), ("", UNKNOWN), ("unix:", UNKNOWN), ("x" * 9000, UNKNOWN),
        ("1.2.3.4, 192.0.2.7:80", "192.0.2.7"),
    ],
)  # fmt: skip
def test_an_address_in_any_form_that_proxies_write(settings: Any, said: str, meant: str) -> None:
    settings.PLACET_BEHIND_PROXY = True
    request = HttpRequest()
    request.META |= {"REMOTE_ADDR": "", "HTTP_X_FORWARDED_FOR": said}
    assert client_address(request) == meant


@pytest.mark.parametrize("address", ["fe80::1%eth0", "nonsense", ""])
def test_from_an_odd_address_people_still_sign_in(ada: User, address: str) -> None:
    client = Client(REMOTE_ADDR=address)
    assert client.post("/sign-in/", {"username": "ada", "password": PASSWORD}).status_code == 302
    assert client.get("/account/sessions/").status_code == 200


# -- hosts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-Host": "evil.example"}, {"X-Forwarded-Server": "evil.example"}, {"X-Original-URL": "/people/"},
        {"X-Rewrite-URL": "/people/"}, {"Forwarded": "host=evil.example"}, {"X-Forwarded-Prefix": "//evil.example"},
        {"X-HTTP-Method-Override": "DELETE"}, {"X-Forwarded-Proto": "https"}, {"Referer": "https://evil.example/"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/review/", "/account/", "/admin/", "/people"])
def test_no_header_moves_a_redirect_off_the_site(ada: User, path: str, headers: dict[str, str]) -> None:
    answer = Client().get(path, headers=headers)
    assert "evil" not in answer.get("Location", "")
    assert "evil" not in answer.content.decode()


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "localhost:80@evil.example", "[::1"]
)
def test_another_host_is_refused(ada: User, host: str) -> None:
    assert Client().get("/sign-in/", headers={"Host": host}).status_code == 400


# -- cookies ------------------------------------------------------------------------------------------------------


def test_every_cookie_is_of_this_host_and_hidden_from_scripts(ada: User, settings: Any) -> None:
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    client = Client()
    client.get("/sign-in/")
    client.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    client.post("/account/sessions/others/")  # says something
    assert set(client.cookies) == {"placet_csrf", "placet_session", "placet_browser", "placet_messages"}
    for morsel in client.cookies.values():
        flags = {name: morsel[name] for name in ("httponly", "secure", "samesite", "path", "domain")}
        assert flags == {"httponly": True, "secure": True, "samesite": "Lax", "path": "/", "domain": ""}, (
            morsel.key
        )


def test_what_was_said_to_one_person_is_not_shown_to_the_next(ada: User) -> None:
    people.person(ada.memberships.get().tenant, "bob", Role.ADMIN)
    browser = Client()
    browser.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    browser.post("/account/sessions/others/")
    kept = browser.cookies["placet_messages"].value
    own = Client()
    own.cookies.update(browser.cookies)
    assert "The session has ended" in own.get("/account/sessions/").content.decode()
    browser.post("/sign-out/")
    browser.post("/sign-in/", {"username": "bob", "password": PASSWORD})
    browser.cookies["placet_messages"] = kept
    assert "The session has ended" not in browser.get("/account/sessions/").content.decode()


# -- who has an account -------------------------------------------------------------------------------------------


def test_asking_for_a_new_password_makes_as_many_mails_for_nobody(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    render = adapters.AccountAdapter.render_mail

    def counted(self: Any, prefix: str, *args: Any, **kwargs: Any) -> Any:
        made.append(prefix)
        return render(self, prefix, *args, **kwargs)

    monkeypatch.setattr(adapters.AccountAdapter, "render_mail", counted)
    machine = people.person(ada.memberships.get().tenant, "machine")
    User.objects.filter(pk=machine.pk).update(email="machine@example.org", password="!")
    costs = []
    for address in ("ada@example.org", "nobody@example.org", "machine@example.org"):
        made.clear()
        assert Client().post("/sign-in/forgot/", {"email": address}).status_code == 302
        costs.append(list(made))
    assert costs == [["account/email/password_reset_key"]] * 3
    assert [mail.to for mail in mails()] == [["ada@example.org"]]


@pytest.mark.parametrize("name", ["ada\x00", "\ud800", "a" * 5000, "ada\r\nX: y", "\u202eada"])
def test_odd_names_are_wrong_ones(ada: User, name: str) -> None:
    answer = Client().post("/sign-in/", {"username": name.encode(errors="surrogatepass"), "password": "x"})
    assert answer.status_code in (200, 400)


@pytest.mark.parametrize("path", ["/account/sessions/{}/", "/account/passkeys/{}/"])
@pytest.mark.parametrize("number", ["0", "9" * 30])
def test_numbers_beyond_any_row_are_missing(ada: User, path: str, number: str) -> None:
    client = Client()
    client.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    add_app(ada)
    assert client.post(path.format(number)).status_code == 404


# -- tokens -------------------------------------------------------------------------------------------------------


@pytest.fixture
def caller() -> Any:
    tenant = make_tenant()
    make_user(tenant, "owen", roles=[Role.ADMIN])
    return automation(token_for(tenant, scopes=[Scope.RUNS_READ]))


def status(**options: Any) -> int:
    path = options.pop("path", "runs")
    return int(Client().get(f"{ROOT}/{path}", **options).status_code)


def test_a_token_comes_in_one_header_and_in_no_other_place(caller: Any) -> None:
    text = caller.headers["Authorization"].partition(" ")[2]
    assert tokens.looks_like_token(text)
    assert status(headers={"Authorization": f"Bearer {text}"}) == 200
    for header in (
        text, f"Token {text}", f"Basic {text}", f"Bearer {text},", f"Bearer {text}, Bearer {text}", f"Bearer  {text} x",
        f"Bearer {text.upper()}", f"Bearer PLC_{text[4:]}", f"Bearer plc-{text[4:]}", f"Bearer {text}\u00e9", "Bearer",
        f"Bearer {text[:-1]}", f"Bearer {text}=", f"Bearer \x00{text}",
    ):  # fmt: skip
        assert status(headers={"Authorization": header}) == 401, header
    for query in ("token", "access_token", "authorization", "api_key"):
        assert status(path=f"runs?{query}={text}") == 401
    client = Client()
    client.cookies["Authorization"] = client.cookies["placet_session"] = client.cookies["token"] = text
    assert client.get(f"{ROOT}/runs").status_code == 401
    for name in ("X-Api-Key", "X-Authorization", "Proxy-Authorization", "X-Forwarded-Authorization"):
        assert status(headers={name: f"Bearer {text}"}) == 401
