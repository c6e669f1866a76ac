"""The owner is told when too many automatic actions were wrong."""

from uuid import uuid4

import pytest

from access.enums import Role
from approvals.telling_samples import standings, tell_of
from audit.models import Event
from common.tx import action
from notify.models import Message
from tests.approvals.later_walls import sample_row
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def test_the_owner_of_the_workflow_is_told_once() -> None:
    sample = sample_row()
    sample.save()
    tenant = sample.proposal.tenant
    make_user(tenant, "olaf", roles=[Role.OWNER])
    event = Event(
        kind="sample.limit_passed", subject_type="sample", subject_id=sample.pk, tenant_id=tenant.pk,
        body={"workflow": "refund-triage", "said": 12, "wrong": 2, "limit": "0.0500"},
    )  # fmt: skip
    for _ in range(2):
        action(lambda: tell_of(tenant.pk, [event]))()
    message = Message.objects.get(kind="wrong_samples")
    assert (message.lead, message.role) == ("refund-triage: 2 of 12 automatic actions were wrong", "owner")
    assert message.href == "/review/afterwards/"
    known = standings(tenant.pk, [sample.pk, uuid4()])
    assert [(pk, standing.waits) for pk, standing in known.items()] == [(sample.pk, True)]
