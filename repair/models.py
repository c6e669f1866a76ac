"""A repair packet: one cause that stopped one run, with an owner and a clock; and what people chose to do about it."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from access.models import User
from common.fsm import Frozen, ProtectedStateMixin, StateTrigger
from common.sealed import SealedRow, SealedText
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
    assignee = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    """Who is meant to look at it; while it is *in progress*, who does."""
    state_version = models.PositiveIntegerField(default=1)
    """Grows with every move: whoever chooses names the one they saw."""

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

    @transition(field=status, source=P.IN_PROGRESS, target=P.OPEN)
    def give_back(self) -> None:
        """Nobody works on it any more."""

    @transition(field=status, source=[P.OPEN, P.IN_PROGRESS], target=P.AWAITING_SECOND)
    def await_second(self) -> None:
        """A first person attested; the operation's limit asks for another."""

    @transition(field=status, source=[P.OPEN, P.IN_PROGRESS, P.AWAITING_SECOND], target=P.RESOLVED)
    def resolve(self, *, at: datetime, how: str) -> None:
        self.ended_at, self.resolution = at, how

    @transition(field=status, source=[P.OPEN, P.IN_PROGRESS, P.AWAITING_SECOND], target=P.ABANDONED)
    def abandon(self, *, at: datetime, how: str) -> None:
        self.ended_at, self.resolution = at, how


class RepairCause(TenantRow):
    """Why things stop here, in the team's own words: a list that grows."""

    title = models.CharField(max_length=80)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            tenant_key("repair_cause_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "title"], name="repair_cause_once"),
        ]

    def __str__(self) -> str:
        return self.title


class RepairMove(SealedRow, TenantRow):
    """What somebody chose on a packet, and when; of what was refused, its code. Who lost a race is in here too."""

    content_run = "packet.run_id"
    packet = models.ForeignKey(
        RepairPacket, on_delete=models.PROTECT, db_constraint=False, related_name="moves"
    )
    choice = models.CharField(max_length=40)
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()
    refused = models.CharField(max_length=60, blank=True)
    """The code of the refusal; empty: it was done."""
    root_cause = models.ForeignKey(
        RepairCause, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="moves"
    )
    words = SealedText(blank=True, default="")

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="repair_move_frozen",
                fields=["tenant", "packet", "choice", "user", "at", "refused", "root_cause", "words"],
            )
        ]
        constraints = [
            SameTenant(field="packet", name="repair_move_packet_tenant"),
            SameTenant(field="root_cause", name="repair_move_cause_tenant"),
        ]
        indexes = [
            models.Index(fields=["packet", "-at", "-id"], name="repair_move_newest"),
            models.Index(
                fields=["tenant", "-at"], condition=Q(root_cause__isnull=False), name="repair_move_caused"
            ),
        ]
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.choice} on {self.packet_id}"
