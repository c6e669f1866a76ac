"""Checkpoints as they leave, and which of them somebody outside has taken."""

from typing import Final
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db.models import Count, Min, QuerySet
from django.template.loader import render_to_string

from audit.checkpoints import file_name
from audit.models import Checkpoint, SigningKey
from audit.proof import Anchored
from notify.enums import DispatchStatus
from notify.kinds import CHECKPOINT
from notify.letters import host_name
from notify.models import Destination, Dispatch, Message
from notify.screens.telling import why

_RECENT: Final = 30
"""So many of the last checkpoints that were sent are looked at: a month of them."""


def note_of(message: Message) -> str:
    """The whole signed text that this message is about; empty for every other kind."""
    if message.kind != CHECKPOINT.name:
        return ""
    return Checkpoint.objects.get(tenant_id=message.tenant_id, pk=message.subject_id).note


def checkpoint_letter(dispatch: Dispatch, address: str) -> EmailMessage:
    """The mail to somebody who keeps checkpoints. Raises ValidationError for an address that is none."""
    validate_email(address)
    message = dispatch.message
    found = Checkpoint.objects.get(tenant_id=message.tenant_id, pk=message.subject_id)
    name = file_name(found.tenant_id, found.size)
    keys = SigningKey.objects.order_by("since").values_list("vkey", flat=True)
    key = next((vkey for vkey in keys if vkey.split("+")[1:2] == [found.key_hash]), "")
    context = {
        "tenant": message.tenant.name, "site": settings.PLACET_BASE_URL, "size": f"{found.size:,}", "note": found.note,
        "name": name, "key": key,
    }  # fmt: skip
    mail = EmailMessage(
        subject=f"Checkpoint of {message.tenant.slug}: event {found.size:,}",
        body=render_to_string("notify/mail/checkpoint.txt", context), from_email=settings.DEFAULT_FROM_EMAIL,
        to=[address],
        headers={"Message-ID": f"<{dispatch.pk}@{host_name()}>", "Auto-Submitted": "auto-generated"},
    )  # fmt: skip
    # Mail servers rewrite the ends of lines of texts, and a signature is over bytes.
    mail.attach(name, found.note.encode(), "application/octet-stream")
    return mail


def sent_checkpoints(tenant_id: UUID) -> QuerySet[Message]:
    """What was sent to those who keep checkpoints, the newest first."""
    found = Message.objects.filter(tenant_id=tenant_id, subject_type=CHECKPOINT.name, kind=CHECKPOINT.name)
    return found.order_by("-created_at", "-version")


def anchored(tenant_id: UUID) -> Anchored:
    """What `audit.proof` asks: who is sent checkpoints, and what of it arrived last."""
    active = Destination.objects.filter(
        tenant_id=tenant_id, deactivated_at=None, kinds__contains=[CHECKPOINT.name]
    )
    many = active.aggregate(receivers=Count("pk"), since=Min("created_at"))
    if not many["receivers"]:
        return Anchored()
    sent = _sent(tenant_id)
    taken = max((one for one in sent if one.status == DispatchStatus.DELIVERED), key=_order, default=None)
    newest = [one for one in sent if one.message_id == sent[0].message_id]
    problem = next((why(one.problem) for one in newest if one.problem), "")
    found = None
    if taken is not None:
        found = Checkpoint.objects.filter(tenant_id=tenant_id, pk=taken.message.subject_id).first()
    return Anchored(
        receivers=many["receivers"], since=many["since"], size=found.size if found else 0,
        signed_at=found.signed_at if found else None, taken_at=taken.ended_at if taken else None, problem=problem,
    )  # fmt: skip


def _sent(tenant_id: UUID) -> list[Dispatch]:
    """The dispatches of the last checkpoints, the newest message first."""
    ids = list(sent_checkpoints(tenant_id).values_list("pk", flat=True)[:_RECENT])
    found = Dispatch.objects.filter(message_id__in=ids).select_related("message")
    return sorted(found, key=_order, reverse=True)


def _order(dispatch: Dispatch) -> tuple[object, int]:
    return dispatch.message.created_at, dispatch.message.version
