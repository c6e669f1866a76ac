"""Admins who change the same people in the same instant."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from access import actions, actions_agents, actions_people
from access.enums import Role, Scope
from access.models import ApiToken, Membership, User
from audit.actors import Actor, Owner, Via
from common.clock import db_clock
from tests.access import people
from tests.access.people import INSTALLER
from tests.workflows.together import at_once, in_threads

pytestmark = pytest.mark.django_db(transaction=True)
BY: dict[str, Any] = {"by": INSTALLER, "clock": db_clock}


def in_session(user: User) -> Actor:
    return Actor(performed_by=f"user:{user.pk}", via=Via.SESSION, owner=Owner.PERSON, user_id=user.pk)


def waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")
        found: tuple[int] = cursor.fetchone()
    return found[0]


def one_after_the_other(held: User, *do: Callable[[], Any]) -> list[Any]:
    """Let each wait for the account that is held, in this order; then let go."""

    def act(number: int) -> Any:
        if number == 0:
            with transaction.atomic():
                Membership.objects.select_for_update().get(user=held)
                deadline = time.monotonic() + 20
                while waiting() < len(do) and time.monotonic() < deadline:
                    time.sleep(0.05)
            return None
        while waiting() < number - 1:
            time.sleep(0.05)
        time.sleep(0.3)
        return do[number - 1]()

    return in_threads(len(do) + 1, act)


def test_accounts_of_two_people_that_are_put_together_over_a_third_are_one_person() -> None:
    """Neither admin sees what the other one does; nobody falls out of the person that they were."""
    here = people.tenant()
    ann, anna, carl, carla, bob = (
        people.person(here, name) for name in ("ann", "anna", "carl", "carla", "bob")
    )

    def link(user: User, other: User) -> None:
        actions_people.link_accounts(tenant=here, user=user, other=other, **BY)

    link(ann, anna)
    link(carl, carla)
    done = one_after_the_other(bob, lambda: link(carl, bob), lambda: link(ann, bob))
    assert done == [None, None, None]
    assert Membership.objects.get(user=ann).accounts == {user.pk for user in (ann, anna, carl, carla, bob)}


def test_two_admins_who_demote_each_other_leave_one() -> None:
    here = people.tenant()
    admins = [people.person(here, name, Role.ADMIN) for name in ("adam", "ava")]

    def demote(number: int) -> str:
        actions.set_roles(
            tenant=here, user=admins[1 - number], roles=[], by=in_session(admins[number]), clock=db_clock
        )
        return "demoted"

    answers = at_once(2, demote)
    assert answers["demoted"] == 1
    assert set(answers) <= {"demoted", "last_admin", "role_missing"}
    assert Membership.objects.filter(roles__contains=[Role.ADMIN]).count() == 1


def test_two_who_rotate_the_same_token_make_one() -> None:
    here = people.tenant()
    text, old = people.token(people.agent(here), Scope.RUNS_READ)
    assert text

    def rotate(_: int) -> str:
        actions_agents.rotate_token(token=old, overlap=timedelta(hours=1), **BY)
        return "rotated"

    assert at_once(3, rotate) == {"rotated": 1, "already_rotated": 2}
    assert ApiToken.objects.count() == 2
