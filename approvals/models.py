"""Rows of asking people: the proposal with its bound bytes, its evidence, and the decisions."""

from datetime import datetime
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django_fsm import FSMField, transition

from access.models import Group, User
from approvals.enums import DecisionKind, Mode, ProposalStatus, ReasonCode
from common.fields import DataClass
from common.fsm import Frozen, ProtectedStateMixin, StateTrigger
from common.tenancy import SameTenant, TenantRow, tenant_key

S = ProposalStatus
BOUND = (
    "tenant", "run_id", "step", "generation", "version", "workflow", "workflow_version", "operation",
    "operation_version",
    "mode", "target", "contract", "digest", "material_digest", "business_key", "idempotency_key", "view",
    "view_digest", "volatile", "policy", "needed", "group", "proposed_by", "excluded_users", "decide_by",
    "execute_within_s", "supersedes", "created_at",
)  # fmt: skip


class Proposal(ProtectedStateMixin, TenantRow):
    """One normalized action that somebody is asked about, with the exact bytes that an approval binds to.

    ``contract`` and ``view`` are stored, hashed, shown and sent as the same bytes (design, section 5). What it
    belongs to (run, step, workflow, operation) stands here as plain words: this app knows nothing of workflows.
    """

    run_id = models.UUIDField()
    step = models.CharField(max_length=60)
    generation = models.PositiveSmallIntegerField(default=1)
    version = models.PositiveSmallIntegerField(default=1)
    workflow = models.CharField(max_length=60)
    workflow_version = models.PositiveIntegerField()
    operation = models.CharField(max_length=60)
    operation_version = models.PositiveIntegerField()
    mode = models.CharField(max_length=10, choices=Mode.choices, default=Mode.LIVE)
    target = models.CharField(max_length=200)

    contract = models.BinaryField()
    digest = models.CharField(max_length=64)
    material_digest = models.CharField(max_length=80)
    business_key = models.CharField(max_length=80)
    idempotency_key = models.CharField(max_length=64)
    view = models.BinaryField()
    view_digest = models.CharField(max_length=64)
    volatile = models.BinaryField(default=b"{}")

    policy = models.JSONField()
    """Snapshot of the verdict: ``{version, rule, verdict, because, tests: [{label, ok, says}]}``."""
    needed = models.PositiveSmallIntegerField()
    group = models.ForeignKey(Group, null=True, on_delete=models.PROTECT, db_constraint=False)
    proposed_by = models.CharField(max_length=200)
    excluded_users = ArrayField(models.UUIDField(), default=list)
    """People who may not decide: the proposer, and whom the proposer acts for."""
    consequence = models.TextField()
    summary = models.CharField(max_length=200)
    reason = models.TextField(blank=True)
    affected = models.JSONField(default=list)
    """``[{record, field, before, after}]``, made by the operation's code."""
    risk = models.PositiveSmallIntegerField(default=1)
    warning_count = models.PositiveSmallIntegerField(default=0)

    status = FSMField(choices=S.choices, default=S.PENDING, protected=True)
    decide_by = models.DateTimeField()
    execute_within_s = models.PositiveIntegerField()
    execute_by = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    end_reason = models.CharField(max_length=500, blank=True)
    supersedes = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, db_constraint=False, related_name="successors"
    )
    state_version = models.PositiveIntegerField(default=1)
    wait_id = models.UUIDField()

    class Meta:
        triggers: ClassVar = [
            StateTrigger(name="approvals_proposal_moves", initial=[S.PENDING]),
            Frozen(
                name="approvals_proposal_bound", fields=BOUND, once=["decided_at", "execute_by", "ended_at"]
            ),
        ]
        constraints = [
            tenant_key("approvals_proposal_tenant_id"),
            models.UniqueConstraint(
                fields=["tenant", "id", "mode"], name="approvals_proposal_tenant_id_mode"
            ),
            SameTenant(field="group", name="approvals_proposal_group_tenant"),
            SameTenant(field="supersedes", name="approvals_proposal_supersedes_tenant"),
            models.CheckConstraint(condition=Q(status__in=S.values), name="approvals_proposal_status_known"),
            models.CheckConstraint(condition=Q(mode__in=Mode.values), name="approvals_proposal_mode_known"),
            models.CheckConstraint(
                condition=Q(needed__gte=0, needed__lte=2) & (Q(needed__gte=1) | Q(policy__verdict="auto")),
                name="approvals_proposal_quorum",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=(S.APPROVED, S.CONSUMED, S.LAPSED))
                | Q(decided_at__isnull=False, execute_by__isnull=False, decided_at__lt=F("decide_by")),
                name="approvals_proposal_approved_in_time",
            ),
            models.CheckConstraint(
                condition=Q(status__in=(S.PENDING, S.APPROVED, S.CHANGES_REQUESTED), ended_at__isnull=True)
                | (~Q(status__in=(S.PENDING, S.APPROVED, S.CHANGES_REQUESTED)) & Q(ended_at__isnull=False)),
                name="approvals_proposal_ended_once_final",
            ),
            models.UniqueConstraint(
                fields=["supersedes"],
                condition=Q(supersedes__isnull=False),
                name="approvals_proposal_one_successor",
            ),
            models.UniqueConstraint(
                fields=["tenant", "run_id", "step"],
                condition=Q(status__in=(S.PENDING, S.APPROVED, S.CHANGES_REQUESTED)),
                name="approvals_proposal_one_live_per_step",
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "decide_by", "id"], condition=Q(status="pending"), name="approvals_proposal_queue"
            ),
            models.Index(
                fields=["decide_by"], condition=Q(status__in=("pending", "changes_requested")),
                name="approvals_proposal_due",
            ),
            models.Index(fields=["tenant", "-created_at", "-id"], name="approvals_proposal_newest"),
            models.Index(fields=["tenant", "run_id"], name="approvals_proposal_run"),
            models.Index(
                fields=["tenant", "business_key"],
                condition=Q(status__in=(S.PENDING, S.APPROVED, S.CHANGES_REQUESTED)),
                name="approvals_proposal_same_thing",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.summary} ({self.status})"

    @property
    def is_live(self) -> bool:
        """Whether anything may still become of it. Where nothing is ever sent, *approved* is the end."""
        sends = self.status != S.APPROVED or self.mode == Mode.LIVE
        return self.status in S.live_states and sends

    # -- transitions: pure, they set this row's fields and nothing else ---------------------------------------

    @transition(field=status, source=S.PENDING, target=S.APPROVED)
    def approve(self, *, at: datetime, execute_by: datetime) -> None:
        self.decided_at, self.execute_by = at, execute_by

    @transition(field=status, source=S.PENDING, target=S.REJECTED)
    def reject(self, *, at: datetime, reason: str) -> None:
        self.decided_at = at
        self._end(at, reason)

    @transition(field=status, source=S.PENDING, target=S.CHANGES_REQUESTED)
    def request_changes(self, *, at: datetime, reason: str) -> None:
        self.decided_at, self.end_reason = at, reason[:500]

    @transition(field=status, source=[S.PENDING, S.CHANGES_REQUESTED], target=S.EXPIRED)
    def expire(self, *, at: datetime, reason: str) -> None:
        self._end(at, reason)

    @transition(field=status, source=[S.PENDING, S.APPROVED, S.CHANGES_REQUESTED], target=S.WITHDRAWN)
    def withdraw(self, *, at: datetime, reason: str) -> None:
        self._end(at, reason)

    @transition(field=status, source=[S.PENDING, S.APPROVED, S.CHANGES_REQUESTED], target=S.SUPERSEDED)
    def supersede(self, *, at: datetime, reason: str) -> None:
        self._end(at, reason)

    @transition(field=status, source=[S.PENDING, S.APPROVED], target=S.INVALIDATED)
    def invalidate(self, *, at: datetime, reason: str) -> None:
        self._end(at, reason)

    @transition(field=status, source=S.APPROVED, target=S.CONSUMED)
    def consume(self, *, at: datetime, reason: str) -> None:
        self._end(at, reason)

    @transition(field=status, source=S.APPROVED, target=S.LAPSED)
    def lapse(self, *, at: datetime, reason: str) -> None:
        self._end(at, reason)

    def _end(self, at: datetime, reason: str) -> None:
        self.ended_at, self.end_reason = at, reason[:500]


