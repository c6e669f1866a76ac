"""Anchors: each day, and when somebody asks, the newest checkpoint goes to those who keep them outside.

Which of them took which checkpoint stands in the history, as with everything that leaves (``dispatch.delivered``).
"""

from datetime import datetime
from uuid import UUID

from django.db.models import Max
from django.urls import reverse

from access.audience import Audience
from access.policies import check_can_manage
from audit.actors import Actor
from audit.models import Checkpoint
from audit.proof import ANCHOR_EVERY, newest_checkpoint
from common.clock import Clock
from common.errors import Refused
from common.rounds import each
from common.spans import iso
from common.tx import action
from notify.actions.telling import Fact, Told, tell
from notify.anchors import sent_checkpoints
from notify.enums import Channel
from notify.kinds import CHECKPOINT
from notify.models import Destination, Dispatch, Message


class NothingToSend(Refused):
    """There is no checkpoint yet, or nobody to whom checkpoints are sent."""

    code = "nothing_to_send"


def anchor_due(*, clock: Clock) -> int:
    """Send each organisation's newest checkpoint, once a day; returns to how many something is on its way."""
    now = clock()
    receivers = Destination.objects.filter(deactivated_at=None, kinds__contains=[CHECKPOINT.name])
    tenants = sorted(set(receivers.values_list("tenant_id", flat=True)))
    return each(
        [one for one in tenants if _is_due(one, now)], lambda one: anchor(one, clock=clock), what="anchor"
    )


@action
def anchor(tenant_id: UUID, *, clock: Clock) -> bool:
    """The newest checkpoint, unless it is the one that was sent last: then there is nothing new to keep."""
    newest, last = newest_checkpoint(tenant_id), _last(tenant_id)
    if newest is None or (last is not None and last.subject_id == newest.pk):
        return False
    return _send(newest, clock()) > 0


@action
def send_now(*, tenant_id: UUID, by: Actor, clock: Clock) -> int:
    """The newest checkpoint, again if need be; returns to how many. Raises RoleMissing, NothingToSend."""
    check_can_manage(by, tenant_id)
    newest = newest_checkpoint(tenant_id)
    sent = _send(newest, clock()) if newest is not None else 0
    if not sent:
        raise NothingToSend
    return sent


def _is_due(tenant_id: UUID, now: datetime) -> bool:
    last = _last(tenant_id)
    return last is None or now - last.created_at >= ANCHOR_EVERY


def _last(tenant_id: UUID) -> Message | None:
    return sent_checkpoints(tenant_id).first()


def _send(checkpoint: Checkpoint, now: datetime) -> int:
    tenant_id = checkpoint.tenant_id
    rooms = Destination.objects.filter(
        tenant_id=tenant_id, deactivated_at=None, kinds__contains=[CHECKPOINT.name]
    )
    found = list(rooms)
    earlier = sent_checkpoints(tenant_id).filter(subject_id=checkpoint.pk).aggregate(newest=Max("version"))
    version = (earlier["newest"] or 0) + 1
    if not found or not tell(_told(checkpoint, version), now=now):
        return 0
    message = sent_checkpoints(tenant_id).get(subject_id=checkpoint.pk, version=version)
    Dispatch.objects.bulk_create(
        [
            Dispatch(
                tenant_id=tenant_id, message=message, channel=Channel.CHAT, destination=room, created_at=now, due_at=now
            )
            for room in found
        ]
    )  # fmt: skip
    return len(found)


def _told(checkpoint: Checkpoint, version: int) -> Told:
    return Told(
        kind=CHECKPOINT, tenant_id=checkpoint.tenant_id, subject_type=CHECKPOINT.name, subject_id=checkpoint.pk,
        version=version, lead=f"The history up to event {checkpoint.size:,} is signed", digest=checkpoint.root,
        href=reverse("audit:history"), audience=Audience(people=[]),
        facts=(Fact("Events", f"{checkpoint.size:,}"), Fact("Signed", iso(checkpoint.signed_at))),
    )  # fmt: skip
