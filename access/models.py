"""People, what they may do in a tenant, and the automations with their tokens."""

from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from access.enums import Role, Scope
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

    class Meta:
        constraints = [
            tenant_key("access_membership_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "user"], name="access_membership_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.tenant_id}"

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
    """An automation: a principal of its own kind, with the person it acts for."""

    name = models.SlugField(max_length=60)
    acts_for = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="agents")
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            tenant_key("access_agent_tenant_id"),
            models.UniqueConstraint(fields=["tenant", "name"], name="access_agent_name"),
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

    class Meta:
        constraints = [SameTenant(field="agent", name="access_apitoken_agent_tenant")]

    def __str__(self) -> str:
        return f"{self.prefix}…"
