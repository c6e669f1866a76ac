"""Incidents under hostile or careless input: odd times and words, freezes that cannot be, two people at once."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.urls import reverse

from repair.incidents.freezing import offers
from tests import factories as f
from tests.repair.choosing import Operator, operator
from tests.repair.leading import here, opened_by
from tests.workflows.conftest import Desk
from workflows.models import Hold

pytestmark = pytest.mark.django_db
FREEZE = {"why": "It looks wrong."}


@pytest.fixture
def opal(desk: Desk) -> Operator:
    return operator(desk)


@pytest.mark.parametrize("asked", [
    {"until": "0001-01-02T00:00:00"}, {"since": "9999-12-31T23:59:59"}, {"until": "9999-12-31T23:59:59"},
    {"since": "0001-01-01T00:00:00", "until": "0001-01-01T00:00:01"}, {"workflow_version": "99999999999999999999"},
    {"workflow": "toy-pay\x00"}, {"target": "order:\ud800"}, {"model": "%' OR 1=1 --"},
    {"cursor": "x", "workflow": "toy-pay"},
    {"workflow": ["toy-pay", "other"]}, {"operation": "x" * 5000},
])  # fmt: skip
def test_whatever_the_address_says_it_is_a_page(desk: Desk, opal: Operator, asked: dict[str, Any]) -> None:
    desk.start()
    query = urlencode(asked, doseq=True, errors="surrogatepass")
    answer = opal.client.get(f"{reverse('repair:new_incident')}?{query}")
    assert answer.status_code in (200, 422)


@pytest.mark.parametrize("named", [
    {"workflow_version": 1}, {"workflow_version": 1, "operation": "toy.pay"}, {"workflow": "gone-flow"},
    {"workflow": "toy-pay", "workflow_version": 77}, {"outcome": "queued"},
])  # fmt: skip
def test_every_way_to_freeze_that_is_offered_can_be_gone(
    desk: Desk, opal: Operator, named: dict[str, Any]
) -> None:
    run = f.make_run(desk.tenant, workflow=named.get("workflow", "toy-pay"),
                     workflow_version=named.get("workflow_version", 1))  # fmt: skip
    if "operation" in named:
        f.make_proposal(run, operation=named["operation"])
    incident = opened_by(opal, **named)
    for offer in offers(incident, opal.user.memberships.get()):
        answer = opal.client.post(here(incident, "freeze_incident"), FREEZE | {"way": offer.code})
        assert answer.status_code == 302, (offer.title, answer.content.decode()[-1500:])
    assert Hold.objects.count() == 2
