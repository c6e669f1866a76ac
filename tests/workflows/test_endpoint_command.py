"""`./placet endpoint`: an address and a secret that is shown once, another secret, the end."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from access.models import Agent
from common.signed_webhooks import key_of
from tests.workflows.conftest import Desk
from workflows.models import Endpoint, EndpointSecret

pytestmark = pytest.mark.django_db
ADD = ("add", "harbour", "tickets", "--workflow", "toy-pay", "--system", "helpdesk", "--automation", "intake")


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("endpoint", *arguments, stdout=out)
    return out.getvalue()


def test_an_endpoint_from_the_command_line(desk: Desk, tmp_path: Path) -> None:
    Agent.objects.create(tenant=desk.tenant, name="intake")
    said = run(*ADD)
    endpoint = Endpoint.objects.get()
    assert said.splitlines()[0] == f"http://localhost:8000/api/v1/hooks/{endpoint.address}"
    secret = said.split("Secret: ")[1].split(" ")[0]
    assert EndpointSecret.objects.get().key() == key_of(secret)
    assert endpoint.created_by.startswith("command_line:")

    given = tmp_path / "secret"
    given.write_text("a-secret-that-the-sender-has-chosen\n")
    said = run("rotate", "harbour", "tickets", "--secret-file", str(given))
    assert "a-secret" not in said
    keys = {row.key() for row in EndpointSecret.objects.all()}
    assert keys == {key_of(secret), b"a-secret-that-the-sender-has-chosen"}

    assert "tickets  active  toy-pay  standard_webhooks" in run("list", "harbour")
    run("deactivate", "harbour", "tickets", "--why", "gone")
    assert "tickets  ended" in run("list", "harbour")
    assert not EndpointSecret.objects.filter(sealed__isnull=False).exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ADD,
        (*ADD[:1], "nowhere", *ADD[2:]),
        ("rotate", "harbour", "nothing"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(desk: Desk, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"\.$"):
        run(*arguments)


@pytest.mark.parametrize(
    "changes",
    [
        ("add", "harbour", "Not A Name"),
        (*ADD, "--signature-header", "x sig"),
    ],
)
def test_what_makes_no_endpoint(desk: Desk, changes: tuple[str, ...]) -> None:
    Agent.objects.create(tenant=desk.tenant, name="intake")
    with pytest.raises(CommandError):
        run(*(changes if len(changes) > 3 else (*changes, *ADD[3:])))
    assert not Endpoint.objects.exists()
