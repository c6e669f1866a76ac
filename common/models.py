"""The tenant: whose rows they are."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from common.ids import new_id
from common.tenancy import TenantRow
from common.walls import Frozen


class Tenant(models.Model):
    """A customer of this installation. Nothing of one tenant is read, counted or guessed from another."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.slug


class Heartbeat(models.Model):
    """When a process last showed that it lives, and what it knows. Belongs to the installation, to no tenant.

    One row per kind and process, written by itself every few seconds beside its work. Kind *backup* is written by
    whoever made a backup.
    """

    kind = models.CharField(max_length=20)
    name = models.CharField(max_length=120)
    """Host and process id: for the people who run this, never for the public."""
    knows = models.JSONField(default=list)
    """What a process that executes can execute: ``["refunds.issue@1"]``."""
    keys = models.JSONField(default=list, db_default=[])
    """The names of the wrapping keys that it has; no key."""
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "name"], name="common_heartbeat_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class ContentKey(TenantRow):
    """The key under which everything lies that one run was given, found, proposed and answered.

    To erase the run's content is to destroy this key; nothing brings it back. The hold keeps it from being destroyed.
    """

    run_id = models.UUIDField()
    wrapped = models.BinaryField(null=True)
    """The key under a wrapping key of the installation; NULL once it was destroyed."""
    wrapped_with = models.CharField(max_length=16)
    """The name of that wrapping key."""
    created_at = models.DateTimeField()
    erased_at = models.DateTimeField(null=True)
    held_at = models.DateTimeField(null=True)
    """Since when a legal hold keeps it."""
    held_by = models.CharField(max_length=200, blank=True)
    hold_reason = models.CharField(max_length=200, blank=True)
    """A reference such as a file number; no personal data."""

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="common_contentkey_bound", fields=["tenant", "run_id", "created_at"], once=["erased_at"]
            )
        ]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "run_id"], name="common_contentkey_one_per_run"),
            models.CheckConstraint(
                # With *erased_at* set once and for ever, no key comes back.
                condition=Q(wrapped__isnull=True, erased_at__isnull=False)
                | Q(wrapped__isnull=False, erased_at__isnull=True),
                name="common_contentkey_there_or_erased",
            ),
            models.CheckConstraint(
                condition=Q(held_at__isnull=True) | Q(wrapped__isnull=False),
                name="common_contentkey_held_is_there",
            ),
        ]
        indexes = [
            models.Index(
                fields=["created_at"], condition=Q(wrapped__isnull=False, held_at__isnull=True),
                name="common_contentkey_erasable",
            ),
            models.Index(
                fields=["wrapped_with"], condition=Q(wrapped__isnull=False), name="common_contentkey_wrapping"
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"key of {self.run_id}"
