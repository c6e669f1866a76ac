"""An incident: what looks wrong, which runs it touched, what was frozen, and what became of each of them."""

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from access.models import User
from common.fsm import Frozen, ProtectedStateMixin, StateTrigger
from common.sealed import SealedRow, SealedText
from common.tenancy import SameTenant, TenantRow, tenant_key
from repair.enums import IncidentStatus, Mark, NoteKind
from repair.models import RepairCause
from workflows.models import Run

I = IncidentStatus  # noqa: E741 - as every model names its states by one letter


class Incident(SealedRow, ProtectedStateMixin, TenantRow):
    """Something looks wrong in many runs at once: from the first doubt until each of them is worked off."""

    content_run = "pk"
    trouble = SealedText()
    criteria = models.JSONField(default=dict)
    """What the runs have in common, as `repair.incidents.criteria.Criteria` writes it."""
    status = FSMField(choices=I.choices, default=I.OPEN, protected=True)
    opened_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    hypothesis = SealedText(blank=True, default="")
    remedy = SealedText(blank=True, default="")
    """What is changed because of it, and how that is undone."""
    signal = SealedText(blank=True, default="")
    """By what everybody will see that the change worked."""
    more = models.BooleanField(default=False)
    """Whether more runs fit than one incident holds."""
    opened_at = models.DateTimeField()
    looked_at = models.DateTimeField()
    """Until when it is known which runs fit."""
    contained_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    root_cause = models.ForeignKey(
        RepairCause, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="incidents"
    )
    trace_clean = models.ForeignKey(
        Run, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    """The representative runs: one that went well, one that needed another try or a correction, one that failed."""
    trace_corrected = models.ForeignKey(
        Run, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    trace_failed = models.ForeignKey(
        Run, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    state_version = models.PositiveIntegerField(default=1)
    """Grows with every change of the row itself: whoever changes it names the one they saw."""

    class Meta:
        triggers: ClassVar = [
            StateTrigger(name="repair_incident_moves", initial=[I.OPEN]),
            Frozen(
                name="repair_incident_bound", fields=["tenant", "criteria", "opened_by", "opened_at"],
                once=["contained_at", "closed_at"],
            ),
        ]  # fmt: skip
        constraints = [
            tenant_key("repair_incident_tenant_id"),
            SameTenant(field="root_cause", name="repair_incident_cause_tenant"),
            SameTenant(field="trace_clean", name="repair_incident_clean_tenant"),
            SameTenant(field="trace_corrected", name="repair_incident_corrected_tenant"),
            SameTenant(field="trace_failed", name="repair_incident_failed_tenant"),
            models.CheckConstraint(condition=Q(status__in=I.values), name="repair_incident_status_known"),
            models.CheckConstraint(
                condition=Q(status=I.CLOSED, closed_at__isnull=False, root_cause__isnull=False)
                | (~Q(status=I.CLOSED) & Q(closed_at__isnull=True)),
                name="repair_incident_closed_with_a_cause",
            ),
            models.CheckConstraint(
                condition=~Q(status=I.CONTAINED) | Q(contained_at__isnull=False),
                name="repair_incident_contained_says_when",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "-opened_at", "-id"], name="repair_incident_newest")]

    def __str__(self) -> str:
        return f"incident {self.pk} ({self.status})"

    @transition(field=status, source=I.OPEN, target=I.CONTAINED)
    def contain(self, *, at: datetime) -> None:
        """The harm is stopped: no run joins any more."""
        self.contained_at = at

    @transition(field=status, source=[I.OPEN, I.CONTAINED], target=I.CLOSED)
    def close(self, *, at: datetime, cause: RepairCause) -> None:
        """Somebody says what the cause was."""
        self.closed_at, self.root_cause = at, cause


class IncidentRun(SealedRow, TenantRow):
    """One run that an incident touched, and what a person found about it."""

    incident = models.ForeignKey(
        Incident, on_delete=models.PROTECT, db_constraint=False, related_name="affected"
    )
    run = models.ForeignKey(Run, on_delete=models.PROTECT, db_constraint=False, related_name="incidents")
    mark = models.CharField(max_length=20, choices=Mark.choices, default=Mark.UNLOOKED)
    words = SealedText(blank=True, default="")
    marked_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    marked_at = models.DateTimeField(null=True)
    joined_at = models.DateTimeField()
    version = models.PositiveIntegerField(default=1)
    """Grows with every mark: of two people who mark at once, the second is told."""

    class Meta:
        triggers: ClassVar = [
            Frozen(name="repair_incident_run_bound", fields=["tenant", "incident", "run", "joined_at"])
        ]
        constraints = [
            tenant_key("repair_incident_run_tenant_id"),
            SameTenant(field="incident", name="repair_incident_run_incident_tenant"),
            SameTenant(field="run", name="repair_incident_run_run_tenant"),
            models.CheckConstraint(condition=Q(mark__in=Mark.values), name="repair_incident_run_mark_known"),
            models.CheckConstraint(
                condition=Q(mark=Mark.UNLOOKED, marked_by__isnull=True, marked_at__isnull=True)
                | (~Q(mark=Mark.UNLOOKED) & Q(marked_by__isnull=False, marked_at__isnull=False)),
                name="repair_incident_run_marked_by_somebody",
            ),
            models.UniqueConstraint(fields=["incident", "run"], name="repair_incident_run_once"),
        ]
        indexes = [
            models.Index(fields=["incident", "mark", "-run"], name="repair_incident_run_list"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} in {self.incident_id} ({self.mark})"


class IncidentNote(SealedRow, TenantRow):
    """What was said or done about an incident, and when; nothing of it changes."""

    content_run = "incident_id"
    incident = models.ForeignKey(
        Incident, on_delete=models.PROTECT, db_constraint=False, related_name="notes"
    )
    kind = models.CharField(max_length=20, choices=NoteKind.choices)
    hold_id = models.UUIDField(null=True)
    """Of *frozen*: the freeze that was placed."""
    words = SealedText(blank=True, default="")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="repair_incident_note_frozen",
                fields=["tenant", "incident", "kind", "hold_id", "words", "user", "at"],
            )
        ]
        constraints = [
            SameTenant(field="incident", name="repair_incident_note_incident_tenant"),
            models.CheckConstraint(
                condition=Q(kind__in=NoteKind.values), name="repair_incident_note_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(kind=NoteKind.FROZEN, hold_id__isnull=False)
                | (~Q(kind=NoteKind.FROZEN) & Q(hold_id__isnull=True)),
                name="repair_incident_note_names_the_freeze",
            ),
            models.UniqueConstraint(
                fields=["incident", "hold_id"], condition=Q(hold_id__isnull=False),
                name="repair_incident_note_one_per_freeze",
            ),
        ]  # fmt: skip
        indexes = [models.Index(fields=["incident", "-at", "-id"], name="repair_incident_note_newest")]
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.kind} on {self.incident_id}"
