"""People, groups, automations, tokens and organisations at the command line."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from access.models import Agent, ApiToken, BreakGlass, Membership, User
from audit.models import Event

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue().strip()


@pytest.fixture
def harbour() -> None:
    run("tenant", "create", "harbour", "--name", "Harbour Lane")
    run("person", "add", "harbour", "noor", "--role", "reviewer", "--group", "Refund desk")
    run("person", "add", "harbour", "sam", "--role", "admin")


def works(token: str) -> bool:
    answer = Client().get("/api/v1/runs", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code == 200


def test_people(harbour: None) -> None:
    assert run("person", "roles", "harbour", "noor", "--role", "operator") == "noor: operator."
    run("person", "same", "harbour", "noor", "sam")
    assert Membership.objects.get(user__username="noor").person_id is not None
    run("person", "apart", "harbour", "sam", "--why", "two people after all")
    run(
        "person",
        "duty",
        "harbour",
        "noor",
        "refund-triage",
        "--kind",
        "policy_editor",
        "--policy-version",
        "7",
    )
    run("person", "deactivate", "harbour", "sam", "--why", "left")
    listed = run("person", "list", "harbour")
    assert "noor  active  operator  Refund desk" in listed
    assert "sam  deactivated  admin  -" in listed
    run("person", "reactivate", "harbour", "sam")
    run("person", "close", "noor")
    assert not User.objects.get(username="noor").is_active
    run("person", "open", "noor")
    assert User.objects.get(username="noor").is_active
    kinds = set(Event.objects.values_list("kind", flat=True))
    assert {
        "membership.linked", "membership.unlinked", "duty.given", "membership.deactivated", "membership.reactivated",
        "user.deactivated", "user.reactivated",
    } <= kinds  # fmt: skip


def test_groups(harbour: None) -> None:
    run("group", "add", "harbour", "Finance")
    run("group", "join", "harbour", "Finance", "noor")
    assert run("group", "list", "harbour") == "Finance: noor\nRefund desk: noor"
    run("group", "leave", "harbour", "Finance", "noor")
    assert "Finance: nobody" in run("group", "list", "harbour")


def test_automations(harbour: None) -> None:
    run("agent", "add", "harbour", "mailer", "--for-system", "helpdesk", "--workflow", "refund-triage")
    assert run("agent", "list", "harbour") == "mailer  active  for helpdesk  refund-triage, any operation"
    run("agent", "change", "harbour", "mailer", "--for", "noor", "--owner", "sam")
    mailer = Agent.objects.get(name="mailer")
    assert (str(mailer.acts_for), str(mailer.owner), mailer.workflows) == ("noor", "sam", None)
    run("agent", "deactivate", "harbour", "mailer")
    assert "mailer  deactivated" in run("agent", "list", "harbour")
    run("agent", "reactivate", "harbour", "mailer")


def test_tokens(harbour: None, tmp_path: Path) -> None:
    run("agent", "add", "harbour", "intake")
    first = run("token", "issue", "harbour", "intake", "--scope", "runs:read").split()[0]
    second = run("token", "rotate", "harbour", first[:12], "--overlap-hours", "1").split()[0]
    assert works(first)
    assert works(second)
    listed = run("token", "list", "harbour")
    assert f"{second[:12]}…  intake  valid" in listed
    assert second not in listed
    leaked = tmp_path / "app.log"
    leaked.write_text(f"GET /x Authorization: Bearer {second}\nplc_{'a' * 49}\n")
    with pytest.raises(CommandError, match="1 still work"):
        run("token", "check", str(leaked))
    said = run("token", "check", str(leaked), "--revoke")
    assert "1 revoked." in said
    assert second not in said
    assert not works(second)
    assert "No token that works was found." in run("token", "check", str(leaked))
    run("token", "revoke", "harbour", first[:12], "--why", "the same log")
    assert not works(first)
    assert ApiToken.objects.filter(revoked_at=None).count() == 0


def test_break_glass(harbour: None) -> None:
    with pytest.raises(CommandError, match="90 days"):
        run("tenant", "break-glass", "harbour", "--why", "I am alone", "--until", "2999-01-01")
    assert "is on for harbour until" in run("tenant", "break-glass", "harbour", "--why", "I am alone")
    assert BreakGlass.objects.get().created_by.startswith("command_line:")
    assert "break-glass until" in run("tenant", "list")
    assert run("tenant", "break-glass-off", "harbour") == "Break-glass is off."
    assert run("tenant", "break-glass-off", "harbour") == "It was off already."


@pytest.mark.parametrize(
    "arguments",
    [
        ("tenant", "create", "harbour"), ("tenant", "break-glass", "nowhere", "--why", "x"),
        ("tenant", "break-glass", "harbour", "--why", "x", "--until", "soon"),
        ("person", "roles", "harbour", "nobody"), ("person", "same", "harbour", "noor", "noor"),
        ("group", "join", "harbour", "None", "noor"), ("agent", "change", "harbour", "nothing"),
        ("agent", "add", "harbour", "x", "--for", "noor", "--for-system", "y"),
        ("token", "revoke", "harbour", "plc_abcdefgh", "--why", "x"), ("token", "issue", "harbour", "nothing"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_a_sentence(harbour: None, arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError) as error:
        run(*arguments)
    assert str(error.value).endswith(".")
