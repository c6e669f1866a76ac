"""What holds actions back: a freeze that a person placed, or the open circuit of a provider in trouble."""

from datetime import datetime
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from common.fsm import Frozen, ProtectedStateMixin, StateTrigger
from common.ids import new_id
from common.models import Tenant
from workflows.enums import HoldReason, HoldStatus

H = HoldStatus
MOST_RUNS = 2_000
"""Runs that one freeze names: its row is read by every transaction that commits *sent* while it holds."""


class Hold(ProtectedStateMixin):
    """While it holds, nothing within its scope is newly sent. What is left empty matches everything.

    No tenant: the whole installation. The transaction that commits ``sent`` takes the shared scope lock and then
    reads these rows; after this row was committed, ``drained_at`` is set under the exclusive lock, and from that
    instant on no transaction is left that had not seen it.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    reason = models.CharField(max_length=10, choices=HoldReason.choices)
    workflow = models.CharField(max_length=60, blank=True)
    workflow_version = models.PositiveIntegerField(null=True)
    operation = models.CharField(max_length=60, blank=True)
    provider = models.CharField(max_length=60, blank=True)
    target = models.CharField(max_length=200, blank=True)
    runs = ArrayField(models.UUIDField(), null=True)
    """Exactly these runs, and what else is named; NULL: whichever. An older release reads the row without it, and so
    holds more, never less.
    """

    status = FSMField(choices=H.choices, default=H.IN_FORCE, protected=True)
    why = models.CharField(max_length=500)
    placed_by = models.CharField(max_length=200)
    placed_at = models.DateTimeField()
    drained_at = models.DateTimeField(null=True)
    in_flight: Any = models.JSONField(default=dict)
    """Of a freeze, at ``drained_at``: ``{sent, unknown, commands: [{id, status}]}``, the list cut after some hundreds.
    Of a circuit: ``{given_up}``, the commands that were on trial and never tried.
    """
    until = models.DateTimeField(null=True)
    """When an open circuit is tried by one call; None: only a person lifts it."""
    pause_s = models.PositiveIntegerField(default=0)
    trial_command_id = models.UUIDField(null=True)
    trial_at = models.DateTimeField(null=True)
    lifted_by = models.CharField(max_length=200, blank=True)
    lifted_at = models.DateTimeField(null=True)
    lift_why = models.CharField(max_length=500, blank=True)
    next_release_at = models.DateTimeField(null=True)
    """Lifting never releases a burst: a few commands, then this pause."""
    ended_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [
            StateTrigger(name="workflows_hold_moves", initial=[H.IN_FORCE]),
            Frozen(
                name="workflows_hold_bound",
                fields=[
                    "tenant", "reason", "workflow", "workflow_version", "operation", "provider", "target", "runs",
                    "why", "placed_by", "placed_at",
                ],
                once=["drained_at", "lifted_at", "ended_at"],
            ),
        ]  # fmt: skip
        constraints = [
            models.CheckConstraint(condition=Q(status__in=H.values), name="workflows_hold_status_known"),
            models.CheckConstraint(
                condition=Q(reason=HoldReason.FREEZE, until__isnull=True)
                | (Q(reason=HoldReason.CIRCUIT, tenant__isnull=False) & ~Q(provider="")),
                name="workflows_hold_reason_known",
            ),
            models.CheckConstraint(
                condition=Q(workflow_version__isnull=True) | ~Q(workflow=""),
                name="workflows_hold_version_of_a_workflow",
            ),
            models.CheckConstraint(
                # Words that name something of one tenant mean nothing without it.
                condition=Q(tenant__isnull=False)
                | Q(workflow="", operation="", provider="", target="", runs__isnull=True),
                name="workflows_hold_scope_within_a_tenant",
            ),
            models.CheckConstraint(
                # An empty list would look like a freeze and hold nothing.
                condition=Q(runs__isnull=True) | Q(runs__len__gte=1, runs__len__lte=MOST_RUNS),
                name="workflows_hold_names_so_many_runs",
            ),
            models.CheckConstraint(
                condition=Q(status=H.TRIAL, trial_command_id__isnull=False)
                | (~Q(status=H.TRIAL) & Q(trial_command_id__isnull=True)),
                name="workflows_hold_trial_names_its_command",
            ),
            models.CheckConstraint(
                condition=(
                    Q(status__in=(H.LIFTING, H.LIFTED), lifted_at__isnull=False)
                    | (~Q(status__in=(H.LIFTING, H.LIFTED)) & Q(lifted_at__isnull=True))
                )
                & (
                    Q(status=H.LIFTED, ended_at__isnull=False)
                    | (~Q(status=H.LIFTED) & Q(ended_at__isnull=True))
                ),
                name="workflows_hold_says_when_lifted",
            ),
            models.UniqueConstraint(
                fields=["tenant", "provider"],
                condition=Q(reason=HoldReason.CIRCUIT, status__in=H.holding_states),
                name="workflows_hold_one_circuit_per_provider",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant"], condition=~Q(status=H.LIFTED), name="workflows_hold_live"),
            models.Index(fields=["tenant", "placed_at", "id"], name="workflows_hold_list"),
        ]

    def __str__(self) -> str:
        return f"{self.reason} of {self.scope} ({self.status})"

    @property
    def scope(self) -> str:
        """What it holds, in a few words: *everything*, *operation refunds.issue*."""
        version = f" version {self.workflow_version}" if self.workflow_version is not None else ""
        words = [
            f"{name} {value}"
            for name, value in (
                ("workflow", f"{self.workflow}{version}" if self.workflow else ""), ("operation", self.operation),
                ("provider", self.provider), ("target", self.target), ("exactly", self._runs),
            )
            if value
        ]  # fmt: skip
        return ", ".join(words) or ("everything of this organisation" if self.tenant_id else "everything")

    @property
    def _runs(self) -> str:
        number = len(self.runs or ())
        return f"{number:,} named {'run' if number == 1 else 'runs'}" if number else ""

    @transition(field=status, source=H.IN_FORCE, target=H.TRIAL)
    def try_one(self, *, at: datetime, command_id: Any) -> None:
        """Let one command through, to see whether the provider works again."""
        self.trial_command_id, self.trial_at = command_id, at

    @transition(field=status, source=H.TRIAL, target=H.IN_FORCE)
    def hold_on(self, *, until: datetime | None, pause_s: int) -> None:
        """The trial came to nothing."""
        self.trial_command_id, self.until, self.pause_s = None, until, pause_s

    @transition(field=status, source=[H.IN_FORCE, H.TRIAL], target=H.LIFTING)
    def lift(self, *, at: datetime, by: str, why: str) -> None:
        self.trial_command_id, self.lifted_at, self.next_release_at = None, at, at
        self.lifted_by, self.lift_why = by, why[:500]

    @transition(field=status, source=H.LIFTING, target=H.LIFTED)
    def end(self, *, at: datetime) -> None:
        """Nothing is held by it any more."""
        self.ended_at, self.next_release_at = at, None
