"""An installation without the demo: tenant, people and tokens from the command line."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from access.models import ApiToken, Membership
from audit.models import Event

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_a_new_installation_gets_its_first_tenant_reviewer_and_token(client: Client) -> None:
    run("add_tenant", "harbour", "--name", "Harbour Lane")
    said = run("add_person", "harbour", "noor", "--role", "reviewer", "--group", "Refund desk")
    password = said.split(" signs in with ")[1].split(" ")[0]
    membership = Membership.objects.get(user__username="noor")
    assert (membership.roles, [group.name for group in membership.groups.all()]) == (
        ["reviewer"],
        ["Refund desk"],
    )
    assert client.post("/sign-in/", {"username": "noor", "password": password}).status_code == 302

    token = run("add_token", "harbour", "intake", "--scope", "runs:read", "--for", "noor").split(" ")[0]
    answer = client.get("/api/v1/runs", headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()["runs"]) == (200, [])
    assert token not in str(ApiToken.objects.values().get())
    kinds = set(Event.objects.values_list("kind", flat=True))
    assert {"tenant.created", "user.created", "token.issued"} <= kinds


@pytest.mark.parametrize(
    "arguments",
    [
        ("add_tenant", "harbour"),
        ("add_person", "nowhere", "noor"),
        ("add_token", "harbour", "intake", "--for", "nobody"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(arguments: tuple[str, ...]) -> None:
    run("add_tenant", "harbour")
    with pytest.raises(CommandError) as error:
        run(*arguments)
    assert str(error.value).endswith(".")
