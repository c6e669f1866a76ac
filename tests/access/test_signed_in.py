"""The three rows that every signed-in request begins with: read at each one, and with a statement each."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from access.models import BreakGlass, Membership, User
from access.policies import only_membership
from common.clock import db_clock
from tests.factories import make_tenant, make_user

pytestmark = pytest.mark.django_db
PAGE = "/review/"


@pytest.fixture
def ada() -> User:
    return make_user(make_tenant("quay"), "ada")


@pytest.fixture
def browser(ada: User) -> Client:
    client = Client()
    client.force_login(ada)
    assert client.get(PAGE).status_code == 200
    return client


def test_the_oldest_active_membership_comes_with_its_tenant(ada: User) -> None:
    first = ada.memberships.get()
    second = Membership.objects.create(tenant=make_tenant("shore"), user=ada)
    with CaptureQueriesContext(connection) as seen:
        found = only_membership(ada)
        assert found is not None
        assert (found, found.tenant.slug, found.user, found.break_glass_until) == (first, "quay", ada, None)
    assert len(seen.captured_queries) == 1
    Membership.objects.filter(pk=first.pk).update(is_active=False)
    assert only_membership(ada) == second
    Membership.objects.filter(pk=second.pk).update(is_active=False)
    assert only_membership(ada) is None


def test_break_glass_is_known_while_it_is_on(ada: User) -> None:
    tenant, now = ada.memberships.get().tenant, db_clock()
    on = BreakGlass.objects.create(
        tenant=tenant, reason="alone", created_at=now - timedelta(hours=2), ends_at=now + timedelta(hours=1)
    )
    assert only_membership(ada).break_glass_until == on.ends_at  # type: ignore[union-attr]
    BreakGlass.objects.filter(pk=on.pk).update(ended_at=now)
    assert only_membership(ada).break_glass_until is None  # type: ignore[union-attr]


def test_who_lost_the_account_is_signed_out_at_the_next_request(browser: Client, ada: User) -> None:
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert browser.get(PAGE).status_code == 302


def test_who_lost_the_membership_is_signed_out_at_the_next_request(browser: Client, ada: User) -> None:
    ada.memberships.update(is_active=False)
    assert browser.get(PAGE).status_code == 302


def test_a_session_that_is_over_is_none(browser: Client) -> None:
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert browser.get(PAGE).status_code == 302


def test_a_session_that_is_gone_is_none(browser: Client) -> None:
    Session.objects.all().delete()
    assert browser.get(PAGE).status_code == 302


def test_a_changed_password_ends_the_session(browser: Client, ada: User) -> None:
    ada.set_password("another one, much longer")
    ada.save()
    assert browser.get(PAGE).status_code == 302
