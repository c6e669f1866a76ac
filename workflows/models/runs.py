"""Preparation: source events, runs, steps, the protected documents they point at, and what code is registered."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django_fsm import RETURN_VALUE, FSMField, transition

from common.fsm import Frozen, ProtectedStateMixin, StateTrigger
from common.sealed import SealedBytes, SealedJson, SealedRow, SealedText
from common.tenancy import SameTenant, TenantRow, tenant_key
from workflows.enums import Lane, OnExpiry, RunKind, RunStatus, StepKind, StepStatus, WaitingFor

R, T = RunStatus, StepStatus
_LIVE_RUN = [status for status in R if status not in R.final_states]


class Definition(models.Model):
    """The newest registered version of a workflow, an operation or a policy, and the hash of its content.

    Not a tenant's row: it describes the installed code. The row is the *shared scope lock* of section 6: the
    transaction that commits ``sent`` holds it ``FOR SHARE``, registering a newer version takes it exclusively.
    """

    kind = models.CharField(max_length=20)
    name = models.CharField(max_length=60)
    version = models.PositiveIntegerField()
    content_hash = models.CharField(max_length=64)
    registered_at = models.DateTimeField()
    is_current = models.BooleanField(default=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="workflows_definition_bound",
                fields=["kind", "name", "version", "content_hash", "registered_at"],
            )
        ]
        constraints = [
            models.UniqueConstraint(fields=["kind", "name", "version"], name="workflows_definition_version"),
            models.UniqueConstraint(
                fields=["kind", "name"], condition=Q(is_current=True), name="workflows_definition_one_current"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}@{self.version}"


class Document(SealedRow, TenantRow):
    """Protected storage: inputs and results, reached by reference only and never quoted in envelopes or logs."""

    run_id = models.UUIDField()
    kind = models.CharField(max_length=40)
    content = SealedBytes()
    digest = models.CharField(max_length=80)
    """Keyed HMAC of the content: comparable, not guessable."""
    created_at = models.DateTimeField()

    class Meta:
        triggers: ClassVar = [
            Frozen(name="workflows_document_frozen", fields=["tenant", "run_id", "kind", "content", "digest"])
        ]
        constraints = [tenant_key("workflows_document_tenant_id")]
        indexes = [models.Index(fields=["tenant", "run_id"], name="workflows_document_run")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.run_id}"


class Run(SealedRow, ProtectedStateMixin, TenantRow):
    """One automation case, from its source event to an outcome in the user's own terms."""

    content_run = "pk"
    kind = models.CharField(max_length=10, choices=RunKind.choices, default=RunKind.ORIGINAL)
    original = models.ForeignKey("self", null=True, on_delete=models.PROTECT, db_constraint=False)
    """Of a replay, a compensation or a remainder: the run whose identity, keys and counts hold."""
    workflow = models.CharField(max_length=60)
    workflow_version = models.PositiveIntegerField()
    stage = models.CharField(max_length=10, default="approve")
    lane = models.CharField(max_length=10, choices=Lane.choices, default=Lane.NEW)
    requested_by = models.CharField(max_length=200)
    requested_through = models.CharField(max_length=80, null=True)
    """Which token, session or endpoint that came through: what workers propose in it is of that one."""
    on_behalf_of = models.CharField(max_length=200, blank=True)
    excluded_users = models.JSONField(default=list)
    """Ids of the people behind the requester; they never decide on what comes of it."""
    source_system = models.CharField(max_length=60)
    source_event_id = models.CharField(max_length=200)
    source_record = models.CharField(max_length=200, blank=True)
    source_sequence = models.BigIntegerField(null=True)
    request_ids = models.JSONField(default=list)
    input_ref = models.UUIDField()
    input_hash = models.CharField(max_length=80)
    callback = models.CharField(max_length=500, blank=True)
    confidence = models.DecimalField(max_digits=4, decimal_places=3, null=True)
    versions = models.JSONField(default=dict)

    status = FSMField(choices=R.choices, default=R.QUEUED, protected=True)
    outcome = models.CharField(max_length=40, blank=True)
    corrected_outcome = models.CharField(max_length=40, blank=True)
    correction_reason = SealedText(blank=True, default="")
    user_message = SealedText(blank=True, default="")
    failure_code = models.CharField(max_length=60, blank=True)
    may_submit_new = models.BooleanField(default=False)
    wait_id = models.UUIDField(null=True)
    waiting_until = models.DateTimeField(null=True)
    on_expiry = models.CharField(max_length=20, choices=OnExpiry.choices, blank=True)
    cancel_requested_at = models.DateTimeField(null=True)
    cancel_reason = SealedText(blank=True, default="")
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    state_version = models.PositiveIntegerField(default=1)

    class Meta:
        triggers: ClassVar = [
            StateTrigger(name="workflows_run_moves", initial=[R.QUEUED]),
            Frozen(
                name="workflows_run_bound",
                fields=[
                    "tenant", "kind", "original", "workflow", "workflow_version", "stage", "requested_by",
                    "requested_through", "on_behalf_of", "excluded_users", "source_system",
                    "source_event_id", "source_record", "source_sequence", "input_ref", "input_hash", "callback",
                    "created_at",
                ],
                once=["started_at", "finished_at"],
            ),
        ]  # fmt: skip
        constraints = [
            tenant_key("workflows_run_tenant_id"),
            SameTenant(field="original", name="workflows_run_original_tenant"),
            models.CheckConstraint(condition=Q(status__in=R.values), name="workflows_run_status_known"),
            models.CheckConstraint(
                # A silent queue cannot exist: what waits says until when, and what happens then.
                condition=Q(status__in=R.unclocked_states)
                | (Q(wait_id__isnull=False, waiting_until__isnull=False) & Q(on_expiry__in=OnExpiry.values)),
                name="workflows_run_waits_with_a_clock",
            ),
            models.CheckConstraint(
                condition=Q(status__in=R.final_states, finished_at__isnull=False)
                | (~Q(status__in=R.final_states) & Q(finished_at__isnull=True)),
                name="workflows_run_finished_once_final",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=R.final_states) | ~Q(outcome=""),
                name="workflows_run_final_has_outcome",
            ),
            models.CheckConstraint(
                condition=Q(kind=RunKind.ORIGINAL, original__isnull=True)
                | Q(kind__in=(RunKind.REPLAY, *RunKind.follow_ups), original__isnull=False),
                name="workflows_run_replay_names_its_original",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="workflows_run_newest"),
            models.Index(fields=["tenant", "status", "-created_at"], name="workflows_run_by_status"),
            # Of a workflow with few runs among many: newest first would be looked through for them.
            models.Index(
                fields=["tenant", "workflow", "-created_at", "-id"], name="workflows_run_by_workflow"
            ),
            models.Index(
                fields=["waiting_until"], condition=Q(waiting_until__isnull=False), name="workflows_run_due"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workflow} {self.id} ({self.status})"

    @property
    def identity(self) -> UUID:
        """The run whose keys and counts hold: of a replay, its original."""
        return self.original_id or self.id

    @property
    def is_follow_up(self) -> bool:
        """Whether a person proposed it after an effect of another run."""
        return self.kind in RunKind.follow_ups

    @transition(
        field=status, source=_LIVE_RUN, target=RETURN_VALUE(*(status for status in R if status != R.QUEUED))
    )
    def settle(self, status: RunStatus) -> RunStatus:
        """Take the status that `workflows.status.run_status` computed.

        It follows the steps and commands, so from any live status every other is one move away. Final is final:
        what happens later is a correction beside the outcome, or a run of its own.
        """
        return status


