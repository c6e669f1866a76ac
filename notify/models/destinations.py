"""Where chat systems take messages: addresses that an admin has registered."""

from typing import ClassVar
from urllib.parse import urlsplit

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from access.models import Group
from common.sealing import seal, unseal
from common.signed_webhooks import key_of
from common.tenancy import SameTenant, TenantRow, tenant_key
from common.walls import Frozen
from notify.enums import Style


class Destination(TenantRow):
    """A chat room, by the address of its incoming webhook. Who has that address may write there: it lies sealed.

    Of the style *mail* it is somebody's address (``mailto:``), to which checkpoints of the history are sent.
    """

    name = models.SlugField(max_length=60)
    host = models.CharField(max_length=300)
    """What is shown of the address."""
    sealed_url = models.BinaryField(null=True)
    """Erased once it has ended."""
    sealed_secret = models.BinaryField(null=True)
    """With which calls are signed; null where the receiver checks nothing."""
    style = models.CharField(max_length=10, choices=Style.choices, default=Style.TEXT)
    group = models.ForeignKey(
        Group, null=True, on_delete=models.PROTECT, db_constraint=False, related_name="+"
    )
    """It hears what concerns this group; null: whatever concerns anybody."""
    kinds = ArrayField(models.CharField(max_length=40), default=list)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    deactivated_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    """Calls in a row that failed."""
    paused_until = models.DateTimeField(null=True)
    last_called_at = models.DateTimeField(null=True)
    last_delivered_at = models.DateTimeField(null=True)
    last_failed_at = models.DateTimeField(null=True)
    last_problem = models.CharField(max_length=60, blank=True)

    class Meta:
        triggers: ClassVar = [
            Frozen(
                name="notify_destination_bound",
                fields=["tenant", "name", "host", "group", "created_by", "created_at"],
                once=["deactivated_at"],
                erasable=["sealed_url", "sealed_secret"],
            )
        ]
        constraints = [
            tenant_key("notify_destination_tenant_id"),
            SameTenant(field="group", name="notify_destination_group_tenant"),
            models.UniqueConstraint(fields=["tenant", "name"], name="notify_destination_name"),
            models.CheckConstraint(
                condition=Q(deactivated_at__isnull=False) | Q(sealed_url__isnull=False),
                name="notify_destination_erased_once_ended",
            ),
            models.CheckConstraint(condition=Q(style__in=Style.values), name="notify_destination_style_known"),
        ]  # fmt: skip

    def __str__(self) -> str:
        return self.name

    @property
    def _place(self) -> str:
        return f"destination:{self.tenant_id}:{self.id}"

    def seal_in(self, url: str, secret: str) -> None:
        self.host = (urlsplit(url).netloc or url.rpartition("@")[2])[:300]
        self.sealed_url = seal(f"{self._place}:url", url.encode())
        self.sealed_secret = seal(f"{self._place}:secret", secret.encode()) if secret else None

    def url(self) -> str:
        """In memory only. Raises CannotOpen."""
        assert self.sealed_url is not None
        return unseal(f"{self._place}:url", self.sealed_url).decode()

    def keys(self) -> list[bytes]:
        """With what calls are signed, in memory only; none where they are not. Raises CannotOpen."""
        if self.sealed_secret is None:
            return []
        return [key_of(unseal(f"{self._place}:secret", self.sealed_secret).decode())]
