"""Where outside systems deliver webhooks: the endpoint, its secrets, and every delivery as it came."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from access.models import Agent
from common.fsm import Frozen
from common.sealing import seal, unseal
from common.signed_webhooks import key_of
from common.tenancy import SameTenant, TenantRow, tenant_key
from workflows.webhooks import Names, Scheme

OUTCOMES = ("accepted", "duplicate", "quarantined")


class Endpoint(TenantRow):
    """One unguessable address for one outside system, and the workflow that its events start."""

    name = models.SlugField(max_length=60)
    address = models.CharField(max_length=64, unique=True)
    """The last part of its URL: 256 random bits. It is no credential; the signature is."""
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, db_constraint=False, related_name="+")
    """The automation that asks for what is delivered here; its person never decides on it."""
    workflow = models.CharField(max_length=60)
    source_system = models.CharField(max_length=60)
    scheme = models.CharField(max_length=20, choices=Scheme.choices, default=Scheme.STANDARD)
    signature_header = models.CharField(max_length=60)
    timestamp_header = models.CharField(max_length=60)
    input_member = models.CharField(max_length=60, blank=True)
    """The member of the body that is the run's input, such as ``data``; empty: the whole body."""
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    deactivated_at = models.DateTimeField(null=True)
    last_received_at = models.DateTimeField(null=True)
    last_refused_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="workflows_endpoint_bound",
                fields=[
                    "tenant", "name", "address", "agent", "workflow", "source_system", "scheme", "signature_header",
                    "timestamp_header", "input_member", "created_by", "created_at",
                ],
                once=["deactivated_at"],
            )
        ]  # fmt: skip
        constraints = [
            tenant_key("workflows_endpoint_tenant_id"),
            SameTenant(field="agent", name="workflows_endpoint_agent_tenant"),
            models.UniqueConstraint(fields=["tenant", "name"], name="workflows_endpoint_name"),
            models.CheckConstraint(
                condition=Q(scheme__in=Scheme.values), name="workflows_endpoint_scheme_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def word(self) -> str:
        """How the history names it, in what came through it."""
        return f"endpoint:{self.pk}"

    @property
    def header_names(self) -> Names:
        return Names(Scheme(self.scheme), self.signature_header, self.timestamp_header)


class EndpointSecret(TenantRow):
    """A secret of an endpoint, sealed. During a rotation there are two that count."""

    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.PROTECT, db_constraint=False, related_name="secrets"
    )
    sealed = models.BinaryField(null=True)
    """Erased once it has ended."""
    made_by = models.UUIDField(null=True)
    """The person who was shown it, and could sign with it: they never decide on what comes by the endpoint."""
    created_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="workflows_endpointsecret_bound",
                fields=["tenant", "endpoint", "made_by", "created_at"],
                erasable=["sealed"],
            )
        ]
        constraints = [
            SameTenant(field="endpoint", name="workflows_endpointsecret_endpoint_tenant"),
            models.CheckConstraint(
                condition=Q(sealed__isnull=False) | Q(ends_at__isnull=False),
                name="workflows_endpointsecret_erased_once_ended",
            ),
        ]
        indexes = [models.Index(fields=["endpoint"], name="workflows_endpointsecret_of")]

    def __str__(self) -> str:
        return f"secret of {self.endpoint_id}"

    def seal(self, secret: str) -> None:
        self.sealed = seal(f"endpoint-secret:{self.tenant_id}:{self.id}", secret.encode())

    def key(self) -> bytes:
        """The key's bytes, in memory only. Raises CannotOpen."""
        assert self.sealed is not None
        return key_of(unseal(f"endpoint-secret:{self.tenant_id}:{self.id}", self.sealed).decode())


class Delivery(TenantRow):
    """One verified webhook: its id, unique for its endpoint for ever, its body, and what came of it."""

    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.PROTECT, db_constraint=False, related_name="deliveries"
    )
    event_id = models.CharField(max_length=200)
    """What tells one delivery from another: the sender's signed id, or where there is none the body's hash."""
    body = models.BinaryField(null=True)
    """As it came, sealed. It may hold personal data, so it may be erased."""
    body_hash = models.CharField(max_length=80)
    received_at = models.DateTimeField()
    repeats = models.PositiveIntegerField(default=0)
    conflicts = models.PositiveIntegerField(default=0)
    """How often the same id came with another body; each was refused."""
    due_at = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)
    """Counted when a try begins, so that one that kills its worker counts too."""
    outcome = models.CharField(max_length=20, null=True)
    code = models.CharField(max_length=60, blank=True)
    """Why it is quarantined: a stable code, no value of the body."""
    run_id = models.UUIDField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="workflows_delivery_bound",
                fields=["tenant", "endpoint", "event_id", "body_hash", "received_at"],
                once=["outcome", "run_id", "ended_at"],
                erasable=["body"],
            )
        ]
        constraints = [
            SameTenant(field="endpoint", name="workflows_delivery_endpoint_tenant"),
            models.UniqueConstraint(fields=["endpoint", "event_id"], name="workflows_delivery_once"),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True, ended_at__isnull=True, due_at__isnull=False)
                | Q(outcome__in=OUTCOMES, ended_at__isnull=False, due_at__isnull=True),
                name="workflows_delivery_waits_or_has_ended",
            ),
            models.CheckConstraint(
                condition=Q(outcome__in=("accepted", "duplicate"), run_id__isnull=False, code="")
                | Q(outcome="quarantined", run_id__isnull=True) & ~Q(code="")
                | Q(outcome__isnull=True, run_id__isnull=True),
                name="workflows_delivery_says_what_came_of_it",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="workflows_delivery_due"),
            models.Index(
                fields=["ended_at"],
                condition=Q(outcome="quarantined", body__isnull=False),
                name="workflows_delivery_erasable",
            ),
            models.Index(fields=["endpoint", "-received_at"], name="workflows_delivery_newest"),
            models.Index(
                fields=["tenant", "run_id"],
                condition=Q(body__isnull=False),
                name="workflows_delivery_content",
            ),
        ]

    def __str__(self) -> str:
        return f"delivery {self.id} ({self.outcome or 'waiting'})"

    def seal_body(self, raw: bytes) -> None:
        self.body = seal(f"delivery:{self.tenant_id}:{self.id}", raw)

    def raw_body(self) -> bytes:
        """The bytes as they came. Raises CannotOpen."""
        assert self.body is not None
        return unseal(f"delivery:{self.tenant_id}:{self.id}", self.body)