class Step(SealedRow, ProtectedStateMixin, TenantRow):
    """One logical action of a run, unique per run and key: it is done once, whatever is killed or repeated.

    A step that is due has ``due_at``; a running one has a lease and a fencing token, as commands have.
    """

    run = models.ForeignKey(Run, on_delete=models.PROTECT, db_constraint=False, related_name="steps")
    key = models.CharField(max_length=60)
    position = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=20, choices=StepKind.choices)
    lane = models.CharField(max_length=10, choices=Lane.choices, default=Lane.NEW)
    status = FSMField(choices=T.choices, default=T.PENDING, protected=True)
    waiting_for = models.CharField(max_length=10, choices=WaitingFor.choices, blank=True)
    wait_id = models.UUIDField(null=True)
    waiting_until = models.DateTimeField(null=True)
    on_expiry = models.CharField(max_length=20, choices=OnExpiry.choices, blank=True)
    asks = SealedJson(null=True)
    """What a step that waits for data asks for: ``{question, schema}``."""
    due_at = models.DateTimeField(null=True)
    attempt = models.PositiveSmallIntegerField(default=0)
    first_tried_at = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    lost_leases = models.PositiveSmallIntegerField(default=0)
    """Tries in a row whose worker was gone before it stored anything."""
    proposal_id = models.UUIDField(null=True)
    generation = models.PositiveSmallIntegerField(default=0)
    """Of a side effect: how many idempotency keys this logical action has had. Grows by the rule of section 5."""
    input_hash = models.CharField(max_length=80, blank=True)
    result_ref = models.UUIDField(null=True)
    confidence = models.DecimalField(max_digits=4, decimal_places=3, null=True)
    failure_code = models.CharField(max_length=60, blank=True)
    notes = models.JSONField(default=list)
    """Codes and references only: refused suggestions, dropped late results, queries made."""
    usage = models.JSONField(default=dict)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [
            StateTrigger(name="workflows_step_moves", initial=[T.PENDING]),
            Frozen(
                name="workflows_step_bound",
                fields=["tenant", "run", "key", "position", "kind"],
                once=["started_at", "finished_at"],
            ),
        ]
        constraints = [
            tenant_key("workflows_step_tenant_id"),
            SameTenant(field="run", name="workflows_step_run_tenant"),
            models.UniqueConstraint(fields=["run", "key"], name="workflows_step_once"),
            models.UniqueConstraint(fields=["run", "position"], name="workflows_step_position"),
            models.CheckConstraint(condition=Q(status__in=T.values), name="workflows_step_status_known"),
            models.CheckConstraint(
                condition=(
                    Q(status=T.WAITING, wait_id__isnull=False, waiting_until__isnull=False)
                    & Q(waiting_for__in=WaitingFor.values, on_expiry__in=OnExpiry.values)
                )
                | (
                    ~Q(status=T.WAITING) & Q(waiting_for="", wait_id__isnull=True, waiting_until__isnull=True)
                ),
                name="workflows_step_waits_for_something_with_a_clock",
            ),
            models.CheckConstraint(
                condition=Q(status=T.RUNNING, lease_token__isnull=False, lease_until__isnull=False)
                | (~Q(status=T.RUNNING) & Q(lease_token__isnull=True, lease_until__isnull=True)),
                name="workflows_step_running_has_a_lease",
            ),
            models.CheckConstraint(
                condition=Q(status__in=T.final_states, finished_at__isnull=False)
                | (~Q(status__in=T.final_states) & Q(finished_at__isnull=True)),
                name="workflows_step_finished_once_final",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lane", "due_at", "id"], condition=Q(due_at__isnull=False), name="workflows_step_due"
            ),
            models.Index(fields=["lease_until"], condition=Q(status="running"), name="workflows_step_leased"),
            models.Index(
                fields=["waiting_until"], condition=Q(status="waiting"), name="workflows_step_waiting"
            ),
        ]
        ordering = ["run_id", "position"]

    def __str__(self) -> str:
        return f"{self.key} of {self.run_id} ({self.status})"

    # -- transitions ------------------------------------------------------------------------------------------

    @transition(field=status, source=[T.PENDING, T.WAITING], target=T.RUNNING)
    def start(self, *, at: datetime, token: UUID, lease_until: datetime) -> None:
        self._clear_wait()
        self.started_at, self.first_tried_at = self.started_at or at, self.first_tried_at or at
        self.attempt += 1
        self.due_at, self.lease_token, self.lease_until = None, token, lease_until

    @transition(field=status, source=T.RUNNING, target=T.PENDING)
    def release(self, *, at: datetime) -> None:
        """The lease was over and nothing was stored: due again at once."""
        self._clear_lease()
        self.due_at = at

    @transition(field=status, source=T.WAITING, target=T.PENDING)
    def resume(self, *, at: datetime) -> None:
        """What it waited for is there: the stage runs again, with its tries counted anew."""
        self._clear_wait()
        self.due_at, self.attempt, self.first_tried_at = at, 0, None

    @transition(field=status, source=[T.PENDING, T.RUNNING, T.WAITING], target=T.WAITING)
    def wait(
        self,
        *,
        for_: WaitingFor,
        wait_id: UUID,
        until: datetime,
        on_expiry: OnExpiry,
        due_at: datetime | None = None,
    ) -> None:
        self._clear_lease()
        self.waiting_for, self.wait_id, self.waiting_until, self.on_expiry = for_, wait_id, until, on_expiry
        self.due_at = due_at

    @transition(field=status, source=[T.PENDING, T.RUNNING, T.WAITING], target=T.COMPLETED)
    def complete(self, *, at: datetime, result_ref: UUID | None) -> None:
        self._finish(at)
        self.result_ref = result_ref or self.result_ref

    @transition(field=status, source=[T.PENDING, T.RUNNING, T.WAITING], target=T.FAILED)
    def fail(self, *, at: datetime, code: str) -> None:
        self._finish(at)
        self.failure_code = code

    @transition(field=status, source=[T.PENDING, T.WAITING], target=T.SKIPPED)
    def skip(self, *, at: datetime) -> None:
        self._finish(at)

    @transition(field=status, source=[T.PENDING, T.RUNNING, T.WAITING], target=T.CANCELLED)
    def cancel(self, *, at: datetime) -> None:
        self._finish(at)

    def _clear_wait(self) -> None:
        self.waiting_for, self.wait_id, self.waiting_until, self.on_expiry, self.asks = (
            "",
            None,
            None,
            "",
            None,
        )

    def _clear_lease(self) -> None:
        self.lease_token, self.lease_until = None, None

    def _finish(self, at: datetime) -> None:
        self._clear_wait()
        self._clear_lease()
        self.due_at, self.finished_at = None, at


class SourceEvent(TenantRow):
    """The identity of a run: one event of one outside system leads to one run, however often it is delivered."""

    workflow = models.CharField(max_length=60)
    system = models.CharField(max_length=60)
    event_id = models.CharField(max_length=200)
    key = models.CharField(max_length=100, blank=True)
    """Tells the proposals of one event apart; empty for runs."""
    record = models.CharField(max_length=200, blank=True)
    sequence = models.BigIntegerField(null=True)
    input_hash = models.CharField(max_length=80)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, db_constraint=False, related_name="source_events")
    proposal_id = models.UUIDField(null=True)
    """Of an outside proposal: the version that this very request made."""
    duplicates = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="workflows_sourceevent_bound",
                fields=[
                    "tenant", "workflow", "system", "event_id", "key", "record", "sequence", "input_hash", "run",
                ],
            )
        ]  # fmt: skip
        constraints = [
            SameTenant(field="run", name="workflows_sourceevent_run_tenant"),
            models.UniqueConstraint(
                fields=["tenant", "workflow", "system", "event_id", "key"], name="workflows_sourceevent_once"
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "workflow", "system", "record", "-sequence"], condition=~Q(record=""),
                name="workflows_sourceevent_record",
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.system}:{self.event_id}"
