"""A version of an operation that is not installed any more: people may say no, and a yes is refused in words."""

import pytest
from django.test import Client

from approvals.models import Decision
from common.models import Tenant
from tests import factories
from tests.approvals.test_views import decide, page_of, status_of
from workflows.models import Command

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return factories.make_tenant("harbour")


@pytest.fixture
def ilse(client: Client, tenant: Tenant) -> Client:
    client.force_login(factories.make_user(tenant, "ilse"))
    return client


@pytest.mark.parametrize("htmx", [False, True])
def test_a_yes_to_it_changes_nothing_and_says_why(ilse: Client, tenant: Tenant, htmx: bool) -> None:
    proposal = factories.make_proposal(tenant=tenant, operation_version=9)
    answer = decide(ilse, proposal, "approve", page_of(ilse, proposal), htmx=htmx)
    assert answer.status_code == 409
    assert "not installed here any more" in answer.content.decode()
    assert status_of(proposal) == "pending"
    assert (Decision.objects.count(), Command.objects.count()) == (0, 0)


def test_a_no_is_taken(ilse: Client, tenant: Tenant) -> None:
    proposal = factories.make_proposal(tenant=tenant, operation_version=9)
    answer = decide(ilse, proposal, "reject", page_of(ilse, proposal), reject_reason="It is old.")
    assert answer.status_code == 302
    assert status_of(proposal) == "rejected"
