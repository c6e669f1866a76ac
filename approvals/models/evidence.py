"""What a proposal rests on."""

from typing import ClassVar

from django.db import models

from approvals.models.proposals import Proposal
from common.fields import DataClass
from common.fsm import Frozen
from common.sealed import SealedBytes, SealedRow
from common.tenancy import SameTenant, TenantRow


class Evidence(SealedRow, TenantRow):
    """One piece that the proposal rests on. Its digest is salted, so that erased content cannot be guessed."""

    content_run = "proposal.run_id"
    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, db_constraint=False, related_name="evidence"
    )
    position = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=40)
    title = models.CharField(max_length=200)
    source = models.CharField(max_length=200, blank=True)
    ref = models.CharField(max_length=300, blank=True)
    content = SealedBytes(null=True)
    salt = models.BinaryField()
    digest = models.CharField(max_length=80)
    captured_at = models.DateTimeField()
    fresh_until = models.DateTimeField(null=True)
    asserted = models.BooleanField(default=False)
    """Given by an outside proposer and not fetched by us."""
    data_class = models.CharField(
        max_length=10, choices=[(c.value, c.value) for c in DataClass], default=DataClass.BUSINESS.value
    )

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="approvals_evidence_bound",
                fields=[
                    "tenant",
                    "proposal",
                    "position",
                    "kind",
                    "title",
                    "source",
                    "ref",
                    "salt",
                    "digest",
                    "captured_at",
                    "fresh_until",
                    "asserted",
                    "data_class",
                ],
                erasable=["content"],
            )
        ]
        constraints = [
            SameTenant(field="proposal", name="approvals_evidence_proposal_tenant"),
            models.UniqueConstraint(fields=["proposal", "position"], name="approvals_evidence_position"),
        ]
        ordering = ["position"]

    def __str__(self) -> str:
        return f"{self.kind}: {self.title}"
