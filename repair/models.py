"""A repair packet: one cause that stopped one run, with an owner and a clock."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from common.fsm import Frozen, ProtectedStateMixin, StateTrigger
from common.tenancy import SameTenant, TenantRow, tenant_key
from repair.enums import PacketStatus
from workflows.enums import OnExpiry
from workflows.models import Run

P = PacketStatus


class RepairPacket(ProtectedStateMixin, TenantRow):
    """Opened by itself for everything that stops. One is open per cause and run."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, db_constraint=False, related_name="packets")
    step = models.CharField(max_length=60)
    cause = models.CharField(max_length=60)
    summary = models.CharField(max_length=300)
    owner = models.CharField(max_length=120)
    command_id = models.UUIDField(null=True)
    proposal_id = models.UUIDField(null=True)
    status = FSMField(choices=P.choices, default=P.OPEN, protected=True)
    wait_id = models.UUIDField()
    waiting_until = models.DateTimeField()
    on_expiry = models.CharField(max_length=20, choices=OnExpiry.choices, default=OnExpiry.ESCALATE)
    escalations = models.PositiveSmallIntegerField(default=0)
    opened_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=60, blank=True)

    class Meta:
        triggers: ClassVar = [
            StateTrigger(name="repair_packet_moves", initial=[P.OPEN]),
            Frozen(
                name="repair_packet_bound",
                fields=["tenant", "run", "step", "cause", "opened_at"],
                once=["ended_at"],
            ),
        ]
        constraints = [
            tenant_key("repair_packet_tenant_id"),
            SameTenant(field="run", name="repair_packet_run_tenant"),
            models.CheckConstraint(condition=Q(status__in=P.values), name="repair_packet_status_known"),
            models.CheckConstraint(
                condition=Q(status__in=P.open_states, ended_at__isnull=True)
                | (~Q(status__in=P.open_states) & Q(ended_at__isnull=False) & ~Q(resolution="")),
                name="repair_packet_ended_says_how",
            ),
            models.CheckConstraint(
                condition=Q(on_expiry__in=OnExpiry.values), name="repair_packet_waits_with_a_clock"
            ),
            models.UniqueConstraint(
                fields=["run", "step", "cause"], condition=Q(status__in=P.open_states),
                name="repair_packet_one_open_per_cause",
            ),
        ]  # fmt: skip
        indexes = [
            models.Index(
                fields=["tenant", "waiting_until", "id"], condition=Q(status__in=P.open_states),
                name="repair_packet_open",
            ),
            models.Index(fields=["tenant", "-opened_at", "-id"], name="repair_packet_newest"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.cause}: {self.summary}"

    @transition(field=status, source=[P.OPEN, P.AWAITING_SECOND], target=P.IN_PROGRESS)
    def take(self) -> None:
        """Somebody works on it."""

    @transition(field=status, source=[P.OPEN, P.IN_PROGRESS], target=P.AWAITING_SECOND)
    def await_second(self) -> None:
        """A first person attested; the operation's limit asks for another."""

    @transition(field=status, source=[P.OPEN, P.IN_PROGRESS, P.AWAITING_SECOND], target=P.RESOLVED)
    def resolve(self, *, at: datetime, how: str) -> None:
        self.ended_at, self.resolution = at, how

    @transition(field=status, source=[P.OPEN, P.IN_PROGRESS, P.AWAITING_SECOND], target=P.ABANDONED)
    def abandon(self, *, at: datetime, how: str) -> None:
        self.ended_at, self.resolution = at, how
