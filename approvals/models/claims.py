"""Who reads a proposal at this moment: a courtesy between people, never an authority."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from access.models import User
from approvals.models.proposals import Proposal
from common.tenancy import SameTenant, TenantRow, tenant_key


class Claim(TenantRow):
    """One proposal and the person who holds it until an instant, so that two people do not read the same thing.

    It stops nobody from deciding. A proposal has one row, which the next holder takes over; released means that
    ``until`` lies in the past.
    """

    proposal = models.ForeignKey(
        Proposal, on_delete=models.CASCADE, db_constraint=False, related_name="claims"
    )
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    since = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            tenant_key("approvals_claim_tenant_id"),
            SameTenant(field="proposal", name="approvals_claim_proposal_tenant"),
            models.UniqueConstraint(fields=["proposal"], name="approvals_claim_one_holder"),
            models.CheckConstraint(condition=Q(until__gte=F("since")), name="approvals_claim_since_until"),
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "until"], name="approvals_claim_held")]

    def __str__(self) -> str:
        return f"{self.proposal_id} held by {self.user_id}"

    def is_held(self, now: datetime) -> bool:
        return now < self.until
