"""The fragment that tells what became of an approval: right for every state, asking again only until the end."""

import pytest
from django.test import Client

from common.models import Tenant
from tests import factories
from workflows.enums import CommandStatus
from workflows.models import Command
from workflows.progress import sentence_of, steps_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def desk(client: Client, tenant: Tenant) -> Client:
    client.force_login(factories.make_user(tenant, "ilse"))
    return client


def fragment_of(client: Client, command: Command) -> tuple[str, str]:
    answer = client.get(f"/runs/progress/{command.proposal_id}/")
    assert answer.status_code == 200
    return answer.content.decode(), answer.get("HX-Trigger", "")


@pytest.mark.parametrize("status", CommandStatus.values)
def test_it_asks_again_until_the_command_has_ended(desk: Client, tenant: Tenant, status: str) -> None:
    html, event = fragment_of(desk, factories.make_command(tenant=tenant, status=status))
    final = status in CommandStatus.final_states
    assert ("hx-trigger" in html) is not final
    assert (event == "execution-ended") is final
    assert ("/receipts/refund/" in html) is final


@pytest.mark.parametrize("status", [CommandStatus.REFUSED, CommandStatus.DEAD, CommandStatus.VOID])
def test_where_nothing_happened_it_says_so(tenant: Tenant, status: str) -> None:
    assert "Nothing happened." in sentence_of(factories.make_command(tenant=tenant, status=status))


def test_an_unknown_outcome_is_lost_and_not_bad(tenant: Tenant) -> None:
    command = factories.make_command(tenant=tenant, status=CommandStatus.UNKNOWN)
    assert [step.state for step in steps_of(command)] == ["done", "done", "done", "lost"]
    assert "nobody knows yet" in sentence_of(command)


def test_another_tenants_command_is_as_missing_as_none(desk: Client) -> None:
    theirs = factories.make_command()
    assert desk.get(f"/runs/progress/{theirs.proposal_id}/").status_code == 204
