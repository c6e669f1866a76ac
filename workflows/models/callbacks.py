"""Whom a run calls back: registered destinations, their secrets, and the outbox of calls that are due."""

from datetime import datetime
from typing import ClassVar, Final

from django.db import models
from django.db.models import Q
from django_fsm import FSMField, transition

from common.fsm import Frozen, ProtectedStateMixin, StateTrigger
from common.sealing import seal, unseal
from common.signed_webhooks import key_of
from common.tenancy import SameTenant, TenantRow, tenant_key
from workflows.enums import CallStatus
from workflows.models.runs import Run

MOST_SECRETS: Final = 4
"""A call carries a signature for each secret that counts."""
TRIES_AT_A_TIME: Final = 16
"""So often a call is tried, over about a day, before it is given up."""


class CallbackEndpoint(TenantRow):
    """An address that an admin has registered. Runs are called back there and nowhere else."""

    name = models.SlugField(max_length=60)
    url = models.CharField(max_length=500)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    deactivated_at = models.DateTimeField(null=True)
    gone = models.BooleanField(default=False)
    """It ended because its receiver answered 410."""
    failures = models.PositiveIntegerField(default=0)
    """Calls in a row that failed."""
    paused_until = models.DateTimeField(null=True)
    """Its own due time: one that fails is left alone for a while, and takes nobody's turn."""
    last_called_at = models.DateTimeField(null=True)
    last_delivered_at = models.DateTimeField(null=True)
    last_failed_at = models.DateTimeField(null=True)
    last_problem = models.CharField(max_length=60, blank=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="workflows_callbackendpoint_bound",
                fields=["tenant", "name", "url", "created_by", "created_at"],
                once=["deactivated_at"],
            )
        ]
        constraints = [
            tenant_key("workflows_callbackendpoint_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "name"], name="workflows_callbackendpoint_name"),
            models.UniqueConstraint(
                fields=["tenant", "url"], condition=Q(deactivated_at=None), name="workflows_callbackendpoint_url"
            ),
            models.CheckConstraint(
                condition=Q(gone=False) | Q(deactivated_at__isnull=False),
                name="workflows_callbackendpoint_gone_is_over",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.name


class CallbackSecret(TenantRow):
    """A secret that calls are signed with, sealed. During a rotation there are two, and two signatures."""

    endpoint = models.ForeignKey(
        CallbackEndpoint, on_delete=models.PROTECT, db_constraint=False, related_name="secrets"
    )
    sealed = models.BinaryField(null=True)
    """Erased once it has ended."""
    created_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="workflows_callbacksecret_bound",
                fields=["tenant", "endpoint", "created_at"],
                erasable=["sealed"],
            )
        ]
        constraints = [
            SameTenant(field="endpoint", name="workflows_callbacksecret_endpoint_tenant"),
            models.CheckConstraint(
                condition=Q(sealed__isnull=False) | Q(ends_at__isnull=False),
                name="workflows_callbacksecret_erased_once_ended",
            ),
        ]
        indexes = [models.Index(fields=["endpoint"], name="workflows_callbacksecret_of")]

    def __str__(self) -> str:
        return f"secret of {self.endpoint_id}"

    def seal(self, secret: str) -> None:
        self.sealed = seal(f"callback-secret:{self.tenant_id}:{self.id}", secret.encode())

    def key(self) -> bytes:
        """The key's bytes, in memory only. Raises CannotOpen."""
        assert self.sealed is not None
        return key_of(unseal(f"callback-secret:{self.tenant_id}:{self.id}", self.sealed).decode())


class CallbackCall(ProtectedStateMixin, TenantRow):
    """One state of a run that its requester is to hear of. Its id is the ``webhook-id`` of every try.

    It holds no content: the body is made when it is sent. A run has one pending call at most, about its newest state.
    A while after its end the row goes; that it ended, and how, stays in the history.
    """

    endpoint = models.ForeignKey(
        CallbackEndpoint, on_delete=models.PROTECT, db_constraint=False, related_name="calls"
    )
    run = models.ForeignKey(Run, on_delete=models.PROTECT, db_constraint=False, related_name="+")
    state_version = models.PositiveIntegerField()
    run_status = models.CharField(max_length=30)
    created_at = models.DateTimeField()
    status = FSMField(max_length=20, choices=CallStatus.choices, default=CallStatus.PENDING, protected=True)
    due_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)
    """While a try is made: no other begins before this, also not of a newer state of the same run."""
    tries = models.PositiveSmallIntegerField(default=0)
    """Counted when a try begins, so that one that kills its worker counts too. Sending again goes on counting."""
    most_tries = models.PositiveSmallIntegerField(default=TRIES_AT_A_TIME)
    http_status = models.PositiveSmallIntegerField(null=True)
    """The receiver's last answer."""
    problem = models.CharField(max_length=60, blank=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [
            StateTrigger(name="workflows_callbackcall_moves", initial=[CallStatus.PENDING]),
            Frozen(
                name="workflows_callbackcall_bound",
                fields=["tenant", "endpoint", "run", "state_version", "run_status", "created_at"],
                kept_until="ended_at",
            ),
        ]
        constraints = [
            SameTenant(field="endpoint", name="workflows_callbackcall_endpoint_tenant"),
            SameTenant(field="run", name="workflows_callbackcall_run_tenant"),
            models.UniqueConstraint(fields=["run", "state_version"], name="workflows_callbackcall_once"),
            models.UniqueConstraint(
                fields=["run"], condition=Q(status=CallStatus.PENDING), name="workflows_callbackcall_newest_only"
            ),
            models.CheckConstraint(
                condition=Q(status=CallStatus.PENDING, due_at__isnull=False, ended_at__isnull=True)
                | Q(status__in=CallStatus.final_states, due_at__isnull=True, ended_at__isnull=False),
                name="workflows_callbackcall_is_due_or_has_ended",
            ),
        ]  # fmt: skip
        indexes = [
            models.Index(
                fields=["endpoint", "due_at", "id"], condition=Q(status=CallStatus.PENDING),
                name="workflows_callbackcall_due",
            ),
            models.Index(fields=["endpoint", "-created_at"], name="workflows_callbackcall_newest"),
            models.Index(
                fields=["ended_at"], condition=Q(ended_at__isnull=False), name="workflows_callbackcall_ended"
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"callback {self.id} ({self.status})"

    # -- transitions ------------------------------------------------------------------------------------------

    @transition(field=status, source=CallStatus.PENDING, target=CallStatus.DELIVERED)
    def deliver(self, *, at: datetime) -> None:
        self._end(at)

    @transition(field=status, source=CallStatus.PENDING, target=CallStatus.SUPERSEDED)
    def supersede(self, *, at: datetime) -> None:
        self._end(at)

    @transition(field=status, source=CallStatus.PENDING, target=CallStatus.DEAD)
    def give_up(self, *, at: datetime, problem: str) -> None:
        self._end(at)
        self.problem, self.claimed_until = problem, None

    @transition(field=status, source=CallStatus.DEAD, target=CallStatus.PENDING)
    def send_again(self, *, at: datetime) -> None:
        """The same call once more, with the same id, as often as one that is new."""
        self.due_at, self.ended_at, self.problem = at, None, ""
        self.most_tries = self.tries + TRIES_AT_A_TIME

    def _end(self, at: datetime) -> None:
        self.due_at, self.ended_at = None, at
