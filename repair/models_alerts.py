"""What stopped, gathered: so that a storm of one kind is one message and not five hundred."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from common.tenancy import TenantRow, tenant_key
from common.walls import Frozen


class StopAlert(TenantRow):
    """One kind of stop (a workflow with a cause) while it goes on: how many there were, and how many are told.

    It is open from the first packet until a whole window brought none.
    """

    workflow = models.CharField(max_length=60)
    cause = models.CharField(max_length=60)
    owner = models.CharField(max_length=120)
    """Of the first packet: whose people are told."""
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    """When what came since is told; null once it is over."""
    stopped = models.PositiveIntegerField(default=0)
    told = models.PositiveIntegerField(default=0)
    messages = models.PositiveIntegerField(default=0)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="repair_alert_bound",
                fields=["tenant", "workflow", "cause", "owner", "opened_at"],
                once=["closed_at"],
            )
        ]
        constraints = [
            tenant_key("repair_alert_tenant_id"),
            models.CheckConstraint(condition=Q(told__lte=F("stopped")), name="repair_alert_tells_what_stopped"),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=True, due_at__isnull=False)
                | Q(closed_at__isnull=False, due_at__isnull=True, told=F("stopped")),
                name="repair_alert_ends_when_all_is_told",
            ),
            models.UniqueConstraint(
                fields=["tenant", "workflow", "cause"], condition=Q(closed_at__isnull=True),
                name="repair_alert_one_open",
            ),
        ]  # fmt: skip
        indexes = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="repair_alert_due"),
        ]

    def __str__(self) -> str:
        return f"{self.stopped} × {self.cause} of {self.workflow}"
