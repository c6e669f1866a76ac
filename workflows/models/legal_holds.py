"""Legal holds over more than one run: while one stands, nothing that it covers is erased."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from common.fsm import Frozen
from common.tenancy import TenantRow


class LegalHold(TenantRow):
    """Keeps what lies within its scope from being erased, also of runs that come later. All empty: the organisation.

    Of a single run the hold lies at its key (`common.models.ContentKey`).
    """

    target = models.CharField(max_length=200, blank=True)
    """Runs that proposed something about it."""
    record = models.CharField(max_length=200, blank=True)
    """Runs that came from this record of a source system."""
    person = models.CharField(max_length=200, blank=True)
    """``user:<id>``: runs that were asked for by or for them, or that they decided on."""
    why = models.CharField(max_length=200)
    """A reference such as a file number; no personal data."""
    placed_by = models.CharField(max_length=200)
    placed_at = models.DateTimeField()
    lifted_by = models.CharField(max_length=200, null=True)
    lifted_at = models.DateTimeField(null=True)
    lift_why = models.CharField(max_length=200, null=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="workflows_legalhold_bound",
                fields=["tenant", "target", "record", "person", "why", "placed_by", "placed_at"],
                once=["lifted_by", "lifted_at", "lift_why"],
            )
        ]
        constraints = [
            models.CheckConstraint(
                # Two at once would read as either *and* or *or*: whoever needs both places two.
                condition=Q(target="", record="") | Q(target="", person="") | Q(record="", person=""),
                name="workflows_legalhold_one_scope",
            ),
            models.CheckConstraint(
                condition=Q(lifted_at__isnull=True, lifted_by__isnull=True, lift_why__isnull=True)
                | Q(lifted_at__isnull=False, lifted_by__isnull=False, lift_why__isnull=False),
                name="workflows_legalhold_lifted_by_somebody",
            ),
            models.UniqueConstraint(
                fields=["tenant", "target", "record", "person", "why"], condition=Q(lifted_at=None),
                name="workflows_legalhold_once",
            ),
        ]  # fmt: skip
        indexes = [models.Index(fields=["tenant", "-placed_at", "-id"], name="workflows_legalhold_newest")]

    def __str__(self) -> str:
        return f"legal hold of {self.scope}"

    @property
    def scope(self) -> str:
        """What it covers, in a few words."""
        parts = (("target", self.target), ("record", self.record), ("person", self.person))
        return ", ".join(f"{word} {value}" for word, value in parts if value) or "the whole organisation"
