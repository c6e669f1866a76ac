"""Execution: the durable outbox."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from approvals.enums import Mode
from approvals.models import Proposal
from common.fsm import Frozen, ProtectedStateMixin, StateTrigger
from common.tenancy import SameTenant, TenantRow, tenant_key
from workflows.enums import (
    CommandStatus,
    Effect,
    HoldReason,
    Lane,
    SettledBy,
    VoidReason,
)
from workflows.models.holds import Hold
from workflows.models.runs import Run, Step

C = CommandStatus
_STOPPABLE = [C.READY, C.CLAIMED, C.RETRY_WAIT, C.HELD]


def _not_resent(command: Any) -> bool:
    """A negative answer to a second send with the same key says nothing about the first."""
    return not command.resent


def _not_resent_or_settled(command: Any) -> bool:
    """From *unknown*, whoever moves it has settled that none of the requests took effect."""
    return bool(command.status == C.UNKNOWN or not command.resent)


class Command(ProtectedStateMixin, TenantRow):
    """The order to execute one approved live proposal, written by the deciding transaction.

    A message in the broker is a hint; this row is the truth. ``lease_token`` is the fencing token: a worker whose
    token is not the row's changes nothing.
    """

    proposal = models.OneToOneField(
        Proposal, on_delete=models.PROTECT, db_constraint=False, related_name="command"
    )
    mode = models.CharField(max_length=10, default=Mode.LIVE)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, db_constraint=False, related_name="commands")
    step = models.ForeignKey(Step, on_delete=models.PROTECT, db_constraint=False, related_name="commands")
    operation = models.CharField(max_length=60)
    operation_version = models.PositiveIntegerField()
    provider = models.CharField(max_length=60)
    target = models.CharField(max_length=200)
    business_key = models.CharField(max_length=80)
    idempotency_key = models.CharField(max_length=64)
    lane = models.CharField(max_length=10, choices=Lane.choices, default=Lane.NEW)

    status = FSMField(choices=C.choices, default=C.READY, protected=True)
    due_at = models.DateTimeField(null=True)
    """When a worker, or for *unknown* the reconciler, should look at it."""
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    claims = models.PositiveSmallIntegerField(default=0)
    tries = models.PositiveSmallIntegerField(default=0)
    """Requests that may have reached the provider."""
    resent = models.BooleanField(default=False)
    """Sent again with the same key while an earlier request may have taken effect: only *yes* settles it."""
    lookups = models.PositiveSmallIntegerField(default=0)
    first_sent_at = models.DateTimeField(null=True)
    last_sent_at = models.DateTimeField(null=True)
    hold_reason = models.CharField(max_length=10, choices=HoldReason.choices, blank=True)
    hold = models.ForeignKey(Hold, null=True, on_delete=models.PROTECT, related_name="commands")
    """What holds it, where that is a freeze or an open circuit."""
    restored = models.BooleanField(default=False)
    """In doubt because a backup was restored: what was done after the backup, its rows do not know."""
    void_reason = models.CharField(max_length=12, choices=VoidReason.choices, blank=True)
    effect = models.CharField(max_length=10, choices=Effect.choices, default=Effect.NONE)
    settled_by = models.CharField(max_length=20, choices=SettledBy.choices, blank=True)
    provider_reference = models.CharField(max_length=200, blank=True)
    failure_code = models.CharField(max_length=60, blank=True)
    result_ref = models.UUIDField(null=True)
    used_attempt_id = models.UUIDField(null=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    state_version = models.PositiveIntegerField(default=1)

    class Meta:
        triggers: ClassVar = [
            StateTrigger(name="workflows_command_moves", initial=[C.READY]),
            Frozen(
                name="workflows_command_bound",
                fields=[
                    "tenant", "proposal", "mode", "run", "step", "operation", "operation_version", "provider",
                    "target", "business_key", "idempotency_key", "created_at",
                ],
                once=["first_sent_at", "ended_at"],
            ),
        ]  # fmt: skip
        constraints = [
            tenant_key("workflows_command_tenant_id"),
            SameTenant(field="proposal", also=["mode"], name="workflows_command_of_a_live_proposal"),
            SameTenant(field="run", name="workflows_command_run_tenant"),
            SameTenant(field="step", name="workflows_command_step_tenant"),
            models.CheckConstraint(condition=Q(mode=Mode.LIVE), name="workflows_command_only_live"),
            models.CheckConstraint(condition=Q(status__in=C.values), name="workflows_command_status_known"),
            # How a command ends (design, section 4).
            models.CheckConstraint(
                condition=~Q(status=C.CONFIRMED)
                | (Q(effect__in=(Effect.HAPPENED, Effect.PARTIAL)) & ~Q(settled_by="")),
                name="workflows_command_confirmed_happened",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=(C.REFUSED, C.DEAD, C.VOID)) | Q(effect=Effect.NONE),
                name="workflows_command_refused_dead_void_have_no_effect",
            ),
            models.CheckConstraint(
                condition=~Q(status=C.CANCELLED) | Q(effect=Effect.NONE) | Q(settled_by=SettledBy.PERSON),
                name="workflows_command_cancelled_with_effect_only_by_a_person",
            ),
            models.CheckConstraint(
                condition=Q(status__in=(C.SENT, C.UNKNOWN), effect=Effect.UNKNOWN)
                | (~Q(status__in=(C.SENT, C.UNKNOWN)) & ~Q(effect=Effect.UNKNOWN)),
                name="workflows_command_not_known_is_called_unknown",
            ),
            models.CheckConstraint(
                condition=(Q(status=C.VOID) & ~Q(void_reason="")) | (~Q(status=C.VOID) & Q(void_reason="")),
                name="workflows_command_void_says_why",
            ),
            models.CheckConstraint(
                condition=(Q(status=C.HELD) & ~Q(hold_reason="")) | (~Q(status=C.HELD) & Q(hold_reason="")),
                name="workflows_command_held_says_why",
            ),
            models.CheckConstraint(
                # A silent hold cannot exist: whatever holds it is a row that people see and can lift.
                condition=Q(hold_reason__in=(HoldReason.FREEZE, HoldReason.CIRCUIT), hold__isnull=False)
                | (~Q(hold_reason__in=(HoldReason.FREEZE, HoldReason.CIRCUIT)) & Q(hold__isnull=True)),
                name="workflows_command_held_names_the_hold",
            ),
            models.CheckConstraint(
                condition=Q(restored=False) | Q(status=C.UNKNOWN), name="workflows_command_restored_is_in_doubt"
            ),
            models.CheckConstraint(
                condition=Q(status__in=(C.CLAIMED, C.SENT), lease_token__isnull=False, lease_until__isnull=False)
                | (~Q(status__in=(C.CLAIMED, C.SENT)) & Q(lease_token__isnull=True, lease_until__isnull=True)),
                name="workflows_command_worked_on_has_a_lease",
            ),
            models.CheckConstraint(
                # A silent queue cannot exist: workers look for what is due. A hold ends with its freeze or circuit.
                condition=~Q(status__in=(C.READY, C.RETRY_WAIT, C.UNKNOWN)) | Q(due_at__isnull=False),
                name="workflows_command_waits_with_a_clock",
            ),
            models.CheckConstraint(
                condition=Q(resent=False) | Q(status__in=(C.SENT, C.UNKNOWN)),
                name="workflows_command_resent_is_in_doubt",
            ),
            models.CheckConstraint(
                condition=Q(status__in=C.final_states, ended_at__isnull=False)
                | (~Q(status__in=C.final_states) & Q(ended_at__isnull=True)),
                name="workflows_command_ended_once_final",
            ),
            models.UniqueConstraint(
                fields=["tenant", "business_key"], condition=Q(status__in=C.live_states),
                name="workflows_command_one_live_per_business_key",
            ),
            models.UniqueConstraint(
                fields=["tenant", "idempotency_key"], condition=Q(status__in=C.key_holding_states),
                name="workflows_command_one_per_key",
            ),
            models.UniqueConstraint(
                # Not among those that are in doubt only since a backup was restored: of a target, several may be.
                fields=["tenant", "provider", "target"],
                condition=Q(status__in=(C.CLAIMED, C.SENT, C.UNKNOWN), restored=False),
                name="workflows_command_one_in_flight_per_target",
            ),
        ]  # fmt: skip
        indexes = [
            models.Index(
                # Each version has a queue of its own: what no worker here knows stands before nobody.
                fields=["lane", "operation", "operation_version", "due_at", "id"],
                condition=Q(status__in=(C.READY, C.RETRY_WAIT)),
                name="workflows_command_claimable",
            ),
            models.Index(
                fields=["lease_until"], condition=Q(status__in=(C.CLAIMED, C.SENT)), name="workflows_command_leased"
            ),
            models.Index(fields=["due_at"], condition=Q(status=C.UNKNOWN), name="workflows_command_unknown"),
            models.Index(fields=["hold", "created_at"], condition=Q(status=C.HELD), name="workflows_command_held"),
            models.Index(
                fields=["tenant", "provider", "target"], condition=Q(restored=True), name="workflows_command_restored"
            ),
            models.Index(
                fields=["tenant", "provider", "target"], condition=Q(effect__in=(Effect.HAPPENED, Effect.PARTIAL)),
                name="workflows_command_effects",
            ),
            models.Index(fields=["tenant", "business_key"], name="workflows_command_business"),
            models.Index(fields=["tenant", "run"], name="workflows_command_run"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.operation} on {self.target} ({self.status})"

    # -- transitions ------------------------------------------------------------------------------------------

    @transition(field=status, source=[C.READY, C.RETRY_WAIT], target=C.CLAIMED)
    def claim(self, *, token: UUID, lease_until: datetime) -> None:
        self.claims += 1
        self.lease_token, self.lease_until, self.due_at = token, lease_until, None

    @transition(field=status, source=C.CLAIMED, target=C.SENT)
    def send(self, *, at: datetime, lease_until: datetime) -> None:
        self.tries += 1
        self.first_sent_at, self.last_sent_at, self.lease_until = self.first_sent_at or at, at, lease_until
        self.effect = Effect.UNKNOWN

    @transition(field=status, source=C.UNKNOWN, target=C.SENT)
    def send_again(self, *, at: datetime, token: UUID, lease_until: datetime) -> None:
        """The same key once more, where provider and operation allow it. What is not known stays not known."""
        self.resent, self.restored = True, False
        self.tries += 1
        self.claims += 1
        self.last_sent_at, self.due_at = at, None
        self.lease_token, self.lease_until = token, lease_until

    @transition(
        field=status,
        source=[C.CLAIMED, C.SENT, C.UNKNOWN, C.HELD],
        target=C.READY,
        conditions=[_not_resent_or_settled],
    )
    def free(self, *, due_at: datetime) -> None:
        """Nothing was sent, or it is settled that nothing happened: a worker may take it again."""
        self._clear()
        self.due_at = due_at

    @transition(field=status, source=[C.CLAIMED, C.SENT], target=C.RETRY_WAIT, conditions=[_not_resent])
    def retry_later(self, *, due_at: datetime, code: str) -> None:
        self._clear()
        self.due_at, self.failure_code = due_at, code

    @transition(field=status, source=[C.READY, C.CLAIMED, C.RETRY_WAIT, C.UNKNOWN], target=C.HELD)
    def hold_back(self, *, reason: HoldReason, hold: Hold | None = None) -> None:
        self._clear()
        self.hold_reason, self.hold, self.due_at = reason, hold, None

    @transition(field=status, source=C.SENT, target=C.UNKNOWN)
    def lose_track(self, *, due_at: datetime, code: str) -> None:
        """A request went out and no complete answer came: nobody knows, and so it is called."""
        self.lease_token, self.lease_until = None, None
        self.due_at, self.failure_code = due_at, code

    @transition(field=status, source=[*_STOPPABLE, C.SENT], target=C.UNKNOWN)
    def doubt(self, *, at: datetime, code: str, restored: bool = False) -> None:
        """What was thought settled is not: a late answer says otherwise, or a backup was ``restored``, and its rows do
        not know what was sent after it was made.
        """
        resent = self.resent
        self._clear()
        self.effect, self.restored, self.resent = Effect.UNKNOWN, restored, resent
        self.due_at, self.failure_code = at, code
        if restored:
            # The earliest it can have been first sent, and the latest it can have been last sent.
            self.first_sent_at, self.last_sent_at = self.first_sent_at or self.created_at, at

    @transition(field=status, source=[C.SENT, C.UNKNOWN], target=C.CONFIRMED)
    def confirm(
        self, *, at: datetime, by: SettledBy, reference: str, effect: Effect = Effect.HAPPENED
    ) -> None:
        self._end(at, effect, by)
        self.provider_reference, self.failure_code = reference[:200], ""

    @transition(field=status, source=[C.SENT, C.UNKNOWN], target=C.REFUSED, conditions=[_not_resent])
    def refuse(self, *, at: datetime, code: str, by: SettledBy = SettledBy.ANSWER) -> None:
        """From *unknown* it is the late answer of the only request that was made."""
        self._end(at, Effect.NONE, by)
        self.failure_code = code

    @transition(field=status, source=[*_STOPPABLE, C.SENT], target=C.DEAD, conditions=[_not_resent])
    def give_up(self, *, at: datetime, by: SettledBy, code: str) -> None:
        self._end(at, Effect.NONE, by)
        self.failure_code = code

    @transition(field=status, source=[*_STOPPABLE, C.UNKNOWN], target=C.CANCELLED)
    def cancel(self, *, at: datetime, by: SettledBy, effect: Effect = Effect.NONE) -> None:
        self._end(at, effect, by)

    @transition(field=status, source=[*_STOPPABLE, C.UNKNOWN], target=C.VOID)
    def make_void(self, *, at: datetime, reason: VoidReason, by: SettledBy = SettledBy.CHECK) -> None:
        self._end(at, Effect.NONE, by)
        self.void_reason = reason

    def _clear(self) -> None:
        self.lease_token, self.lease_until, self.effect = None, None, Effect.NONE
        self.hold_reason, self.hold = "", None
        self.resent, self.restored = False, False

    def _end(self, at: datetime, effect: Effect, by: SettledBy) -> None:
        self._clear()
        self.due_at, self.ended_at, self.effect, self.settled_by = None, at, effect, by