class Evidence(TenantRow):
    """One piece that the proposal rests on. Its digest is salted, so that erased content cannot be guessed."""

    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, db_constraint=False, related_name="evidence"
    )
    position = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=40)
    title = models.CharField(max_length=200)
    source = models.CharField(max_length=200, blank=True)
    ref = models.CharField(max_length=300, blank=True)
    content = models.BinaryField(null=True)
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


class Decision(TenantRow):
    """What one person, or one policy rule, said about exactly one pair of digests."""

    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, db_constraint=False, related_name="decisions"
    )
    kind = models.CharField(max_length=20, choices=DecisionKind.choices)
    user = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    role = models.CharField(max_length=20, blank=True)
    group = models.ForeignKey(
        Group, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    rule = models.CharField(max_length=80, blank=True)
    rule_version = models.PositiveIntegerField(null=True)
    digest = models.CharField(max_length=64)
    view_digest = models.CharField(max_length=64)
    parts_seen = ArrayField(models.CharField(max_length=80), default=list)
    acknowledged = ArrayField(models.CharField(max_length=120), default=list)
    reason_code = models.CharField(max_length=30, choices=ReasonCode.choices, blank=True)
    reason = models.TextField(blank=True)
    performed_by = models.CharField(max_length=200)
    via = models.CharField(max_length=20)
    at = models.DateTimeField()
    replaced_at = models.DateTimeField(null=True)
    """Set when the same person changed their mind before the proposal ended."""

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="approvals_decision_bound",
                fields=[
                    "tenant",
                    "proposal",
                    "kind",
                    "user",
                    "role",
                    "group",
                    "rule",
                    "rule_version",
                    "digest",
                    "view_digest",
                    "parts_seen",
                    "acknowledged",
                    "reason_code",
                    "reason",
                    "performed_by",
                    "via",
                    "at",
                ],
                once=["replaced_at"],
            )
        ]
        constraints = [
            tenant_key("approvals_decision_tenant_id"),
            SameTenant(field="proposal", name="approvals_decision_proposal_tenant"),
            SameTenant(field="group", name="approvals_decision_group_tenant"),
            models.CheckConstraint(
                condition=Q(kind__in=DecisionKind.values), name="approvals_decision_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(user__isnull=False, rule="", via="session")
                | (Q(user__isnull=True, rule_version__isnull=False, via="rule") & ~Q(rule="")),
                name="approvals_decision_by_a_person_or_a_rule",
            ),
            models.UniqueConstraint(
                fields=["proposal", "user"], condition=Q(replaced_at__isnull=True, user__isnull=False),
                name="approvals_decision_one_standing_vote",
            ),
        ]  # fmt: skip
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.kind} by {self.performed_by}"
