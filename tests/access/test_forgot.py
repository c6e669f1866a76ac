"""Attacks on the forgotten password: who has an account, stolen and used links, links under another host."""

import re
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from access import actions
from access.enums import Role
from access.models import User
from common.clock import db_clock
from tests.access import people
from tests.access.keys import add_app, happened, mails
from tests.access.people import INSTALLER, PASSWORD

pytestmark = pytest.mark.django_db
NEW = {"password1": "quite another long word", "password2": "quite another long word"}


@pytest.fixture
def ada() -> User:
    return actions.create_user(
        tenant=people.tenant(), username="ada", password=PASSWORD, email="Ada@example.org", roles=[Role.REVIEWER],
        by=INSTALLER, clock=db_clock,
    )  # fmt: skip


def ask(email: str = "ada@example.org", **headers: Any) -> Any:
    return Client(**headers).post("/sign-in/forgot/", {"email": email})


def link() -> str:
    """The path of the link in the last mail."""
    found = re.search(r"https?://\S+", mails()[-1].body)
    assert found is not None
    assert found[0].startswith(settings.PLACET_BASE_URL + "/sign-in/new-password/")
    return found[0].removeprefix(settings.PLACET_BASE_URL)


def follow(path: str, client: Client | None = None) -> tuple[Client, str]:
    """A browser that has followed the link, and the address where it is now."""
    client = client or Client()
    return client, client.get(path)["Location"]


def test_a_link_by_mail_sets_a_new_password_once(ada: User) -> None:
    old = Client()
    old.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    assert ask()["Location"] == "/sign-in/forgot/sent/"
    path = link()
    assert mails()[-1].to == ["Ada@example.org"]
    client, address = follow(path)
    assert address.endswith("-set-password/")  # the key has left the address
    assert client.post(address, NEW)["Location"] == "/sign-in/new-password/"
    assert old.get("/account/").status_code == 302
    assert client.get("/account/").status_code == 302  # nobody is signed in by it
    page = Client().get(path)
    assert page.status_code == 200
    assert "was used before" in page.content.decode()
    assert Client().post("/sign-in/", {"username": "ada", "password": NEW["password1"]}).status_code == 302
    assert [event.body for event in happened("user.password_reset")] == [{"sessions_ended": 1}]


def test_two_who_follow_one_link_set_one_password(ada: User) -> None:
    ask()
    path = link()
    (first, address), (second, _) = follow(path), follow(path)
    assert first.post(address, NEW).status_code == 302
    other = dict.fromkeys(NEW, "yet another long word")
    assert second.post(address, other).status_code == 200
    assert Client().post("/sign-in/", {"username": "ada", "password": NEW["password1"]}).status_code == 302


def test_the_answer_is_the_same_for_everybody(ada: User) -> None:
    actions.create_user(
        tenant=ada.memberships.get().tenant, username="keyless", password=None, email="keyless@example.org",
        by=INSTALLER, clock=db_clock,
    )  # fmt: skip
    gone = people.person(ada.memberships.get().tenant, "gone")
    User.objects.filter(pk=gone.pk).update(email="gone@example.org")
    actions.deactivate_user(user=gone, by=INSTALLER, clock=db_clock)
    for email in ("nobody@example.org", "keyless@example.org", "gone@example.org"):
        answer = ask(email)
        assert (answer.status_code, answer["Location"]) == (302, "/sign-in/forgot/sent/")
    assert mails() == []


def test_the_mail_leaves_beside_the_answer(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow mail server would otherwise tell that there is somebody to write to."""
    started: list[str] = []
    monkeypatch.setattr("access.mail._send", lambda message: started.append(message.to[0]))
    import threading

    here = threading.current_thread()
    monkeypatch.setattr(
        "access.mail._send", lambda message: started.append(str(threading.current_thread() is here))
    )
    ask()
    mails()
    assert started == ["False"]


def test_asking_is_braked_per_mail_address_and_is_an_event(ada: User) -> None:
    statuses = [ask(name).status_code for name in ("ada@example.org", "ADA@example.org", "ada@example.org")]
    assert statuses == [302] * 3
    answer = ask()
    assert (answer.status_code, answer["Retry-After"]) == (429, "900")
    assert ask("other@example.org").status_code == 302
    assert len(happened("user.password_reset_requested", subject_id=ada.pk)) == 3
    assert "example.org" not in str([vars(event) for event in happened("user.password_reset_requested")])


def test_a_forged_host_is_not_in_the_link(ada: User) -> None:
    ask(headers={"X-Forwarded-Host": "evil.example"})
    assert "evil.example" not in mails()[-1].body
    assert (
        Client()
        .post("/sign-in/forgot/", {"email": "ada@example.org"}, headers={"Host": "evil.example"})
        .status_code
        == 400
    )


def test_a_link_of_a_closed_account_is_worth_nothing(ada: User) -> None:
    ask()
    client, address = follow(link())
    actions.deactivate_user(user=ada, by=INSTALLER, clock=db_clock)
    answer = client.post(address, NEW)
    assert answer.status_code == 200
    assert "over" in answer.content.decode()
    assert not happened("user.password_reset")


def test_a_link_does_not_get_around_the_second_factor(ada: User) -> None:
    add_app(ada)
    ask()
    client, address = follow(link())
    client.post(address, NEW)
    answer = client.post("/sign-in/", {"username": "ada", "password": NEW["password1"]})
    assert answer["Location"] == "/sign-in/code/"


@pytest.mark.parametrize("path", ["x-y", "019a-set-password", "1-2-3", "%00-x"])
def test_invented_links_lead_nowhere(ada: User, path: str) -> None:
    answer = Client().get(f"/sign-in/new-password/{path}/")
    assert answer.status_code in (200, 404)
    if answer.status_code == 200:
        assert "was used before" in answer.content.decode()
