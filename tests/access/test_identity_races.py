"""One proof used in many places at once, and postures that begin or end in the same instant."""

from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client

from access import actions_posture
from access.actions_posture import BreakGlassOn
from access.enums import Role
from access.models import BreakGlass, User
from audit.models import Event
from common.clock import db_clock
from tests.access import people
from tests.access.keys import add_app, add_codes, code, happened
from tests.access.people import INSTALLER, PASSWORD
from tests.workflows.later import as_superuser
from tests.workflows.together import in_threads

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return people.person(people.tenant(), "ada", Role.ADMIN)


def at_the_step() -> Client:
    client = Client()
    client.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    return client


def opens(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def test_one_recovery_code_in_many_sessions_at_once_opens_one(ada: User) -> None:
    add_app(ada)
    [one, *_] = add_codes(ada)
    clients = [at_the_step() for _ in range(4)]
    in_threads(4, lambda number: clients[number].post("/sign-in/code/", {"code": one}))
    assert sorted(opens(client) for client in clients) == [False, False, False, True]
    assert len(happened("user.signed_in")) == 1


def test_two_recovery_codes_at_once_are_both_used_up(ada: User) -> None:
    """Of two that write the list of used ones, the later must not forget the earlier."""
    add_app(ada)
    codes = add_codes(ada)[:2]
    clients = [at_the_step() for _ in codes]
    in_threads(2, lambda number: clients[number].post("/sign-in/code/", {"code": codes[number]}))
    assert all(opens(client) for client in clients)
    for used in codes:
        late = at_the_step()
        late.post("/sign-in/code/", {"code": used})
        assert not opens(late)


def test_new_codes_and_the_use_of_an_old_one_at_once_never_break(ada: User) -> None:
    secret = add_app(ada)
    [one, *_] = add_codes(ada)
    owner, late = at_the_step(), at_the_step()
    owner.post("/sign-in/code/", {"code": code(secret)})
    assert opens(owner)
    answers = in_threads(
        2, lambda n: owner.post("/account/codes/new/") if n else late.post("/sign-in/code/", {"code": one})
    )
    assert {answer.status_code for answer in answers} <= {200, 302}
    assert Authenticator.objects.filter(type="recovery_codes").count() == 1
    after = at_the_step()
    after.post("/sign-in/code/", {"code": one})
    assert not opens(after)


def test_factors_that_go_at_once_leave_no_codes_behind(ada: User) -> None:
    secret = add_app(ada)
    add_codes(ada)
    owner = at_the_step()
    owner.post("/sign-in/code/", {"code": code(secret)})
    answers = in_threads(3, lambda _: owner.post("/account/app/remove/"))
    assert {answer.status_code for answer in answers} <= {302, 404}
    assert not Authenticator.objects.exists()
    assert [event.body for event in happened("user.mfa_removed")] == [
        {"factor": "totp"}, {"factor": "recovery_codes"},
    ]  # fmt: skip


def test_a_proof_does_not_outlive_its_session_or_its_person(ada: User, settings: Any) -> None:
    """Signed out and in as somebody else in the same browser: what the first one had confirmed is gone."""
    from access.sessions import PROOFS

    people.person(ada.memberships.get().tenant, "bob", Role.ADMIN)
    browser = at_the_step()
    browser.post("/account/confirm/password/", {"password": PASSWORD, "digest": "a" * 64})
    assert "a" * 64 in browser.session[PROOFS]
    browser.post("/sign-out/")
    browser.post("/sign-in/", {"username": "bob", "password": PASSWORD})
    assert PROOFS not in browser.session
    [event] = happened("user.reauthenticated")
    assert event.subject_id == ada.pk


def on(tenant: Any, **delta: float) -> BreakGlass:
    return actions_posture.turn_on(
        tenant=tenant, reason="alone", ends_at=db_clock() + timedelta(**delta), by=INSTALLER, clock=db_clock
    )


def test_break_glass_that_is_switched_on_by_many_at_once_is_on_once(ada: User) -> None:
    tenant = ada.memberships.get().tenant
    on(tenant, hours=1)
    as_superuser(
        "UPDATE access_breakglass SET ends_at = clock_timestamp(), created_at = created_at - interval '1 h'"
    )
    answers = in_threads(4, lambda _: on(tenant, hours=1))
    assert sum(isinstance(answer, BreakGlass) for answer in answers) == 1
    assert sum(isinstance(answer, BreakGlassOn) for answer in answers) == 3
    assert BreakGlass.objects.filter(ended_at=None).count() == 1
    assert Event.objects.filter(kind="break_glass.expired").count() == 1


def test_break_glass_that_is_over_is_not_said_to_have_been_on_until_somebody_looked(ada: User) -> None:
    tenant = ada.memberships.get().tenant
    on(tenant, hours=1)
    late = lambda: db_clock() + timedelta(hours=2)  # noqa: E731
    assert not actions_posture.turn_off(tenant=tenant, by=INSTALLER, clock=late)
    row = BreakGlass.objects.get()
    assert row.ended_at == row.ends_at
    assert (
        Event.objects.filter(kind__startswith="break_glass.").order_by("at").last().kind
        == "break_glass.expired"
    )  # type: ignore[union-attr]
