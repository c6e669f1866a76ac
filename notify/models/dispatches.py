"""What leaves: one message by one channel to one person or destination."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from common.fsm import ProtectedStateMixin, StateTrigger
from common.tenancy import SameTenant, TenantRow, tenant_key
from common.walls import Frozen
from notify.enums import Channel, DispatchStatus
from notify.models.destinations import Destination
from notify.models.messages import Message, Notice

S = DispatchStatus


class Dispatch(ProtectedStateMixin, TenantRow):
    """The outbox of mails and chat messages. Several to one person may leave as one list: they share their batch."""

    message = models.ForeignKey(
        Message, on_delete=models.PROTECT, db_constraint=False, related_name="dispatches"
    )
    channel = models.CharField(max_length=10, choices=Channel.choices)
    notice = models.ForeignKey(
        Notice, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    destination = models.ForeignKey(
        Destination, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="dispatches"
    )
    status = FSMField(choices=S.choices, default=S.PENDING, protected=True)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)
    """While a try is made."""
    batch = models.UUIDField(null=True)
    """What leaves together, and the Message-ID of it: the same for each try."""
    tries = models.PositiveSmallIntegerField(default=0)
    """Counted when a try begins, so that one that kills its worker counts too."""
    problem = models.CharField(max_length=60, blank=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [
            StateTrigger(name="notify_dispatch_moves", initial=[S.PENDING]),
            Frozen(
                name="notify_dispatch_bound",
                fields=["tenant", "message", "channel", "notice", "destination", "created_at"],
                kept_until="ended_at",
            ),
        ]
        constraints = [
            tenant_key("notify_dispatch_tenant_id"),
            SameTenant(field="message", name="notify_dispatch_message_tenant"),
            SameTenant(field="notice", name="notify_dispatch_notice_tenant"),
            SameTenant(field="destination", name="notify_dispatch_destination_tenant"),
            models.UniqueConstraint(
                fields=["notice", "channel"], condition=Q(notice__isnull=False), name="notify_dispatch_once_a_person"
            ),
            models.UniqueConstraint(
                fields=["message", "destination"], condition=Q(destination__isnull=False),
                name="notify_dispatch_once_a_destination",
            ),
            models.CheckConstraint(
                condition=Q(channel=Channel.MAIL, notice__isnull=False, destination__isnull=True)
                | Q(channel=Channel.CHAT, notice__isnull=True, destination__isnull=False),
                name="notify_dispatch_to_one",
            ),
            models.CheckConstraint(
                condition=Q(status=S.PENDING, due_at__isnull=False, ended_at__isnull=True)
                | (Q(status__in=[S.DELIVERED, S.MOOT, S.DEAD]) & Q(due_at__isnull=True, ended_at__isnull=False)),
                name="notify_dispatch_is_due_or_has_ended",
            ),
        ]  # fmt: skip
        indexes = [
            models.Index(fields=["channel", "due_at", "id"], condition=Q(status=S.PENDING), name="notify_dispatch_due"),
            models.Index(
                fields=["destination", "due_at"], condition=Q(status=S.PENDING), name="notify_dispatch_due_there"
            ),
            models.Index(fields=["tenant", "-ended_at"], condition=Q(status=S.DEAD), name="notify_dispatch_dead"),
            models.Index(fields=["destination", "-created_at"], name="notify_dispatch_newest"),
            models.Index(fields=["ended_at"], condition=Q(ended_at__isnull=False), name="notify_dispatch_ended"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.channel} {self.id} ({self.status})"

    # -- transitions: pure, they set this row's fields and nothing else ---------------------------------------

    @transition(field=status, source=S.PENDING, target=S.DELIVERED)
    def deliver(self, *, at: datetime) -> None:
        self._end(at, "")

    @transition(field=status, source=S.PENDING, target=S.MOOT)
    def drop(self, *, at: datetime, problem: str) -> None:
        self._end(at, problem)

    @transition(field=status, source=S.PENDING, target=S.DEAD)
    def give_up(self, *, at: datetime, problem: str) -> None:
        self._end(at, problem)

    @transition(field=status, source=S.DEAD, target=S.PENDING)
    def send_again(self, *, at: datetime) -> None:
        self.due_at, self.ended_at, self.tries, self.batch = at, None, 0, None

    def _end(self, at: datetime, problem: str) -> None:
        self.due_at, self.claimed_until, self.ended_at, self.problem = None, None, at, problem
