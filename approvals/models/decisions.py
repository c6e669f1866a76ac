"""What people, or a rule, said about a proposal."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from access.enums import Posture
from access.models import Group, User
from approvals.enums import DecisionKind, ReasonCode
from approvals.models.proposals import Proposal
from common.fsm import Frozen
from common.sealed import SealedRow, SealedText
from common.tenancy import SameTenant, TenantRow, tenant_key


class Decision(SealedRow, TenantRow):
    """What one person, or one policy rule, said about exactly one pair of digests."""

    content_run = "proposal.run_id"
    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, db_constraint=False, related_name="decisions"
    )
    kind = models.CharField(max_length=20, choices=DecisionKind.choices)
    user = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    role = models.CharField(max_length=20, blank=True)
    group = models.ForeignKey(
        Group, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    in_stead_of = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    """Whose place in the group it was, where the person decided as the deputy of somebody who was away."""
    rule = models.CharField(max_length=80, blank=True)
    rule_version = models.PositiveIntegerField(null=True)
    digest = models.CharField(max_length=64)
    view_digest = models.CharField(max_length=64)
    parts_seen = ArrayField(models.CharField(max_length=80), default=list)
    acknowledged = ArrayField(models.CharField(max_length=120), default=list)
    reason_code = models.CharField(max_length=30, choices=ReasonCode.choices, blank=True)
    reason = SealedText(blank=True)
    performed_by = models.CharField(max_length=200)
    via = models.CharField(max_length=20)
    posture = models.CharField(max_length=20, choices=Posture.choices, default="", db_default="", blank=True)
    """*break_glass* where the tenant let one person decide on their own when this was said."""
    at = models.DateTimeField()
    replaced_at = models.DateTimeField(null=True)
    """Set when the same person changed their mind before the proposal ended."""

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="approvals_decision_bound",
                fields=[
                    "tenant",
                    "proposal",
                    "kind",
                    "user",
                    "role",
                    "group",
                    "in_stead_of",
                    "rule",
                    "rule_version",
                    "digest",
                    "view_digest",
                    "parts_seen",
                    "acknowledged",
                    "reason_code",
                    "reason",
                    "performed_by",
                    "via",
                    "posture",
                    "at",
                ],
                once=["replaced_at"],
            )
        ]
        constraints = [
            tenant_key("approvals_decision_tenant_id"),
            SameTenant(field="proposal", name="approvals_decision_proposal_tenant"),
            SameTenant(field="group", name="approvals_decision_group_tenant"),
            models.CheckConstraint(
                condition=Q(kind__in=DecisionKind.values), name="approvals_decision_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(user__isnull=False, rule="", via="session")
                | (Q(user__isnull=True, rule_version__isnull=False, via="rule") & ~Q(rule="")),
                name="approvals_decision_by_a_person_or_a_rule",
            ),
            models.CheckConstraint(
                condition=Q(in_stead_of__isnull=True)
                | (Q(user__isnull=False, group__isnull=False) & ~Q(in_stead_of=F("user"))),
                name="approvals_decision_in_anothers_stead",
            ),
            models.UniqueConstraint(
                fields=["proposal", "user"], condition=Q(replaced_at__isnull=True, user__isnull=False),
                name="approvals_decision_one_standing_vote",
            ),
        ]  # fmt: skip
        indexes: ClassVar = [
            models.Index(
                fields=["user", "at"], condition=Q(replaced_at__isnull=True), name="approvals_decision_lately"
            )
        ]
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.kind} by {self.performed_by}"
