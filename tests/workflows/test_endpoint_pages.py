"""Endpoints for webhooks on the pages of admins: made with a secret that is shown once, rotated, ended."""

import re
from typing import Any

import pytest
from django.test import Client

from access.enums import Role
from access.models import Agent, User
from tests.factories import make_tenant, make_user
from tests.workflows.conftest import Desk
from workflows.models import Endpoint

pytestmark = pytest.mark.django_db


def at(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def admin(desk: Desk) -> User:
    return make_user(desk.tenant, "adam", roles=[Role.ADMIN])


def words(desk: Desk, **changes: str) -> dict[str, str]:
    agent = Agent.objects.get_or_create(tenant=desk.tenant, name="intake")[0]
    said = {"name": "tickets", "agent": str(agent.pk), "workflow": "toy-pay", "system": "helpdesk"}
    return said | changes


def secret_in(answer: Any) -> str:
    found = re.search(r'id="once"[^>]*value="([^"]+)"', answer.content.decode())
    assert found is not None, answer.content.decode()
    return found[1]


def test_one_is_made_rotated_and_ended(desk: Desk, admin: User) -> None:
    client = at(admin)
    first = secret_in(client.post("/people/endpoints/new/", words(desk)))
    made = Endpoint.objects.get()
    page = client.get(f"/people/endpoints/{made.pk}/").content.decode()
    assert f"/api/v1/hooks/{made.address}" in page
    assert first not in page
    assert "tickets" in client.get("/people/endpoints/").content.decode()
    second = secret_in(client.post(f"/people/endpoints/{made.pk}/rotate/", {"sure": "yes", "hours": "24"}))
    assert second != first
    assert [row.ends_at is None for row in made.secrets.order_by("created_at")] == [False, True]
    assert (
        client.post(f"/people/endpoints/{made.pk}/deactivate/", {"sure": "yes", "why": ""}).status_code == 422
    )
    client.post(f"/people/endpoints/{made.pk}/deactivate/", {"sure": "yes", "why": "moved"})
    made.refresh_from_db()
    assert made.deactivated_at is not None
    again = client.post(f"/people/endpoints/{made.pk}/rotate/", {"sure": "yes", "hours": "24"})
    assert (again.status_code, "takes nothing any more" in again.content.decode()) == (409, True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "No Slug"}, "Letters, digits and hyphens only"),
        ({"workflow": "toy-outside"}, "Select a valid choice"),
        ({"system": ""}, "which system"), ({"signature_header": "x y"}, "letters, digits and hyphens"),
        ({"system": "a\u202eb"}, "misleading"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_words(desk: Desk, admin: User, changes: dict[str, str], said: str) -> None:
    answer = at(admin).post("/people/endpoints/new/", words(desk, **changes))
    assert (answer.status_code, said in answer.content.decode()) == (422, True)
    assert not Endpoint.objects.exists()


def test_auditors_read_and_strangers_find_nothing(desk: Desk, admin: User) -> None:
    at(admin).post("/people/endpoints/new/", words(desk))
    made = Endpoint.objects.get()
    auditor, stranger = make_user(desk.tenant, "anna", roles=[Role.AUDITOR]), make_user(
        make_tenant("reef"), "sue", roles=[Role.ADMIN]
    )  # fmt: skip
    page = at(auditor).get(f"/people/endpoints/{made.pk}/").content.decode().partition("<main")[2]
    assert "Admins change endpoints." in page
    assert 'method="post"' not in page
    assert at(auditor).post(f"/people/endpoints/{made.pk}/rotate/", {"sure": "yes"}).status_code == 403
    for way in ("", "rotate/", "deactivate/"):
        assert at(stranger).get(f"/people/endpoints/{made.pk}/{way}").status_code == 404
    assert "tickets" not in at(stranger).get("/people/endpoints/").content.decode()
