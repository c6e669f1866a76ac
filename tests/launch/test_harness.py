"""The harness itself: the tests see the roles as they are in production."""

import pytest
from django.contrib.sessions.models import Session
from django.db import ProgrammingError, connections
from django.utils import timezone

pytestmark = pytest.mark.django_db


def user_and_rights(alias: str) -> tuple[str, bool]:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT current_user, rolsuper FROM pg_roles WHERE rolname = current_user")
        return cursor.fetchone()


@pytest.mark.parametrize(
    ("alias", "role"), [("default", "placet_system"), ("system", "placet_system"), ("app", "placet_app")]
)
def test_no_role_that_works_has_powers(alias: str, role: str) -> None:
    assert user_and_rights(alias) == (role, False)


def test_owner_is_a_superuser() -> None:
    assert user_and_rights("owner") == ("postgres", True)


@pytest.mark.parametrize("alias", ["app", "system"])
def test_neither_makes_tables(alias: str) -> None:
    with (
        connections[alias].cursor() as cursor,
        pytest.raises(ProgrammingError, match="permission denied"),
    ):
        cursor.execute("CREATE TABLE mine (id int)")


@pytest.mark.parametrize("run", ["first", "second"])
def test_rows_are_gone_in_the_next_test(run: str) -> None:
    assert not Session.objects.exists()
    Session.objects.create(session_key=run, session_data="", expire_date=timezone.now())


def test_both_aliases_see_one_database() -> None:
    Session.objects.create(session_key="seen", session_data="", expire_date=timezone.now())
    assert Session.objects.using("owner").filter(session_key="seen").exists()
