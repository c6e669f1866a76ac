"""Attacks on sessions: fixed ones, old ones, ended ones, and those of people who are gone."""

from datetime import timedelta
from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.test.utils import override_settings

from access import actions, actions_account, actions_people
from access.enums import Role
from access.models import User
from common.clock import db_clock
from tests.access import people
from tests.access.keys import add_app, age, code, happened, is_stored, key_of
from tests.access.people import INSTALLER, PASSWORD

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "quite another long word"


@pytest.fixture
def ada() -> User:
    return people.person(people.tenant(), "ada", Role.REVIEWER)


def signed_in(username: str = "ada", password: str = PASSWORD) -> Client:
    client = Client(headers={"User-Agent": "Mozilla <b>"})
    answer = client.post("/sign-in/", {"username": username, "password": password})
    assert answer.status_code == 302, answer.content.decode()
    return client


def opens(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def test_a_planted_session_is_worth_nothing_after_sign_in(ada: User) -> None:
    attacker = Client()
    attacker.get("/sign-in/passkey/", headers={"Accept": "application/json"})  # it stores a challenge
    victim = Client()
    victim.cookies[settings.SESSION_COOKIE_NAME] = key_of(attacker)
    victim.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    assert key_of(victim) != key_of(attacker)
    assert opens(victim)
    assert not opens(attacker)
    assert not is_stored(key_of(attacker))


def test_the_second_step_changes_the_key_too(ada: User) -> None:
    secret, client = add_app(ada), Client()
    client.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    between = key_of(client)
    assert not opens(client)
    client.post("/sign-in/code/", {"code": code(secret)})
    assert key_of(client) != between
    assert opens(client)


def test_a_session_ends_when_it_is_too_old_whatever_was_done_in_it(ada: User) -> None:
    client = signed_in()
    age(client, opened=settings.PLACET_SESSION_MAX_S - 60)
    assert opens(client)
    age(client, opened=120)
    key = key_of(client)
    assert not opens(client)
    assert not is_stored(key)


def test_a_session_ends_when_nobody_uses_it(ada: User) -> None:
    client = signed_in()
    age(client, seen=settings.PLACET_SESSION_IDLE_S - 60)
    assert opens(client)  # and with that it is in use again
    age(client, seen=120)
    assert opens(client)
    age(client, seen=settings.PLACET_SESSION_IDLE_S + 1)
    assert not opens(client)


@pytest.mark.parametrize("target", ["", "run", "progress", "decide"])
def test_a_page_that_refreshes_itself_keeps_no_session_alive(ada: User, target: str) -> None:
    client = signed_in()
    age(client, seen=settings.PLACET_SESSION_IDLE_S - 60)
    headers = {"HX-Request": "true"} | ({"HX-Target": target} if target else {})
    assert client.get("/review/arrivals/", headers=headers).status_code in (200, 204, 404)
    age(client, seen=120)
    assert not opens(client)


def test_a_session_without_stamps_is_none(ada: User) -> None:
    client = signed_in()
    session = client.session
    del session["placet.opened"]
    session.save()
    assert not opens(client)


def test_deactivated_in_the_middle_of_a_session(ada: User) -> None:
    client, key = (one := signed_in()), key_of(one)
    actions.deactivate_user(user=ada, by=INSTALLER, clock=db_clock)
    assert client.get("/review/")["Location"] == "/sign-in/?next=/review/"
    assert client.post("/account/password/").status_code == 302
    assert not is_stored(key)
    User.objects.filter(pk=ada.pk).update(is_active=True)
    assert not opens(client)  # opening the account again opens no old session


def test_deactivated_in_one_organisation_and_let_back_in(ada: User) -> None:
    """An old session, which may be a stolen one, is not among what comes back."""
    client, key = (one := signed_in()), key_of(one)
    here: dict[str, Any] = {
        "tenant": ada.memberships.get().tenant,
        "user": ada,
        "by": INSTALLER,
        "clock": db_clock,
    }
    actions.deactivate_membership(**here)
    assert not is_stored(key)
    actions_people.reactivate_membership(**here)
    assert not opens(client)
    assert opens(signed_in())


def test_deactivated_between_the_two_steps(ada: User) -> None:
    secret, client = add_app(ada), Client()
    client.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    actions.deactivate_user(user=ada, by=INSTALLER, clock=db_clock)
    client.post("/sign-in/code/", {"code": code(secret)})
    assert not opens(client)


def change_password(client: Client, old: str = PASSWORD, new: str = NEW_PASSWORD) -> Any:
    return client.post("/account/password/", {"oldpassword": old, "password1": new, "password2": new})


def test_a_new_password_ends_every_other_session(ada: User) -> None:
    here, there = signed_in(), signed_in()
    before = key_of(here)
    assert change_password(here).status_code == 302
    assert opens(here)
    assert key_of(here) != before
    assert not opens(there)
    assert happened("user.password_changed")[0].body == {"sessions_ended": 1}
    signed_in(password=NEW_PASSWORD)


def test_a_new_password_ends_a_sign_in_that_waits_for_its_second_step(ada: User) -> None:
    """Whoever had the old password does not come in with it, though they have a code as well."""
    here, secret, there = signed_in(), add_app(ada), Client()
    there.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    assert change_password(here).status_code == 302
    there.post("/sign-in/code/", {"code": code(secret)})
    assert not opens(there)


def test_other_sessions_end_with_a_factor_and_with_the_first_one(ada: User) -> None:
    here, there = signed_in(), signed_in()
    secret = here.get("/account/app/").context["form"].secret
    assert here.post("/account/app/", {"code": code(secret)}).status_code == 302
    assert opens(here)
    assert not opens(there)  # it was opened by the password alone
    there.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    there.post("/sign-in/code/", {"code": code(secret, 1)})
    assert opens(there)
    assert here.post("/account/app/remove/").status_code == 302
    assert opens(here)
    assert not opens(there)
    assert [event.body for event in happened("user.session_revoked")] == [{"sessions_ended": 1}] * 2


def test_a_stolen_session_does_not_find_the_password_by_trying(ada: User) -> None:
    client = signed_in()
    statuses = [change_password(client, old="wrong").status_code for _ in range(11)]
    assert statuses == [200] * 10 + [429]
    assert change_password(client).status_code == 429
    assert not happened("user.password_changed")


@pytest.mark.parametrize("new", ["short", "123456789012345", "qwerty123456"])
def test_weak_passwords_are_refused(ada: User, new: str) -> None:
    client = signed_in()
    assert change_password(client, new=new).status_code == 200
    assert ada.password == User.objects.get(pk=ada.pk).password


def test_the_list_shows_each_session_and_ends_the_one_that_is_meant(ada: User) -> None:
    here, there, elsewhere = signed_in(), signed_in(), signed_in()
    page = here.get("/account/sessions/").content.decode()
    assert page.count("End it") == 2
    assert "Mozilla &lt;b&gt;" in page
    target = next(row for row in _listed(ada) if row.session_key == key_of(there))
    assert here.post(f"/account/sessions/{target.pk}/").status_code == 302
    assert (opens(here), opens(there), opens(elsewhere)) == (True, False, True)
    assert here.post("/account/sessions/others/").status_code == 302
    assert (opens(here), opens(elsewhere)) == (True, False)
    assert [event.body for event in happened("user.session_revoked")] == [{"sessions_ended": 1}] * 2


def _listed(user: User) -> list[Any]:
    from allauth.usersessions.models import UserSession

    return list(UserSession.objects.filter(user=user))


def test_nobody_ends_or_sees_another_ones_session(ada: User) -> None:
    people.person(ada.memberships.get().tenant, "bob")
    hers, his = signed_in(), signed_in("bob")
    mine = _listed(ada)[0]
    assert his.post(f"/account/sessions/{mine.pk}/").status_code == 404
    assert his.post("/account/sessions/99999/").status_code == 404
    assert his.get("/account/sessions/").content.decode().count("End it") == 0
    assert opens(hers)


def test_ending_this_very_session(ada: User) -> None:
    client = signed_in()
    client.post(f"/account/sessions/{_listed(ada)[0].pk}/")
    assert not opens(client)


def test_lost_factors_are_taken_off_by_the_command_line_and_end_sessions(ada: User) -> None:
    add_app(ada)
    client = Client()
    client.force_login(ada)
    removed = actions_account.remove_factors(user=ada, by=INSTALLER, clock=db_clock)
    assert removed == 1
    assert [event.body for event in happened("user.mfa_removed")] == [{"factor": "totp"}]
    signed_in()


@override_settings(PLACET_REQUIRE_MFA=["reviewer"])
def test_a_role_that_needs_a_second_factor_gets_nowhere_without(ada: User) -> None:
    bob = people.person(ada.memberships.get().tenant, "bob", Role.AUDITOR)
    client = signed_in()
    for path in ("/review/", "/history/", "/runs/"):
        assert client.get(path)["Location"] == "/account/"
    assert "Your role needs a second factor" in client.get("/account/").content.decode()
    refused = client.get("/api/v1/proposals/019a0000-0000-7000-8000-000000000000/view")
    assert (refused.status_code, refused.json()["code"]) == (403, "mfa_required")
    assert client.get("/review/", headers={"HX-Request": "true"})["HX-Redirect"] == "/account/"
    assert signed_in(bob.username).get("/runs/").status_code == 200
    add_app(ada)
    assert client.get("/review/").status_code == 200


def test_addresses_that_are_not_offered_do_not_exist(ada: User) -> None:
    client = signed_in()
    for path in (
        "/sign-up/", "/account/signup/", "/accounts/signup/", "/account/email/", "/account/password/first/",
        "/sign-in/with/oidc/", "/sign-in/with/oidc/back/", "/sign-in/cancelled/",
        "/account/linked/", "/account/codes/download/", "/accounts/",
    ):  # fmt: skip
        assert client.get(path).status_code == 404, path
        assert client.post(path).status_code == 404, path


def test_djangos_admin_has_no_sign_in_of_its_own(ada: User) -> None:
    root = User.objects.create_superuser("root", password=PASSWORD)
    client = Client()
    for method in (client.get, client.post):
        answer = method("/admin/login/", {"username": "root", "password": PASSWORD})
        assert answer.status_code in (302, 405)
        assert client.get("/admin/").status_code == 302
    add_app(root)
    answer = client.post("/sign-in/", {"username": "root", "password": PASSWORD, "next": "/admin/"})
    assert answer["Location"] == "/sign-in/code/"


def test_sessions_that_are_over_leave_no_row(ada: User) -> None:
    over, open_ = signed_in(), signed_in()
    Session.objects.filter(session_key=key_of(over)).update(expire_date=db_clock() - timedelta(seconds=1))
    assert actions_account.forget_ended_sessions(clock=db_clock) == 1
    assert not is_stored(key_of(over))
    assert not UserSession.objects.filter(session_key=key_of(over)).exists()
    assert opens(open_)
