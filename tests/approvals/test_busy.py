"""A proposal that somebody holds for longer than a page may wait."""

import threading

import pytest
from django.db import connections, transaction
from django.test import Client

from approvals.actions import lock_proposal
from approvals.models import Decision, Proposal
from tests.approvals.test_views import decide, page_of
from tests.factories import make_proposal, make_tenant, make_user

pytestmark = pytest.mark.django_db


def hold(proposal: Proposal, held: threading.Event, let_go: threading.Event) -> None:
    try:
        with transaction.atomic():
            lock_proposal(proposal.tenant_id, proposal.pk)
            held.set()
            let_go.wait(30)
    finally:
        connections.close_all()


@pytest.mark.parametrize("htmx", [True, False])
def test_a_decision_that_could_not_be_made_says_so_and_keeps_what_was_typed(htmx: bool) -> None:
    """Field report G6: a notice to try again, and no lost words."""
    tenant, client = make_tenant("harbour"), Client()
    client.force_login(make_user(tenant, "ada"))
    proposal = make_proposal(tenant=tenant)
    html = page_of(client, proposal)
    held, let_go = threading.Event(), threading.Event()
    holder = threading.Thread(target=hold, args=(proposal, held, let_go))
    holder.start()
    try:
        assert held.wait(10)
        answer = decide(client, proposal, "reject", html, htmx=htmx, reject_reason="the wrong order")
    finally:
        let_go.set()
        holder.join()
    assert answer.status_code == 503
    assert "try once more" in answer.content.decode()
    assert "the wrong order" in answer.content.decode()
    assert not Decision.objects.exists()
