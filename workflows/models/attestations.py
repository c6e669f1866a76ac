"""What people say about outcomes that no answer and no look-up settles."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from access.models import User
from common.fsm import Frozen
from common.sealed import SealedRow, SealedText
from common.tenancy import SameTenant, TenantRow
from workflows.enums import Testimony
from workflows.models.commands import Command


class Attestation(SealedRow, TenantRow):
    """One person's word about one unknown command. Of the same person, the latest stands."""

    content_run = "command.run_id"
    command = models.ForeignKey(
        Command, on_delete=models.PROTECT, db_constraint=False, related_name="attestations"
    )
    says = models.CharField(max_length=20, choices=Testimony.choices)
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    role = models.CharField(max_length=20)
    reference = models.CharField(max_length=200, blank=True)
    """The provider's reference of the effect: needed to say that it happened."""
    reason = SealedText()
    tries = models.PositiveSmallIntegerField()
    """How many requests had been made when it was said: a word about two requests is not about a third."""
    at = models.DateTimeField()
    replaced_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="workflows_attestation_bound",
                fields=["tenant", "command", "says", "user", "role", "reference", "reason", "tries", "at"],
                once=["replaced_at"],
            )
        ]
        constraints = [
            SameTenant(field="command", name="workflows_attestation_command_tenant"),
            models.CheckConstraint(
                condition=Q(says__in=Testimony.values), name="workflows_attestation_says_known"
            ),
            models.CheckConstraint(
                condition=Q(says=Testimony.DID_NOT_HAPPEN) | ~Q(reference=""),
                name="workflows_attestation_effect_has_its_reference",
            ),
            models.UniqueConstraint(
                fields=["command", "user"], condition=Q(replaced_at__isnull=True),
                name="workflows_attestation_one_standing_word",
            ),
        ]  # fmt: skip
        indexes = [models.Index(fields=["command", "at"], name="workflows_attestation_command")]
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.says}, says {self.user_id}"
