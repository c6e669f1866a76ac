"""What of a proposal later ones are compared with."""

from typing import ClassVar

from django.db import models

from approvals.models.proposals import Proposal
from common.fsm import Frozen
from common.tenancy import SameTenant, TenantRow

_KINDS = ("host", "address", "account", "name", "amount")


class Trait(TenantRow):
    """A value of a proposal, by its keyed fingerprint: which account, whose host, how much.

    ``likeness`` is the fingerprint of what a hurried reader takes the value for. It counts as *used* once the
    proposal's action has happened; nothing is written here then.
    """

    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, db_constraint=False, related_name="traits", db_index=False
    )
    operation = models.CharField(max_length=60)
    target = models.CharField(max_length=200)
    kind = models.CharField(max_length=10)
    place = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=80, blank=True)
    likeness = models.CharField(max_length=80, blank=True)
    amount = models.DecimalField(max_digits=28, decimal_places=4, null=True)
    currency = models.CharField(max_length=3, blank=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="approvals_trait_bound",
                fields=[
                    "tenant", "proposal", "operation", "target", "kind", "place", "fingerprint", "likeness", "amount",
                    "currency",
                ],
            )
        ]  # fmt: skip
        constraints = [
            SameTenant(field="proposal", name="approvals_trait_proposal_tenant"),
            models.CheckConstraint(condition=models.Q(kind__in=_KINDS), name="approvals_trait_kind_known"),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "operation", "kind", "fingerprint", "-id"], name="approvals_trait_used"
            ),
            models.Index(
                fields=["tenant", "kind", "likeness", "-id"],
                condition=~models.Q(likeness=""),
                name="approvals_trait_alike",
            ),
            models.Index(fields=["tenant", "operation", "target", "-id"], name="approvals_trait_target"),
            models.Index(
                fields=["tenant", "operation", "place", "currency", "-id"],
                condition=models.Q(kind="amount"),
                name="approvals_trait_amounts",
            ),
            models.Index(fields=["proposal"], name="approvals_trait_proposal"),
        ]
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.kind} at {self.place}"
