"""How a replay was asked for."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from access.models import User
from common.fsm import Frozen
from common.sealed import SealedRow, SealedText
from common.tenancy import SameTenant, TenantRow, tenant_key
from workflows.enums_replays import Effects, Versions
from workflows.models.runs import Run


class Replay(SealedRow, TenantRow):
    """Of a run of kind *replay*: under which versions, with which effects, by whom and why. It never changes.

    A run of that kind without such a row acts on nothing: whatever reads it takes it for a dry one.
    """

    content_run = "run_id"
    run = models.OneToOneField(Run, on_delete=models.PROTECT, db_constraint=False, related_name="replay")
    versions = models.CharField(max_length=4, choices=Versions.choices)
    effects = models.CharField(max_length=7, choices=Effects.choices)
    fresh = models.BooleanField(default=False)
    """Whether it asks anew for data that people had supplied."""
    bound = models.JSONField(default=dict)
    """Under the versions of then: ``{operation: {"version": …, "policy": …}}``, as the original used them."""
    asked_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    reason = SealedText()
    at = models.DateTimeField()

    class Meta:
        triggers: ClassVar[list[Any]] = [
            Frozen(
                name="workflows_replay_frozen",
                fields=["tenant", "run", "versions", "effects", "fresh", "bound", "asked_by", "reason", "at"],
            )
        ]
        constraints = [
            tenant_key("workflows_replay_tenant_id"),
            SameTenant(field="run", name="workflows_replay_run_tenant"),
            models.CheckConstraint(
                condition=Q(versions__in=Versions.values), name="workflows_replay_versions_known"
            ),
            models.CheckConstraint(
                condition=Q(effects__in=Effects.values), name="workflows_replay_effects_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.effects} replay {self.run_id}"
