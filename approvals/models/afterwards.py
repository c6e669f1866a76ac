"""What was approved by rule, was picked by chance, and is looked at by a person afterwards."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from access.models import User
from approvals.enums import AfterVerdict
from approvals.models.proposals import Proposal
from common.fsm import Frozen
from common.sealed import SealedRow, SealedText
from common.tenancy import SameTenant, TenantRow, tenant_key


class Sample(SealedRow, TenantRow):
    """One automatic action that a person looks at once it has been done. What they say changes nothing of it."""

    content_run = "proposal.run_id"
    proposal = models.OneToOneField(
        Proposal, on_delete=models.PROTECT, db_constraint=False, related_name="sample"
    )
    command_id = models.UUIDField()
    """What the draw was made of, with the tenant's key: an auditor with the key draws the same."""
    workflow = models.CharField(max_length=60)
    share = models.DecimalField(max_digits=5, decimal_places=4)
    """Of automatic actions, between 0 and 1, as the workflow declared it then."""
    wrong_limit = models.DecimalField(max_digits=5, decimal_places=4)
    """From which share of wrong ones on the owner is told."""
    picked_at = models.DateTimeField()
    verdict = models.CharField(max_length=10, choices=AfterVerdict.choices, null=True)
    words = SealedText(null=True)
    user = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="approvals_sample_drawn",
                fields=["tenant", "proposal", "command_id", "workflow", "share", "wrong_limit", "picked_at"],
                once=["verdict", "words", "user", "at"],
            )
        ]
        constraints = [
            tenant_key("approvals_sample_tenant_id"),
            SameTenant(field="proposal", name="approvals_sample_proposal_tenant"),
            models.CheckConstraint(
                condition=Q(verdict__isnull=True, words__isnull=True, user__isnull=True, at__isnull=True)
                | Q(
                    verdict__in=AfterVerdict.values,
                    words__isnull=False,
                    user__isnull=False,
                    at__isnull=False,
                ),
                name="approvals_sample_said_whole",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "picked_at", "id"], condition=Q(at__isnull=True), name="approvals_sample_open"
            ),
            models.Index(
                fields=["tenant", "workflow", "-at"], condition=Q(at__isnull=False), name="approvals_sample_said"
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"sample of {self.workflow}: {self.verdict or 'open'}"
