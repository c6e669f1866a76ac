"""The physical tries of a command, and the look-ups at the provider."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from common.fsm import Frozen, ProtectedStateMixin, StateTrigger
from common.tenancy import SameTenant, TenantRow
from workflows.enums import AttemptStatus
from workflows.models.commands import Command

A = AttemptStatus


class Attempt(ProtectedStateMixin, TenantRow):
    """One physical try, with the time of every boundary it crossed."""

    command = models.ForeignKey(
        Command, on_delete=models.PROTECT, db_constraint=False, related_name="attempts"
    )
    number = models.PositiveSmallIntegerField()
    worker = models.CharField(max_length=120)
    token = models.UUIDField()
    status = FSMField(choices=A.choices, default=A.CLAIMED, protected=True)
    claimed_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=40, blank=True)
    http_status = models.PositiveSmallIntegerField(null=True)
    detail = models.CharField(max_length=200, blank=True)
    answer_ref = models.UUIDField(null=True)
    late_evidence = models.JSONField(null=True)
    """What a worker learned after its token had gone stale; it changes no state, and reconcile reads it first."""

    class Meta:
        triggers: ClassVar = [
            StateTrigger(name="workflows_attempt_moves", initial=[A.CLAIMED]),
            Frozen(
                name="workflows_attempt_bound",
                fields=["tenant", "command", "number", "worker", "token", "claimed_at"],
                once=["sent_at", "ended_at"],
            ),
        ]
        constraints = [
            SameTenant(field="command", name="workflows_attempt_command_tenant"),
            models.UniqueConstraint(fields=["command", "number"], name="workflows_attempt_number"),
            models.UniqueConstraint(fields=["token"], name="workflows_attempt_token"),
            models.CheckConstraint(condition=Q(status__in=A.values), name="workflows_attempt_status_known"),
            models.CheckConstraint(
                condition=(~Q(status=A.CLAIMED) | Q(sent_at__isnull=True))
                & (~Q(status__in=(A.SENT, A.ANSWERED, A.NO_ANSWER)) | Q(sent_at__isnull=False)),
                name="workflows_attempt_sent_has_its_time",
            ),
            models.CheckConstraint(
                condition=Q(status__in=(A.CLAIMED, A.SENT), ended_at__isnull=True)
                | (~Q(status__in=(A.CLAIMED, A.SENT)) & Q(ended_at__isnull=False)),
                name="workflows_attempt_ended_once_final",
            ),
        ]
        ordering = ["command_id", "number"]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.command_id} ({self.status})"

    @transition(field=status, source=A.CLAIMED, target=A.SENT)
    def send(self, *, at: datetime) -> None:
        self.sent_at = at

    @transition(field=status, source=A.SENT, target=A.ANSWERED)
    def answer(self, *, at: datetime, outcome: str, http_status: int | None, detail: str) -> None:
        self._end(at, outcome, detail)
        self.http_status = http_status

    @transition(field=status, source=A.SENT, target=A.NO_ANSWER)
    def no_answer(self, *, at: datetime, outcome: str, detail: str) -> None:
        self._end(at, outcome, detail)

    @transition(field=status, source=[A.CLAIMED, A.SENT], target=A.RELEASED)
    def release(self, *, at: datetime, outcome: str, detail: str = "") -> None:
        """Nothing reached the provider in this try."""
        self._end(at, outcome, detail)

    def _end(self, at: datetime, outcome: str, detail: str) -> None:
        self.ended_at, self.outcome, self.detail = at, outcome, detail[:200]


class Lookup(TenantRow):
    """One question to the provider, *did this happen?* Not an attempt: it cannot cause anything."""

    command = models.ForeignKey(
        Command, on_delete=models.PROTECT, db_constraint=False, related_name="lookup_rows"
    )
    asked_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    worker = models.CharField(max_length=120)
    finding = models.CharField(max_length=20)
    """``happened``, ``not_found``, ``no_answer``."""
    provider_reference = models.CharField(max_length=200, blank=True)
    settled = models.BooleanField(default=False)
    """Asked after the provider's settle time, so that *not found* counts."""
    detail = models.CharField(max_length=200, blank=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="workflows_lookup_frozen",
                fields=[
                    "tenant",
                    "command",
                    "asked_at",
                    "ended_at",
                    "finding",
                    "provider_reference",
                    "settled",
                ],
            )
        ]
        constraints = [
            SameTenant(field="command", name="workflows_lookup_command_tenant"),
            models.CheckConstraint(
                condition=Q(finding__in=("happened", "not_found", "no_answer")),
                name="workflows_lookup_finding_known",
            ),
        ]
        indexes = [models.Index(fields=["command", "asked_at"], name="workflows_lookup_command")]

    def __str__(self) -> str:
        return f"look-up of {self.command_id}: {self.finding}"
