"""A test message: whether a way works is seen by going it."""

from uuid import UUID

from django.urls import reverse

from access.audience import Audience
from access.policies import check_can_manage
from audit.actors import Actor
from common.clock import Clock
from common.ids import new_id
from common.tx import action
from notify.actions.telling import Told, tell
from notify.enums import Channel
from notify.kinds import TEST
from notify.models import Destination, Dispatch, Message


@action
def test_mail(*, tenant_id: UUID, user_id: UUID, by: Actor, clock: Clock) -> None:
    """A mail to the admin who asks for it."""
    check_can_manage(by, tenant_id)
    told = _test(tenant_id, new_id(), Audience(people=[user_id]), "telling:failures")
    tell(told, now=clock())


@action
def test_destination(*, destination: Destination, by: Actor, clock: Clock) -> None:
    """A message to this destination and to nobody else."""
    check_can_manage(by, destination.tenant_id)
    now, subject = clock(), new_id()
    tell(_test(destination.tenant_id, subject, Audience(people=[]), "telling:channels"), now=now)
    message = Message.objects.get(tenant_id=destination.tenant_id, subject_id=subject, kind=TEST.name)
    Dispatch.objects.create(
        tenant_id=destination.tenant_id, message=message, channel=Channel.CHAT, destination=destination,
        created_at=now, due_at=now,
    )  # fmt: skip


def _test(tenant_id: UUID, subject: UUID, audience: Audience, name: str) -> Told:
    return Told(
        kind=TEST, tenant_id=tenant_id, subject_type="test", subject_id=subject, href=reverse(name), audience=audience,
        lead="A test: if you read this, Placet can tell you things this way",
    )  # fmt: skip
