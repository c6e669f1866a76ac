"""To whom else a proposal is asked when its time runs short."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from access.models import Group
from approvals.enums import EscalationOutcome
from approvals.models.proposals import Proposal
from common.fsm import Frozen
from common.tenancy import SameTenant, TenantRow


class Escalation(TenantRow):
    """One step of widening, written down with the proposal: at ``due_at`` it is asked of this group, or role, too.

    Nothing that an approval binds to changes by it. A step is handled once: the proposal is widened, or had ended.
    """

    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, db_constraint=False, related_name="escalations"
    )
    position = models.PositiveSmallIntegerField()
    due_at = models.DateTimeField()
    group = models.ForeignKey(
        Group, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    role = models.CharField(max_length=20, blank=True)
    because = models.CharField(max_length=200)
    """What the workflow declares, in words: *when a quarter of the time is left*."""
    handled_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=20, choices=EscalationOutcome.choices, blank=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="approvals_escalation_planned",
                fields=["tenant", "proposal", "position", "due_at", "group", "role", "because"],
                once=["handled_at"],
            )
        ]
        constraints = [
            SameTenant(field="proposal", name="approvals_escalation_proposal_tenant"),
            SameTenant(field="group", name="approvals_escalation_group_tenant"),
            models.UniqueConstraint(fields=["proposal", "position"], name="approvals_escalation_once"),
            models.CheckConstraint(
                condition=Q(group__isnull=False, role="") | (Q(group__isnull=True) & ~Q(role="")),
                name="approvals_escalation_to_somebody",
            ),
            models.CheckConstraint(
                condition=Q(handled_at__isnull=True, outcome="")
                | (Q(handled_at__isnull=False) & Q(outcome__in=EscalationOutcome.values)),
                name="approvals_escalation_handled",
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(handled_at__isnull=True), name="approvals_escalation_due"
            )
        ]
        ordering = ["position"]

    def __str__(self) -> str:
        return f"escalation {self.position} at {self.due_at:%Y-%m-%d %H:%M}"
