"""What a person wishes about being told."""

from datetime import time

from django.db import models
from django.db.models import Q

from access.models import User
from common.tenancy import TenantRow
from notify.enums import Rhythm
from notify.times import Wishes


class Preference(TenantRow):
    """One person's wishes in one tenant. Who has no row has the defaults."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    zone = models.CharField(max_length=64, default="UTC")
    mail = models.JSONField(default=dict)
    """``{kind: whether by mail}`` where it differs from the kind's own."""
    rhythm = models.CharField(max_length=10, choices=Rhythm.choices, default=Rhythm.EACH)
    daily_at = models.TimeField(default=time(8))
    quiet_from = models.TimeField(null=True)
    quiet_to = models.TimeField(null=True)
    urgent_anyway = models.BooleanField(default=False)
    """Whether what is urgent is sent at once, also in quiet hours and to who has mails collected."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="notify_preference_once"),
            models.CheckConstraint(condition=Q(rhythm__in=Rhythm.values), name="notify_preference_rhythm_known"),
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True, quiet_to__isnull=True)
                | Q(quiet_from__isnull=False, quiet_to__isnull=False),
                name="notify_preference_quiet_has_two_ends",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"wishes of {self.user_id}"

    @property
    def wishes(self) -> Wishes:
        return Wishes(
            zone=self.zone, rhythm=self.rhythm, daily_at=self.daily_at, quiet_from=self.quiet_from,
            quiet_to=self.quiet_to, urgent_anyway=self.urgent_anyway,
        )  # fmt: skip
