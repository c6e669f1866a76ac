"""The proposal: one normalized action, with the exact bytes that an approval binds to."""

from datetime import datetime
from decimal import Decimal
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django_fsm import FSMField, transition

from access.models import Group, User
from approvals.enums import Mode, ProposalStatus
from common.fsm import Frozen, ProtectedStateMixin, StateTrigger
from common.sealed import SealedBytes, SealedJson, SealedRow, SealedText
from common.tenancy import SameTenant, TenantRow, tenant_key

S = ProposalStatus
BOUND = (
    "tenant", "run_id", "step", "generation", "version", "workflow", "workflow_version", "operation",
    "operation_version",
    "mode", "target", "contract", "digest", "material_digest", "business_key", "idempotency_key", "view",
    "view_digest", "volatile", "policy", "needed", "group", "proposed_by", "proposed_through",
    "excluded_users", "decide_by", "execute_within_s", "supersedes", "edited_by", "created_at",
)  # fmt: skip

AMOUNT = Coalesce(
    "amount", Value(Decimal(-1)), output_field=models.DecimalField(max_digits=28, decimal_places=4)
)
"""The amount for an order of a list: what is not money comes behind all that is."""
URGENT_HOUR = models.Func(
    F("decide_by"), template="FLOOR(EXTRACT(epoch FROM (%(expressions)s AT TIME ZONE 'UTC')) / 3600)::integer",
    output_field=models.IntegerField(),
)  # fmt: skip
"""The hour in which the time to decide runs out, counted from 1970: what is urgent alike is of one hour."""
PENDING = Q(status__gte=S.PENDING.value, status__lte=S.PENDING.value)
"""*Pending*, said as only one index says it. Of several indexes of what is pending the planner thinks that to combine
them leaves a hundredth of it, and would rather read all the rows."""


class Proposal(SealedRow, ProtectedStateMixin, TenantRow):
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

    contract = SealedBytes()
    digest = models.CharField(max_length=64)
    material_digest = models.CharField(max_length=80)
    business_key = models.CharField(max_length=80)
    idempotency_key = models.CharField(max_length=64)
    view = SealedBytes()
    view_digest = models.CharField(max_length=64)
    volatile = SealedBytes(default=b"{}")

    policy = models.JSONField()
    """Snapshot of the verdict: ``{version, rule, verdict, because, tests: [{label, ok, says}]}``."""
    needed = models.PositiveSmallIntegerField()
    group = models.ForeignKey(Group, null=True, on_delete=models.PROTECT, db_constraint=False)
    proposed_by = models.CharField(max_length=200)
    proposed_through = models.CharField(max_length=80, null=True)
    """Which token, session or endpoint the proposer came through. Bound where it is known."""
    excluded_users = ArrayField(models.UUIDField(), default=list)
    """People who may not decide: the proposer, and whom the proposer acts for."""
    consequence = SealedText()
    summary = models.CharField(max_length=200)
    """For lists, mails and packets: made by the operation of arguments without their personal values."""
    reason = SealedText(blank=True)
    affected = SealedJson(default=list)
    """``[{record, field, before, after}]``, made by the operation's code."""
    risk = models.PositiveSmallIntegerField(default=1)
    warning_count = models.PositiveSmallIntegerField(default=0)
    amount = models.DecimalField(max_digits=28, decimal_places=4, null=True)
    """What the operation says is moved, for sorting and for the row of a list; null where it is not money."""
    amount_currency = models.CharField(max_length=3, blank=True, default="", db_default="")
    shape = models.CharField(max_length=80, blank=True, default="", db_default="")
    """Equal for proposals that are alike (`approvals.alike.shape_of`); empty for one that is alike to none."""

    status = FSMField(choices=S.choices, default=S.PENDING, protected=True)
    decide_by = models.DateTimeField()
    execute_within_s = models.PositiveIntegerField()
    execute_by = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    end_reason = models.CharField(max_length=500, blank=True)
    """A code, or a sentence of ours. What people said stands in their decisions, and in ``end_words``."""
    end_words = SealedText(blank=True, default="", db_default="")
    """Why the proposer took it back, in their own words."""
    supersedes = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, db_constraint=False, related_name="successors"
    )
    edited_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    """The reviewer who changed arguments of the version before, and so made this one."""
    also_groups = ArrayField(models.UUIDField(), default=list, db_default=RawSQL("'{}'::uuid[]", []))
    """Groups that it was widened to when time ran short. Not bound: nobody signs who else is asked."""
    also_roles = ArrayField(
        models.CharField(max_length=20), default=list, db_default=RawSQL("'{}'::varchar[]", [])
    )
    unmanned = models.CharField(max_length=300, blank=True, default="", db_default="")
    """Why too few people can decide before its time is over, as far as is known; empty where enough can."""
    roster = models.CharField(max_length=32, blank=True, default="", db_default="")
    """A hash of who was there when that was last counted: it is counted again once that has changed."""
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
            # The queue's other orders. What counts the queue reads the last one alone, and no row: see PENDING.
            models.Index(
                F("tenant"), URGENT_HOUR, F("risk").desc(), AMOUNT.desc(), F("decide_by"), F("id"),
                condition=Q(status="pending"), name="approvals_proposal_urgency",
            ),
            models.Index(
                F("tenant"), F("risk").desc(), F("decide_by"), F("id"),
                condition=Q(status="pending"), name="approvals_proposal_risk",
            ),
            models.Index(
                F("tenant"), AMOUNT.desc(), F("decide_by"), F("id"),
                condition=Q(status="pending"), name="approvals_proposal_amount",
            ),
            models.Index(
                fields=["tenant", "shape", "decide_by", "id"], condition=Q(status="pending"),
                name="approvals_proposal_alike",
            ),
            models.Index(
                fields=["tenant", "id"], condition=Q(status="pending"), include=["summary", "target", "digest"],
                name="approvals_proposal_words",
            ),
            models.Index(
                fields=["tenant", "created_at", "id"], condition=PENDING,
                include=[
                    "decide_by", "workflow", "operation", "risk", "needed", "group", "excluded_users", "also_groups",
                    "also_roles", "shape", "amount", "amount_currency",
                ],
                name="approvals_proposal_counted",
            ),
            models.Index(
                fields=["decide_by"], condition=Q(status__in=("pending", "changes_requested")),
                name="approvals_proposal_due",
            ),
            models.Index(fields=["tenant", "-created_at", "-id"], name="approvals_proposal_newest"),
            models.Index(fields=["tenant", "run_id"], name="approvals_proposal_run"),
            models.Index(fields=["tenant", "target"], name="approvals_proposal_target"),
            # What one token, session or endpoint proposed: docs/adr/0049.
            models.Index(
                fields=["tenant", "proposed_through", "-created_at", "-id"],
                condition=Q(proposed_through__gt=""), name="approvals_proposal_through",
            ),
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
