"""People, what they may do in a tenant, and the automations with their tokens."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.functional import cached_property

from access.enums import DutyKind, Role, Scope
from common.ids import new_id
from common.tenancy import SameTenant, TenantRow, tenant_key


class User(AbstractUser):
    """A person who signs in. What they may do hangs on their memberships, never on Django's own permissions."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    display_name = models.CharField(max_length=120, blank=True)

    def __str__(self) -> str:
        return self.display_name or self.username

    @property
    def initials(self) -> str:
        return "".join(word[0] for word in str(self).split()[:2]).upper()


class Group(TenantRow):
    """People who may decide a kind of question together, such as *Refund desk*."""

    name = models.CharField(max_length=120)

    class Meta:
        constraints = [
            tenant_key("access_group_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "name"], name="access_group_name"),
        ]

    def __str__(self) -> str:
        return self.name


class Membership(TenantRow):
    """One person in one tenant: roles, and the groups they review for."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    roles = ArrayField(models.CharField(max_length=20, choices=Role.choices), default=list)
    groups: ClassVar[models.ManyToManyField] = models.ManyToManyField(  # type: ignore[type-arg]
        Group, through="GroupMembership", related_name="members"
    )
    is_active = models.BooleanField(default=True)
    person_id = models.UUIDField(null=True)
    """Shared by the accounts of one person in this tenant; null where this account is the only one."""

    class Meta:
        constraints = [
            tenant_key("access_membership_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "user"], name="access_membership_once"),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "person_id"],
                condition=Q(person_id__isnull=False),
                name="access_membership_person",
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.tenant_id}"

    @cached_property
    def accounts(self) -> frozenset[UUID]:
        """All accounts of this person in the tenant, this one among them."""
        if self.person_id is None:
            return frozenset({self.user_id})
        same = Membership.objects.filter(tenant_id=self.tenant_id, person_id=self.person_id)
        return frozenset(same.values_list("user_id", flat=True))

    @cached_property
    def break_glass_until(self) -> datetime | None:
        """Until when the tenant lets one person decide on their own; None where it does not. Annotated by requests."""
        found = BreakGlass.objects.filter(tenant_id=self.tenant_id, ended_at=None, ends_at__gt=Now())
        return found.values_list("ends_at", flat=True).first()

    def has_role(self, *roles: Role) -> bool:
        """Whether this membership counts and holds one of ``roles``."""
        return self.is_active and any(role in self.roles for role in roles)


class GroupMembership(TenantRow):
    """A membership's place in a group of the same tenant."""

    membership = models.ForeignKey(Membership, on_delete=models.CASCADE, db_constraint=False)
    group = models.ForeignKey(Group, on_delete=models.CASCADE, db_constraint=False)

    class Meta:
        constraints = [
            SameTenant(field="membership", name="access_groupmembership_membership_tenant"),
            SameTenant(field="group", name="access_groupmembership_group_tenant"),
            models.UniqueConstraint(fields=["membership", "group"], name="access_groupmembership_once"),
        ]

    def __str__(self) -> str:
        return f"{self.membership_id} in {self.group_id}"


class Agent(TenantRow):
    """An automation: a principal of its own kind, with the person or the system it acts for.

    ``workflows`` and ``operations`` are what it may ask for; null sets no bound, an empty list allows nothing.
    """

    name = models.SlugField(max_length=60)
    acts_for = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="agents")
    acts_for_system = models.CharField(max_length=120, blank=True, db_default="")
    owner = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.PROTECT, related_name="owned_agents"
    )
    """Who answers for the automation. They never decide on what it asks for."""
    workflows = ArrayField(models.CharField(max_length=60), null=True)
    operations = ArrayField(models.CharField(max_length=60), null=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            tenant_key("access_agent_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "name"], name="access_agent_name"),
            models.CheckConstraint(
                condition=Q(acts_for__isnull=True) | Q(acts_for_system=""), name="access_agent_acts_for_one"
            ),
        ]

    def __str__(self) -> str:
        return f"api:{self.name}"


class ApiToken(TenantRow):
    """A bearer token of an agent. Only its SHA-256 is stored; it is shown once, when it is made."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, db_constraint=False, related_name="tokens")
    prefix = models.CharField(max_length=16)
    sha256 = models.CharField(max_length=64, unique=True)
    scopes = ArrayField(models.CharField(max_length=30, choices=Scope.choices), default=list)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    replaces = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, db_constraint=False, related_name="replaced_by"
    )
    """The token whose place it takes; that one ends by itself after the overlap."""
    issued_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    """Who was shown its text, and could use it: they never decide on what is asked for with it."""
    warned_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            tenant_key("access_apitoken_tenant_id"),
            SameTenant(field="agent", name="access_apitoken_agent_tenant"),
            SameTenant(field="replaces", name="access_apitoken_replaces_tenant"),
            models.UniqueConstraint(
                fields=["replaces"], condition=Q(replaces__isnull=False), name="access_apitoken_replaced_once"
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"], condition=Q(revoked_at__isnull=True, warned_at__isnull=True),
                name="access_apitoken_to_warn",
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.prefix}…"

    @property
    def word(self) -> str:
        """How the history names it, in what came through it."""
        return f"token:{self.pk}"


class Duty(TenantRow):
    """What a person answers for, and therefore never decides: a workflow that is theirs, a policy that they wrote."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="duties")
    kind = models.CharField(max_length=20, choices=DutyKind.choices)
    workflow = models.CharField(max_length=60)
    policy_version = models.PositiveIntegerField(null=True)
    """The version that they wrote; null means every version."""
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=DutyKind.values), name="access_duty_kind_known"),
            models.CheckConstraint(
                condition=Q(kind=DutyKind.POLICY_EDITOR) | Q(policy_version__isnull=True),
                name="access_duty_version_of_a_policy",
            ),
            models.UniqueConstraint(
                fields=["tenant", "user", "kind", "workflow", "policy_version"],
                condition=Q(ended_at__isnull=True), nulls_distinct=False, name="access_duty_once",
            ),
        ]  # fmt: skip
        indexes = [
            models.Index(
                fields=["tenant", "workflow"], condition=Q(ended_at__isnull=True), name="access_duty_in_force"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} is {self.kind} of {self.workflow}"


class BreakGlass(TenantRow):
    """A stretch of time in which one person may decide on their own proposals: the posture of a team of one."""

    reason = models.CharField(max_length=500)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    ends_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=200, blank=True)
    end_reason = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            tenant_key("access_breakglass_tenant_id"),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("created_at")), name="access_breakglass_has_an_end"
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="access_breakglass_has_a_reason"),
            models.UniqueConstraint(
                fields=["tenant"], condition=Q(ended_at__isnull=True), name="access_breakglass_one_at_a_time"
            ),
        ]

    def __str__(self) -> str:
        return f"break-glass until {self.ends_at:%Y-%m-%d}"
