"""What is told, and for each person that it is there to be read."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Least

from access.models import Group, User
from common.tenancy import SameTenant, TenantRow, tenant_key
from common.walls import Frozen

SETTLED = Least("read_at", "over_at")
"""Since when a notice is read, or asks for nothing any more; NULL while neither."""


class Message(TenantRow):
    """One thing that people are told, once for each version of its subject. It holds only what may leave.

    Whom it concerns is said by words (group, role, names) and worked out when it is due: then each of them gets a
    notice in the app and deliveries by other ways.
    """

    kind = models.CharField(max_length=40)
    subject_type = models.CharField(max_length=40)
    subject_id = models.UUIDField()
    version = models.PositiveIntegerField(default=1)
    lead = models.CharField(max_length=200)
    """The effect in one line, made by code without personal values."""
    digest = models.CharField(max_length=64, blank=True)
    facts = models.JSONField(default=list)
    """``[[label, text], …]``, of classes that may leave."""
    until = models.DateTimeField(null=True)
    """Nothing is told after it; shown as the time by which something is to be done."""
    href = models.CharField(max_length=300)
    """A path on this installation."""
    urgent = models.BooleanField(default=False)
    group = models.ForeignKey(
        Group, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    role = models.CharField(max_length=20, blank=True)
    people = ArrayField(models.UUIDField(), null=True)
    """Accounts that it concerns, in place of everybody in the group and role; null names nobody in particular."""
    without = ArrayField(models.UUIDField(), default=list)
    """Accounts whose people it does not concern, such as the side that asks."""
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    """When people are looked for; null once they were."""
    closed_at = models.DateTimeField(null=True)
    """Since when nobody needs to do anything about it."""

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="notify_message_bound",
                fields=[
                    "tenant", "kind", "subject_type", "subject_id", "version", "lead", "digest", "facts", "until",
                    "href", "urgent", "group", "role", "people", "without", "created_at",
                ],
                once=["closed_at"],
                kept_until="created_at",
            )
        ]  # fmt: skip
        constraints = [
            tenant_key("notify_message_tenant_id"),
            SameTenant(field="group", name="notify_message_group_tenant"),
            models.UniqueConstraint(
                fields=["tenant", "subject_type", "subject_id", "version", "kind"], name="notify_message_once"
            ),
            models.CheckConstraint(condition=Q(href__startswith="/"), name="notify_message_leads_to_a_path"),
        ]  # fmt: skip
        indexes = [
            models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="notify_message_due"),
            models.Index(
                fields=["closed_at"], condition=Q(closed_at__isnull=False), name="notify_message_closed"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.lead}"


class Notice(TenantRow):
    """That one person was told: a row of their list. Its id names it in mails, and gives no right."""

    message = models.ForeignKey(
        Message, on_delete=models.PROTECT, db_constraint=False, related_name="notices"
    )
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True)
    over_at = models.DateTimeField(null=True)
    """Since when it asks for nothing any more; it then counts as unread no longer."""

    class Meta:
        constraints = [
            tenant_key("notify_notice_tenant_id"),
            SameTenant(field="message", name="notify_notice_message_tenant"),
            models.UniqueConstraint(fields=["message", "user"], name="notify_notice_once"),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "user"], condition=Q(read_at__isnull=True, over_at__isnull=True),
                name="notify_notice_unread",
            ),
            models.Index(fields=["tenant", "user", "-created_at", "-id"], name="notify_notice_newest"),
            models.Index(SETTLED, name="notify_notice_settled"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.message_id} for {self.user_id}"


class Follower(TenantRow):
    """How far one teller has read a tenant's history: everything up to this place is told."""

    name = models.CharField(max_length=40)
    seq = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="notify_follower_once")]

    def __str__(self) -> str:
        return f"{self.name} at {self.tenant_id}#{self.seq}"
