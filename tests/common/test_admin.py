"""Django's admin shows rows to superusers, hides contents, and changes nothing."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from access.models import ApiToken, User
from common.admin import HIDDEN, ReadOnlyAdmin
from tests import factories
from tests.access import people

pytestmark = pytest.mark.django_db
OURS = [model for model, shown in admin.site._registry.items() if isinstance(shown, ReadOnlyAdmin)]


def addresses(of: object) -> list[str]:
    meta = of._meta  # type: ignore[attr-defined]
    name = f"admin:{meta.app_label}_{meta.model_name}"
    return [reverse(f"{name}_changelist"), reverse(f"{name}_change", args=[of.pk])]  # type: ignore[attr-defined]


@pytest.fixture
def superuser(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password=factories.PASSWORD))
    return client


def test_every_domain_row_can_be_looked_at_and_none_changed(superuser: Client) -> None:
    command = factories.make_command()
    rows = [
        command, command.run, command.step, command.proposal, factories.make_attempt(command),
        factories.make_packet(command.run), factories.make_evidence(command.proposal), factories.make_lookup(command),
    ]  # fmt: skip
    for row in rows:
        for address in addresses(row):
            answer = superuser.get(address)
            assert answer.status_code == 200, address
            assert b'name="_save"' not in answer.content
            assert b"deletelink" not in answer.content
            assert superuser.post(address, {"status": "ready"}).status_code in (403, 200)
        row.refresh_from_db()
    command.refresh_from_db()
    assert command.status == "ready"


@pytest.mark.parametrize("model", OURS, ids=str)
def test_no_one_may_add_change_or_delete(superuser: Client, model: type) -> None:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"  # type: ignore[attr-defined]
    assert superuser.get(reverse(f"{name}_changelist")).status_code == 200
    assert superuser.get(reverse(f"{name}_add")).status_code == 403


def test_there_is_nothing_else_in_it() -> None:
    """No rows of allauth or of Django, which their own pages would let a superuser change."""
    assert [model for model in admin.site._registry if model not in OURS] == []


def test_a_password_is_changed_and_a_session_ended_on_our_own_pages_only(superuser: Client) -> None:
    """Django's own would end no other session and write no event."""
    for ask in (superuser.get, superuser.post):
        assert ask("/admin/password_change/")["Location"] == reverse("account_change_password")
    assert superuser.get("/admin/logout/").status_code == 405
    assert superuser.post("/admin/logout/")["Location"] == "/sign-in/"


def test_contents_and_credentials_are_not_shown(superuser: Client) -> None:
    tenant = people.tenant()
    text, token = people.token(people.agent(tenant), "runs:read")  # type: ignore[arg-type]
    command = factories.make_command()
    for row in (token, command.proposal, User.objects.get(username="root")):
        page = superuser.get(addresses(row)[1]).content.decode()
        for name in HIDDEN:
            assert f'field-{name}"' not in page, name
    assert ApiToken.objects.get().sha256 not in superuser.get(addresses(token)[1]).content.decode()
    assert text not in superuser.get(addresses(token)[1]).content.decode()


def test_staff_that_is_no_superuser_sees_no_row(client: Client) -> None:
    staff = User.objects.create_user("staff", password=factories.PASSWORD, is_staff=True)
    staff.user_permissions.set(Permission.objects.all())
    client.force_login(staff)
    for address in addresses(factories.make_run()):
        assert client.get(address).status_code == 403


def test_members_do_not_come_in(client: Client) -> None:
    client.force_login(factories.make_user(factories.make_tenant()))
    for address in addresses(factories.make_run()):
        assert client.get(address).status_code == 302
