"""Rejections that are remembered for a time: the same thing is not asked again while they hold."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from access.models import User
from approvals.enums import ReasonCode
from approvals.models.proposals import Proposal
from common.fsm import Frozen
from common.sealed import SealedRow, SealedText
from common.tenancy import SameTenant, TenantRow


class Rejection(SealedRow, TenantRow):
    """That a person said no to exactly this, and until when that answers whoever proposes it again.

    ``material_digest`` is keyed per tenant: it can be compared and not guessed. What was said lies in the decision.
    """

    content_run = "proposal.run_id"
    proposal = models.OneToOneField(
        Proposal, on_delete=models.PROTECT, db_constraint=False, related_name="rejection"
    )
    operation = models.CharField(max_length=60)
    target = models.CharField(max_length=200)
    material_digest = models.CharField(max_length=80)
    reason_code = models.CharField(max_length=30, choices=ReasonCode.choices, blank=True)
    rejected_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    rejected_at = models.DateTimeField()
    until = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True)
    lifted_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    lifted_why = SealedText(null=True)
    """Why it was lifted, in that person's words."""

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="approvals_rejection_bound",
                fields=[
                    "tenant",
                    "proposal",
                    "operation",
                    "target",
                    "material_digest",
                    "reason_code",
                    "rejected_by",
                    "rejected_at",
                    "until",
                ],
                once=["lifted_at", "lifted_by", "lifted_why"],
            )
        ]
        constraints = [
            SameTenant(field="proposal", name="approvals_rejection_proposal_tenant"),
            models.CheckConstraint(
                condition=Q(until__gt=F("rejected_at")), name="approvals_rejection_for_a_time"
            ),
            models.CheckConstraint(
                condition=Q(lifted_at__isnull=True, lifted_by__isnull=True, lifted_why__isnull=True)
                | Q(lifted_at__isnull=False, lifted_by__isnull=False, lifted_why__isnull=False),
                name="approvals_rejection_lifted_by_somebody",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "material_digest"],
                condition=Q(lifted_at__isnull=True),
                name="approvals_rejection_same",
            ),
            models.Index(
                fields=["tenant", "operation", "target"],
                condition=Q(lifted_at__isnull=True),
                name="approvals_rejection_near",
            ),
        ]
        ordering = ["-rejected_at", "-id"]

    def __str__(self) -> str:
        return f"rejection of {self.proposal_id} until {self.until.isoformat()}"

    def holds(self, now: datetime) -> bool:
        """Whether it answers at this instant."""
        return self.lifted_at is None and now < self.until
