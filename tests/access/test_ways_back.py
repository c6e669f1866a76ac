"""Where people are led after signing in, or after confirming: never off this site."""

import pytest
from django.test import Client

from access.enums import Role
from access.models import User
from tests.access import people
from tests.access.people import PASSWORD

pytestmark = pytest.mark.django_db
EVIL = [
    "https://evil.example/", "//evil.example/", "///evil.example", "/\\evil.example", "\\\\evil.example",
    "http:evil.example", "https:///evil.example", "javascript:alert(1)", "data:text/html,x", " //evil.example",
    "/\t/evil.example", "http://localhost/x", "http://testserver/x", "https://testserver@evil.example/",
]  # fmt: skip


@pytest.fixture
def ada() -> User:
    return people.person(people.tenant(), "ada", Role.REVIEWER)


@pytest.mark.parametrize("way", EVIL)
def test_no_way_leads_off_the_site(ada: User, way: str) -> None:
    client = Client()
    form = {"username": "ada", "password": PASSWORD, "next": way}
    assert client.post("/sign-in/", form)["Location"] == "/review/"
    assert client.get("/sign-in/", {"next": way})["Location"] == "/review/"
    assert "evil" not in client.get("/account/confirm/", {"next": way})["Location"]
    page = client.get("/account/confirm/password/", {"next": way}).content.decode()
    assert "evil" not in page
    answer = client.post("/account/confirm/password/", {"password": PASSWORD, "next": way})
    assert answer["Location"] == "/review/"


def test_a_way_on_the_site_is_kept(ada: User) -> None:
    client = Client()
    form = {"username": "ada", "password": PASSWORD, "next": "/review/7/?part=2"}
    assert client.post("/sign-in/", form)["Location"] == "/review/7/?part=2"
    answer = client.post("/account/confirm/password/", {"password": PASSWORD, "next": "/runs/"})
    assert answer["Location"] == "/runs/"


def test_a_page_never_prints_a_way_unescaped(ada: User) -> None:
    page = Client().get("/sign-in/", {"next": '/"><script>x</script>'}).content.decode()
    assert "<script>x" not in page
